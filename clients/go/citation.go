package durablememory

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	pb "durablememory.dev/go/durablememoryv1"
)

// Citation names one committed revision of one node, and the digest of its content.
type Citation struct {
	NamespaceRevision int64
	NodeID            string
	NodeRevision      int64
	// ContentDigest is 64 lower-case hexadecimal digits.
	ContentDigest string
}

// Citable is whatever has a citation: a citation, a hit, a node, the result of a write.
type Citable interface {
	// Cited is the citation; the zero value where there is none.
	Cited() Citation
}

// Cited is the citation itself.
func (c Citation) Cited() Citation { return c }

// String is the one form of a citation: dm1:<namespace revision>:<node id, percent-encoded>@<revision>#<digest>.
func (c Citation) String() string {
	return fmt.Sprintf("dm1:%d:%s@%d#%s", c.NamespaceRevision, percentEncoded(c.NodeID), c.NodeRevision, c.ContentDigest)
}

var (
	citationForm  = regexp.MustCompile(`^dm1:([0-9]{1,19}):([^:@#\s]+)@([1-9][0-9]{0,18})#([0-9a-f]{64})$`)
	errNoCitation = errors.New("durablememory: not a citation (dm1:<namespace revision>:<node id>@<revision>#<digest>)")
)

// ParseCitation is the inverse of [Citation.String].
func ParseCitation(text string) (Citation, error) {
	parts := citationForm.FindStringSubmatch(text)
	if parts == nil {
		return Citation{}, errNoCitation
	}
	namespaceRevision, err1 := strconv.ParseInt(parts[1], 10, 64)
	nodeID, err2 := url.PathUnescape(parts[2])
	nodeRevision, err3 := strconv.ParseInt(parts[3], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return Citation{}, errNoCitation
	}
	return Citation{namespaceRevision, nodeID, nodeRevision, parts[4]}, nil
}

func citationOf(message *pb.Citation) Citation {
	return Citation{
		NamespaceRevision: message.GetNamespaceRevision(),
		NodeID:            message.GetNodeId(),
		NodeRevision:      message.GetNodeRevision(),
		ContentDigest:     message.GetContentDigest(),
	}
}

func toCitation(cited Citable) *pb.Citation {
	citation := cited.Cited()
	return &pb.Citation{
		NamespaceRevision: citation.NamespaceRevision,
		NodeId:            citation.NodeID,
		NodeRevision:      citation.NodeRevision,
		ContentDigest:     citation.ContentDigest,
	}
}

// toRevisionRef is the node revision that is meant, where no digest is needed.
func toRevisionRef(cited Citable) *pb.NodeRevisionRef { return cited.Cited().revision().toProto() }

func (c Citation) revision() NodeRevision {
	return NodeRevision{NodeID: c.NodeID, Revision: c.NodeRevision}
}

// NodeRevision is one revision of one node, where no digest is needed.
type NodeRevision struct {
	NodeID   string
	Revision int64
}

func nodeRevisionOf(message *pb.NodeRevisionRef) NodeRevision {
	return NodeRevision{NodeID: message.GetNodeId(), Revision: message.GetRevision()}
}

func (r NodeRevision) toProto() *pb.NodeRevisionRef {
	return &pb.NodeRevisionRef{NodeId: r.NodeID, Revision: r.Revision}
}

// percentEncoded leaves letters, digits and -_.~ as they are.
func percentEncoded(text string) string {
	var encoded strings.Builder
	for _, char := range []byte(text) {
		switch {
		case 'a' <= char && char <= 'z', 'A' <= char && char <= 'Z', '0' <= char && char <= '9',
			char == '-', char == '_', char == '.', char == '~':
			encoded.WriteByte(char)
		default:
			fmt.Fprintf(&encoded, "%%%02X", char)
		}
	}
	return encoded.String()
}

// Citables is a slice of anything that has a citation, for calls that take any of them.
func Citables[C Citable](items []C) []Citable {
	return each(items, func(item C) Citable { return item })
}
