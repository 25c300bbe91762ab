package durablememory

import (
	"cmp"
	"context"
	"errors"
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// Nobody has to call these for recall to be right: the service keeps the index up to date by itself. All of them fail
// with SEMANTIC_UNAVAILABLE where the server has no semantic generation.

// RefreshOptions is what may be left out of RefreshSemanticRecall.
type RefreshOptions struct {
	// Requirement is what the backend must promise. Default: INDEX_REVISION_CAS.
	Requirement IndexConsistency
	// Rebuild writes every segment anew, from cached vectors.
	Rebuild bool
	// OnProgress is called with every step.
	OnProgress func(RefreshProgress)
	RequestID  string
}

// RefreshSemanticRecall makes the index cover every ACTIVE memory, and waits for that, for as long as it takes or until
// ctx ends, which ends the refresh. The session says which generation you count on. A lost connection is taken up again
// by the retry policy of all calls, and vectors that were made are not made twice.
//
// Reasons: SESSION_NOT_FOUND, SESSION_CLOSED, SEMANTIC_UNAVAILABLE (no generation, or the provider failed),
// CONSISTENCY_UNSUPPORTED, LEASE_HELD (somebody else refreshes it now), LEASE_FENCED, INDEX_REVISION_CONFLICT,
// SOURCE_DRIFT, QUOTA_EXCEEDED. One that ends without a receipt is [ErrIncomplete].
func (m *Memory) RefreshSemanticRecall(ctx context.Context, sessionID string, options *RefreshOptions) (RefreshReceipt, error) {
	chosen := orDefault(options)
	request := &pb.RefreshSemanticRecallRequest{
		RequestId:   cmp.Or(chosen.RequestID, newID()),
		SessionId:   sessionID,
		Requirement: toEnum[pb.IndexConsistency](cmp.Or(chosen.Requirement, IndexConsistencyIndexRevisionCAS)),
		Rebuild:     chosen.Rebuild,
	}
	policy := policyOf(pb.SemanticService_RefreshSemanticRecall_FullMethodName)
	var before *Error // of the attempt before
	for attempt := 1; ; attempt++ {
		receipt, err := m.refresh(ctx, request, chosen.OnProgress, attempt)
		failed, ok := err.(*Error)
		if !ok && err != nil && before != nil && !errors.Is(err, ErrIncomplete) {
			return RefreshReceipt{}, before.unrepeated(err) // this attempt was not sent
		}
		if !ok {
			return receipt, err
		}
		if failed.Attempts == 0 && before != nil {
			return RefreshReceipt{}, before.endedBy(ctx) // nor was this one
		}
		before = failed
		delay, again := policy.delay(failed, attempt, asTheyTake)
		if !again {
			return RefreshReceipt{}, failed
		}
		if !waits(ctx, delay) {
			return RefreshReceipt{}, failed.endedBy(ctx)
		}
	}
}

// refresh is one attempt. Its error is an *Error where the call failed.
func (m *Memory) refresh(
	ctx context.Context, request *pb.RefreshSemanticRecallRequest, onProgress func(RefreshProgress), attempt int,
) (RefreshReceipt, error) {
	var receipt *RefreshReceipt
	for message, err := range m.stream(ctx, request, attempt) {
		if err != nil {
			return RefreshReceipt{}, err
		}
		switch part := message.(*pb.RefreshSemanticRecallResponse).GetMessage().(type) {
		case *pb.RefreshSemanticRecallResponse_Receipt:
			receipt = new(refreshReceiptOf(part.Receipt))
		case *pb.RefreshSemanticRecallResponse_Progress:
			if onProgress != nil {
				onProgress(refreshProgressOf(part.Progress))
			}
		}
	}
	if receipt == nil {
		return RefreshReceipt{}, incomplete("the refresh ended before its receipt")
	}
	return *receipt, nil
}

// GetIndexStatus is how the index stands, and how many ACTIVE memories it does not cover.
func (m *Memory) GetIndexStatus(ctx context.Context) (IndexStatus, error) {
	var response pb.GetIndexStatusResponse
	if err := m.call(ctx, &pb.GetIndexStatusRequest{}, &response); err != nil {
		return IndexStatus{}, err
	}
	return indexStatusOf(response.GetStatus()), nil
}

// ListReceipts is the receipts of all refreshes, newest first.
func (m *Memory) ListReceipts(options *ListOptions) *Pages[RefreshReceipt] {
	chosen := orDefault(options)
	return &Pages[RefreshReceipt]{func(ctx context.Context, token string) (Page[RefreshReceipt], error) {
		var response pb.ListReceiptsResponse
		err := m.call(ctx, &pb.ListReceiptsRequest{PageSize: chosen.PageSize, PageToken: token}, &response)
		return page(response.GetReceipts(), refreshReceiptOf, &response, response.GetNextPageToken()), err
	}}
}

// ClearPartitionOptions is what may be left out of ClearPartition.
type ClearPartitionOptions struct {
	RequestID string
}

// ClearPartition forgets what is published. Memories are not touched; the next refresh builds it from cached vectors.
//
// Reasons: LEASE_HELD (a refresh is running), LEASE_FENCED.
func (m *Memory) ClearPartition(ctx context.Context, options *ClearPartitionOptions) (RefreshReceipt, error) {
	var response pb.ClearPartitionResponse
	if err := m.call(ctx, &pb.ClearPartitionRequest{RequestId: orDefault(options).RequestID}, &response); err != nil {
		return RefreshReceipt{}, err
	}
	return refreshReceiptOf(response.GetReceipt()), nil
}

// ScheduleOptions is when the index is refreshed by itself from now on, each from 1 second to 366 days; 0 switches it
// off.
type ScheduleOptions struct {
	Interval      time.Duration
	OnChangeDelay time.Duration
	RequestID     string
}

// SetSchedule sets when the index is refreshed by itself. Reasons: INVALID_FIELD.
func (m *Memory) SetSchedule(ctx context.Context, options *ScheduleOptions) (RefreshSchedule, error) {
	chosen := orDefault(options)
	var response pb.SetScheduleResponse
	err := m.call(ctx, &pb.SetScheduleRequest{
		RequestId:     chosen.RequestID,
		Interval:      toDuration(chosen.Interval),
		OnChangeDelay: toDuration(chosen.OnChangeDelay),
	}, &response)
	if err != nil {
		return RefreshSchedule{}, err
	}
	return refreshScheduleOf(response.GetSchedule()), nil
}

// GetMaintenanceHealth is how the maintenance of the answering process is doing, and what became of the namespace's
// refreshes.
func (m *Memory) GetMaintenanceHealth(ctx context.Context) (MaintenanceHealth, error) {
	var response pb.GetMaintenanceHealthResponse
	if err := m.call(ctx, &pb.GetMaintenanceHealthRequest{}, &response); err != nil {
		return MaintenanceHealth{}, err
	}
	return MaintenanceHealth{
		Process:     present(response.GetHealth(), processHealthOf),
		LastReceipt: present(response.GetLastReceipt(), refreshReceiptOf),
		Runs:        each(response.GetRuns(), maintenanceRunOf),
	}, nil
}
