package durablememory

import (
	"errors"
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// RecallFilter narrows a recall; all parts must hold. Ranges of time include their start and not their end; a zero
// time leaves that side open.
type RecallFilter struct {
	Kinds                       []NodeKind
	Labels                      map[string]string
	OccurredFrom, OccurredUntil time.Time
	UpdatedFrom, UpdatedUntil   time.Time
	ExcludedNodeIDs             []string
}

func (f RecallFilter) toProto() *pb.RecallFilter {
	return &pb.RecallFilter{
		Kinds:           toEnums[pb.NodeKind](f.Kinds),
		Labels:          f.Labels,
		Occurred:        timeRange(f.OccurredFrom, f.OccurredUntil),
		Updated:         timeRange(f.UpdatedFrom, f.UpdatedUntil),
		ExcludedNodeIds: f.ExcludedNodeIDs,
	}
}

func timeRange(start, end time.Time) *pb.TimeRange {
	if start.IsZero() && end.IsZero() {
		return nil
	}
	return &pb.TimeRange{Start: toTimestamp(start), End: toTimestamp(end)}
}

// BranchScore is a place, from 1, and a score in one branch of a recall.
type BranchScore struct {
	Rank  int32
	Score float64
}

func branchScoreOf(message *pb.BranchScore) BranchScore {
	return BranchScore{Rank: message.GetRank(), Score: message.GetScore()}
}

// HitRelation is a relation of a hit, and the status of its other end.
type HitRelation struct {
	Kind   RelationKind
	NodeID string
	Status NodeStatus
}

func hitRelationOf(message *pb.HitRelation) HitRelation {
	return HitRelation{
		Kind:   fromEnum[RelationKind](message.GetKind()),
		NodeID: message.GetNodeId(),
		Status: fromEnum[NodeStatus](message.GetStatus()),
	}
}

// Hit is one memory that was found, and in which namespace. It is history, not instruction: [Render] it before a model
// sees it.
type Hit struct {
	Namespace Namespace
	Citation  Citation
	Rank      int32
	// Score is comparable within one recall only.
	Score             float64
	Channel           RecallChannel
	Lexical, Semantic *BranchScore
	// RelatedTo is the node id that led to it, empty where the query did.
	RelatedTo              string
	Trust                  Trust
	Kind                   NodeKind
	Content                string
	Surroundings           []string
	Author                 string
	OccurredAt             time.Time // zero where nothing is known
	CreatedAt, UpdatedAt   time.Time
	Confidence, Importance float64
	Labels                 map[string]string
	Relations              []HitRelation
	// Disputed: another ACTIVE memory says otherwise.
	Disputed bool
	// Age is since UpdatedAt, at the time of the answer.
	Age time.Duration
}

// Cited is the revision that was found.
func (h Hit) Cited() Citation { return h.Citation }

func hitOf(message *pb.RecallHit, namespace Namespace) Hit {
	return Hit{
		Namespace:    namespace,
		Citation:     citationOf(message.GetCitation()),
		Rank:         message.GetRank(),
		Score:        message.GetScore(),
		Channel:      fromEnum[RecallChannel](message.GetChannel()),
		Lexical:      present(message.GetLexical(), branchScoreOf),
		Semantic:     present(message.GetSemantic(), branchScoreOf),
		RelatedTo:    message.GetRelatedToNodeId(),
		Trust:        fromEnum[Trust](message.GetTrust()),
		Kind:         fromEnum[NodeKind](message.GetKind()),
		Content:      message.GetContent(),
		Surroundings: message.GetSurroundings(),
		Author:       message.GetAuthor(),
		OccurredAt:   fromTimestamp(message.GetOccurredAt()),
		CreatedAt:    fromTimestamp(message.GetCreatedAt()),
		UpdatedAt:    fromTimestamp(message.GetUpdatedAt()),
		Confidence:   message.GetConfidence(),
		Importance:   message.GetImportance(),
		Labels:       message.GetLabels(),
		Relations:    each(message.GetRelations(), hitRelationOf),
		Disputed:     message.GetDisputed(),
		Age:          fromDuration(message.GetFreshness().GetAge()),
	}
}

// Degradation is that and why AUTO searched by words only.
type Degradation struct {
	Reason  DegradationReason
	Message string
}

func degradationOf(message *pb.Degradation) Degradation {
	return Degradation{Reason: fromEnum[DegradationReason](message.GetReason()), Message: message.GetMessage()}
}

// SemanticSearch is what the semantic branch searched, and how current that was.
type SemanticSearch struct {
	IndexRevision        int64
	IndexHistoryDigest   string
	VectorsSearched      int64
	CandidatesDropped    int64
	CandidatesRefilled   int64
	UnindexedActiveCount int64
}

func semanticSearchOf(message *pb.SemanticSearch) SemanticSearch {
	return SemanticSearch{
		IndexRevision:        message.GetIndexRevision(),
		IndexHistoryDigest:   message.GetIndexHistoryDigest(),
		VectorsSearched:      message.GetVectorsSearched(),
		CandidatesDropped:    message.GetCandidatesDropped(),
		CandidatesRefilled:   message.GetCandidatesRefilled(),
		UnindexedActiveCount: message.GetUnindexedActiveCount(),
	}
}

// Recall is what a recall found. No hits are normal.
type Recall struct {
	Namespace Namespace
	// Hits are best first.
	Hits []Hit
	// ChangeToken is what the answer is for; the zero value if nothing was searched.
	ChangeToken ChangeToken
	// ModeUsed is empty if nothing was searched.
	ModeUsed          RecallMode
	Degradation       *Degradation
	SearchedNodeCount int64
	Semantic          *SemanticSearch
	// Admissions has one outcome for each memory that was found by a recall that admits, refused ones included; those
	// are not among the hits.
	Admissions []AdmissionOutcome
	// ContextID is the assembly that the hits were admitted to.
	ContextID string
	// Err is why nothing was searched: the service could not answer, and the caller chose to go on without.
	Err error
}

// Unavailable tells whether nothing was searched, because the service could not answer.
func (r Recall) Unavailable() bool { return r.Err != nil }

func recallOf(namespace Namespace, token *pb.ChangeToken, result *pb.RecallResult) Recall {
	return Recall{
		Namespace:         namespace,
		Hits:              each(result.GetHits(), func(hit *pb.RecallHit) Hit { return hitOf(hit, namespace) }),
		ChangeToken:       changeTokenOf(token),
		ModeUsed:          fromEnum[RecallMode](result.GetModeUsed()),
		Degradation:       present(result.GetDegradation(), degradationOf),
		SearchedNodeCount: result.GetSearchedNodeCount(),
		Semantic:          present(result.GetSemantic(), semanticSearchOf),
	}
}

// MergedRecall is recalls of several namespaces; the Namespace of a hit says where it comes from.
type MergedRecall struct {
	// Hits come by their rank, the runs taking turns in the order of the call: scores of different namespaces cannot be
	// compared.
	Hits []Hit
	// Parts has the recall of each run, in the order of the call.
	Parts []Recall
}

// Unavailable tells whether any namespace could not be searched; Err says why.
func (r MergedRecall) Unavailable() bool { return r.Err() != nil }

// Err joins the errors of the namespaces that could not be searched; nil if there are none.
func (r MergedRecall) Err() error {
	return errors.Join(each(r.Parts, func(part Recall) error { return part.Err })...)
}

// TermExplanation is what one term of a query contributed.
type TermExplanation struct {
	Term           string
	DocumentCount  int64
	Weight         float64
	InOwnText      bool
	InSurroundings bool
	Contribution   float64
}

func termExplanationOf(message *pb.TermExplanation) TermExplanation {
	return TermExplanation{
		Term:           message.GetTerm(),
		DocumentCount:  message.GetDocumentCount(),
		Weight:         message.GetWeight(),
		InOwnText:      message.GetInOwnText(),
		InSurroundings: message.GetInSurroundings(),
		Contribution:   message.GetContribution(),
	}
}

// Explanation is why a node is, or is not, among the hits of a recall.
type Explanation struct {
	Citation Citation
	Status   NodeStatus
	Recalled bool
	// Exclusion is empty, and Rank not zero, if it is.
	Exclusion    RecallExclusion
	Rank         int32
	ModeUsed     RecallMode
	Degradation  *Degradation
	Lexical      *BranchScore
	Terms        []TermExplanation
	MatchedShare float64
	LexicalFloor float64
	VectorState  VectorState
	Semantic     *BranchScore
	ChangeToken  ChangeToken
}

func explanationOf(response *pb.ExplainRecallResponse) Explanation {
	message := response.GetExplanation()
	return Explanation{
		Citation:     citationOf(message.GetCitation()),
		Status:       fromEnum[NodeStatus](message.GetStatus()),
		Recalled:     message.GetRecalled(),
		Exclusion:    fromEnum[RecallExclusion](message.GetExclusion()),
		Rank:         message.GetRank(),
		ModeUsed:     fromEnum[RecallMode](message.GetModeUsed()),
		Degradation:  present(message.GetDegradation(), degradationOf),
		Lexical:      present(message.GetLexical(), branchScoreOf),
		Terms:        each(message.GetTerms(), termExplanationOf),
		MatchedShare: message.GetMatchedShare(),
		LexicalFloor: message.GetLexicalFloor(),
		VectorState:  fromEnum[VectorState](message.GetVectorState()),
		Semantic:     present(message.GetSemantic(), branchScoreOf),
		ChangeToken:  changeTokenOf(response.GetChangeToken()),
	}
}
