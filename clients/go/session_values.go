package durablememory

import (
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// Policy is how to recall. What is left out takes the server's default, once.
type Policy struct {
	Mode RecallMode
	// MaxResults is 1..100.
	MaxResults int32
	// MinScore is the lowest lexical score, MinRelativeScore the lowest share of the best one; both 0..1.
	MinScore, MinRelativeScore *float64
	// RelatedLookups is how many RELATED_TO targets to read, 0..64.
	RelatedLookups                *int32
	LexicalProfile, FusionProfile string
	Semantic                      *SemanticPolicy
}

// SemanticPolicy is what is asked of the semantic branch. What is left out takes the server's default.
type SemanticPolicy struct {
	AuthorityDigest string
	CandidateLimit  int32
	MinSimilarity   *float64
}

func (p Policy) toProto() *pb.RecallPolicy {
	message := &pb.RecallPolicy{
		Mode:             toOptionalEnum[pb.RecallMode](p.Mode),
		MaxResults:       optional(p.MaxResults),
		MinScore:         p.MinScore,
		MinRelativeScore: p.MinRelativeScore,
		RelatedLookups:   p.RelatedLookups,
		LexicalProfile:   optional(p.LexicalProfile),
		FusionProfile:    optional(p.FusionProfile),
	}
	if p.Semantic != nil {
		message.Semantic = &pb.SemanticPolicy{
			AuthorityDigest: optional(p.Semantic.AuthorityDigest),
			CandidateLimit:  optional(p.Semantic.CandidateLimit),
			MinSimilarity:   p.Semantic.MinSimilarity,
		}
	}
	return message
}

func policyFrom(message *pb.RecallPolicy) Policy {
	if message == nil {
		return Policy{}
	}
	policy := Policy{
		Mode:             fromEnum[RecallMode](message.GetMode()),
		MaxResults:       message.GetMaxResults(),
		MinScore:         message.MinScore,
		MinRelativeScore: message.MinRelativeScore,
		RelatedLookups:   message.RelatedLookups,
		LexicalProfile:   message.GetLexicalProfile(),
		FusionProfile:    message.GetFusionProfile(),
	}
	if semantic := message.GetSemantic(); semantic != nil {
		policy.Semantic = &SemanticPolicy{
			AuthorityDigest: semantic.GetAuthorityDigest(),
			CandidateLimit:  semantic.GetCandidateLimit(),
			MinSimilarity:   semantic.MinSimilarity,
		}
	}
	return policy
}

// SemanticGeneration is which vectors a session searches, and the bounds of the search.
type SemanticGeneration struct {
	AuthorityDigest string
	Provider        string
	Model           string
	ModelRevision   string
	Dimension       int32
	Normalization   VectorNormalization
	Metric          VectorMetric
	CandidateLimit  int32
	MinSimilarity   float64
}

func semanticGenerationOf(message *pb.SemanticGeneration) SemanticGeneration {
	return SemanticGeneration{
		AuthorityDigest: message.GetAuthorityDigest(),
		Provider:        message.GetProvider(),
		Model:           message.GetModel(),
		ModelRevision:   message.GetModelRevision(),
		Dimension:       message.GetDimension(),
		Normalization:   fromEnum[VectorNormalization](message.GetNormalization()),
		Metric:          fromEnum[VectorMetric](message.GetMetric()),
		CandidateLimit:  message.GetCandidateLimit(),
		MinSimilarity:   message.GetMinSimilarity(),
	}
}

func (g SemanticGeneration) toProto() *pb.SemanticGeneration {
	return &pb.SemanticGeneration{
		AuthorityDigest: g.AuthorityDigest,
		Provider:        g.Provider,
		Model:           g.Model,
		ModelRevision:   g.ModelRevision,
		Dimension:       g.Dimension,
		Normalization:   toEnum[pb.VectorNormalization](g.Normalization),
		Metric:          toEnum[pb.VectorMetric](g.Metric),
		CandidateLimit:  g.CandidateLimit,
		MinSimilarity:   g.MinSimilarity,
	}
}

// SessionBinding is everything that decides what a session recalls and how, with no default left open: a plain value
// to keep. A binding that a newer server wrote may have fields that this version does not know; they are not here, so
// such a binding is resumed by its digest.
type SessionBinding struct {
	SchemaVersion      int32
	Namespace          Namespace
	Mode               RecallMode
	MaxResults         int32
	MinScore           float64
	MinRelativeScore   float64
	RelatedLookups     int32
	LexicalProfile     string
	FusionProfile      string
	SemanticGeneration *SemanticGeneration
}

func sessionBindingOf(message *pb.SessionBinding) SessionBinding {
	return SessionBinding{
		SchemaVersion:      message.GetSchemaVersion(),
		Namespace:          namespaceOf(message.GetNamespace()),
		Mode:               fromEnum[RecallMode](message.GetMode()),
		MaxResults:         message.GetMaxResults(),
		MinScore:           message.GetMinScore(),
		MinRelativeScore:   message.GetMinRelativeScore(),
		RelatedLookups:     message.GetRelatedLookups(),
		LexicalProfile:     message.GetLexicalProfile(),
		FusionProfile:      message.GetFusionProfile(),
		SemanticGeneration: present(message.GetSemanticGeneration(), semanticGenerationOf),
	}
}

func (b SessionBinding) toProto() *pb.SessionBinding {
	return &pb.SessionBinding{
		SchemaVersion:      b.SchemaVersion,
		Namespace:          b.Namespace.toProto(),
		Mode:               toEnum[pb.RecallMode](b.Mode),
		MaxResults:         b.MaxResults,
		MinScore:           b.MinScore,
		MinRelativeScore:   b.MinRelativeScore,
		RelatedLookups:     b.RelatedLookups,
		LexicalProfile:     b.LexicalProfile,
		FusionProfile:      b.FusionProfile,
		SemanticGeneration: stated(b.SemanticGeneration, SemanticGeneration.toProto),
	}
}

// SessionInfo is a session as the service has it. Its BindingDigest is enough to resume it with. ReboundAt and ClosedAt
// are zero while it was neither.
type SessionInfo struct {
	SessionID      string
	Binding        SessionBinding
	BindingDigest  string
	State          SessionState
	BindingVersion int64
	OpenedBy       string
	OpenedAt       time.Time
	ReboundAt      time.Time
	ClosedAt       time.Time
}

func sessionInfoOf(message *pb.Session) SessionInfo {
	return SessionInfo{
		SessionID:      message.GetSessionId(),
		Binding:        sessionBindingOf(message.GetBinding()),
		BindingDigest:  message.GetBindingDigest(),
		State:          fromEnum[SessionState](message.GetState()),
		BindingVersion: message.GetBindingVersion(),
		OpenedBy:       message.GetOpenedBy(),
		OpenedAt:       fromTimestamp(message.GetOpenedAt()),
		ReboundAt:      fromTimestamp(message.GetReboundAt()),
		ClosedAt:       fromTimestamp(message.GetClosedAt()),
	}
}

// RunInfo is a run as the service has it: one incarnation of a run id. ContextID is the next one to use; EndedAt is
// zero while the run is open.
type RunInfo struct {
	SessionID    string
	RunID        string
	Incarnation  string
	HostInstance string
	State        RunState
	OpenedAt     time.Time
	ActiveAt     time.Time
	EndedAt      time.Time
	ContextID    string
	Sequence     int64
	BegunBy      string
}

func runInfoOf(message *pb.Run) RunInfo {
	return RunInfo{
		SessionID:    message.GetSessionId(),
		RunID:        message.GetRunId(),
		Incarnation:  message.GetIncarnation(),
		HostInstance: message.GetHostInstance(),
		State:        fromEnum[RunState](message.GetState()),
		OpenedAt:     fromTimestamp(message.GetOpenedAt()),
		ActiveAt:     fromTimestamp(message.GetActiveAt()),
		EndedAt:      fromTimestamp(message.GetEndedAt()),
		ContextID:    message.GetContextId(),
		Sequence:     message.GetSequence(),
		BegunBy:      message.GetBegunBy(),
	}
}

// present converts a message that may be absent.
func present[From, To any](message *From, convert func(*From) To) *To {
	if message == nil {
		return nil
	}
	return new(convert(message))
}

// stated converts a value that may be left out.
func stated[From, To any](value *From, convert func(From) *To) *To {
	if value == nil {
		return nil
	}
	return convert(*value)
}
