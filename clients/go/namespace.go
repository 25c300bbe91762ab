package durablememory

import (
	"cmp"

	pb "durablememory.dev/go/durablememoryv1"
)

// Namespace is the unit of isolation: whose memory it is, and which part of it. An empty part is left to the server,
// which fills it in if the credential allows exactly one value.
type Namespace struct {
	Tenant    string
	Principal string
	Scope     string
}

// or is the namespace with its empty parts taken from another.
func (n Namespace) or(other Namespace) Namespace {
	return Namespace{
		Tenant:    cmp.Or(n.Tenant, other.Tenant),
		Principal: cmp.Or(n.Principal, other.Principal),
		Scope:     cmp.Or(n.Scope, other.Scope),
	}
}

func namespaceOf(message *pb.NamespaceRef) Namespace {
	return Namespace{Tenant: message.GetTenantId(), Principal: message.GetPrincipalId(), Scope: message.GetScopeId()}
}

func (n Namespace) toProto() *pb.NamespaceRef {
	return &pb.NamespaceRef{TenantId: optional(n.Tenant), PrincipalId: optional(n.Principal), ScopeId: optional(n.Scope)}
}

// ChangeToken is a point in the history of one namespace. Equal tokens of a namespace mean equal node state. Revisions
// can be ordered only between tokens of the same history.
type ChangeToken struct {
	HistoryID         string
	NamespaceRevision int64
}

func changeTokenOf(message *pb.ChangeToken) ChangeToken {
	return ChangeToken{HistoryID: message.GetHistoryId(), NamespaceRevision: message.GetNamespaceRevision()}
}
