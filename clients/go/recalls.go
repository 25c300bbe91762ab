package durablememory

import (
	"context"

	pb "durablememory.dev/go/durablememoryv1"
)

// PreviewOptions is what may be left out of Preview.
type PreviewOptions struct {
	Policy              Policy
	Filter              *RecallFilter
	IncludeSurroundings bool
}

// Preview recalls without a session, by a policy of this call, for people and tools. Nothing is recorded, and so
// nothing of it may enter a model's input. To recall for a model, open a session and begin a run.
//
// Reasons: SEMANTIC_UNAVAILABLE, NAMESPACE_TOO_LARGE.
func (m *Memory) Preview(ctx context.Context, query string, options *PreviewOptions) (Recall, error) {
	chosen := orDefault(options)
	var response pb.PreviewRecallResponse
	err := m.call(ctx, &pb.PreviewRecallRequest{
		Query:               query,
		Policy:              chosen.Policy.toProto(),
		Filter:              stated(chosen.Filter, RecallFilter.toProto),
		IncludeSurroundings: chosen.IncludeSurroundings,
	}, &response)
	if err != nil {
		return Recall{}, err
	}
	return recallOf(m.namespace, response.GetChangeToken(), response.GetResult()), nil
}

// UsageOptions is what may be left out of Usage.
type UsageOptions struct {
	// NodeIDs names at most 128 nodes. Default: all that have been admitted or used.
	NodeIDs []string
	// PageSize is how many to read at once. Default: the server's.
	PageSize int32
}

// Usage is the admissions and uses per node revision.
func (m *Memory) Usage(options *UsageOptions) *Pages[UsageSummary] {
	chosen := orDefault(options)
	return &Pages[UsageSummary]{func(ctx context.Context, token string) (Page[UsageSummary], error) {
		var response pb.GetUsageSummaryResponse
		err := m.call(ctx, &pb.GetUsageSummaryRequest{
			NodeIds:   chosen.NodeIDs,
			PageSize:  chosen.PageSize,
			PageToken: token,
		}, &response)
		return page(response.GetSummaries(), usageSummaryOf, &response, response.GetNextPageToken()), err
	}}
}
