package durablememory

import (
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// RefreshProgress is what a refresh has reached: Done of Total texts have their vectors, as far as it knows.
type RefreshProgress struct {
	Phase RefreshPhase
	Done  int64
	Total int64
}

func refreshProgressOf(message *pb.RefreshProgress) RefreshProgress {
	return RefreshProgress{
		Phase: fromEnum[RefreshPhase](message.GetPhase()),
		Done:  message.GetDone(),
		Total: message.GetTotal(),
	}
}

// RefreshWork is what one refresh did. ProviderCalls is 0 when every vector was cached; Refused texts have none.
type RefreshWork struct {
	Added          int64
	Replaced       int64
	Removed        int64
	CacheHits      int64
	ProviderCalls  int64
	ProviderInputs int64
	ProviderBytes  int64
	StagedBytes    int64
	Duration       time.Duration
	Refused        int64
}

func refreshWorkOf(message *pb.RefreshWork) RefreshWork {
	return RefreshWork{
		Added:          message.GetAdded(),
		Replaced:       message.GetReplaced(),
		Removed:        message.GetRemoved(),
		CacheHits:      message.GetCacheHits(),
		ProviderCalls:  message.GetProviderCalls(),
		ProviderInputs: message.GetProviderInputs(),
		ProviderBytes:  message.GetProviderBytes(),
		StagedBytes:    message.GetStagedBytes(),
		Duration:       fromDuration(message.GetDuration()),
		Refused:        message.GetRefused(),
	}
}

// RefreshReceipt is the record of one refresh: what the index covers since then. IndexRevision 0: nothing is published.
type RefreshReceipt struct {
	AuthorityDigest      string
	Fence                int64
	IndexRevision        int64
	IndexHistoryDigest   string
	Source               ChangeToken
	ActiveCount          int64
	IndexedCount         int64
	Consistency          IndexConsistency
	Work                 RefreshWork
	CompletedBySuccessor bool
	WrittenAt            time.Time
}

func refreshReceiptOf(message *pb.RefreshReceipt) RefreshReceipt {
	return RefreshReceipt{
		AuthorityDigest:      message.GetAuthorityDigest(),
		Fence:                message.GetFence(),
		IndexRevision:        message.GetIndexRevision(),
		IndexHistoryDigest:   message.GetIndexHistoryDigest(),
		Source:               changeTokenOf(message.GetSource()),
		ActiveCount:          message.GetActiveCount(),
		IndexedCount:         message.GetIndexedCount(),
		Consistency:          fromEnum[IndexConsistency](message.GetConsistency()),
		Work:                 refreshWorkOf(message.GetWork()),
		CompletedBySuccessor: message.GetCompletedBySuccessor(),
		WrittenAt:            fromTimestamp(message.GetWrittenAt()),
	}
}

// RefreshSchedule is when an index is refreshed by itself; 0 is off.
type RefreshSchedule struct {
	Interval      time.Duration
	OnChangeDelay time.Duration
	SetBy         string
	SetAt         time.Time
}

func refreshScheduleOf(message *pb.RefreshSchedule) RefreshSchedule {
	return RefreshSchedule{
		Interval:      fromDuration(message.GetInterval()),
		OnChangeDelay: fromDuration(message.GetOnChangeDelay()),
		SetBy:         message.GetSetBy(),
		SetAt:         fromTimestamp(message.GetSetAt()),
	}
}

// PublishedIndex is a published index. DeadCount vectors are stored and no longer count; StoredBytes includes them.
type PublishedIndex struct {
	IndexRevision      int64
	IndexHistoryDigest string
	Fence              int64
	Source             ChangeToken
	LiveCount          int64
	DeadCount          int64
	StoredBytes        int64
	SegmentCount       int32
	FloatBits          int32
}

func publishedIndexOf(message *pb.PublishedIndex) PublishedIndex {
	return PublishedIndex{
		IndexRevision:      message.GetIndexRevision(),
		IndexHistoryDigest: message.GetIndexHistoryDigest(),
		Fence:              message.GetFence(),
		Source:             changeTokenOf(message.GetSource()),
		LiveCount:          message.GetLiveCount(),
		DeadCount:          message.GetDeadCount(),
		StoredBytes:        message.GetStoredBytes(),
		SegmentCount:       message.GetSegmentCount(),
		FloatBits:          message.GetFloatBits(),
	}
}

// IndexStatus is how the index of a namespace stands.
type IndexStatus struct {
	ChangeToken ChangeToken
	Generation  SemanticGeneration
	State       IndexState
	Published   *PublishedIndex
	LastReceipt *RefreshReceipt
	// UnindexedActiveCount is the ACTIVE memories that are found by words only, as of ChangeToken; RefusedCount those of
	// the last receipt's that are, because the provider refuses to embed them.
	UnindexedActiveCount int64
	RefusedCount         int64
	// LastFailure is why the latest run failed; empty if it did not, or a refresh has come through since.
	LastFailure string
	// Schedule is nil where the server's default holds.
	Schedule *RefreshSchedule
}

func indexStatusOf(message *pb.IndexStatus) IndexStatus {
	return IndexStatus{
		ChangeToken:          changeTokenOf(message.GetChangeToken()),
		Generation:           semanticGenerationOf(message.GetGeneration()),
		State:                fromEnum[IndexState](message.GetState()),
		Published:            present(message.GetPublished(), publishedIndexOf),
		LastReceipt:          present(message.GetLastReceipt(), refreshReceiptOf),
		UnindexedActiveCount: message.GetUnindexedActiveCount(),
		RefusedCount:         message.GetRefusedCount(),
		LastFailure:          message.GetLastFailure(),
		Schedule:             present(message.GetSchedule(), refreshScheduleOf),
	}
}

// MaintenanceRun is a refresh that was run by schedule, or that failed. Error names the reason and its cause, without
// content; Fence is that of its lease, 0 if it ended before it had one.
type MaintenanceRun struct {
	StartedAt     time.Time
	EndedAt       time.Time
	Outcome       MaintenanceRunOutcome
	Error         string
	IndexRevision int64
	Fence         int64
}

func maintenanceRunOf(message *pb.MaintenanceRun) MaintenanceRun {
	return MaintenanceRun{
		StartedAt:     fromTimestamp(message.GetStartedAt()),
		EndedAt:       fromTimestamp(message.GetEndedAt()),
		Outcome:       fromEnum[MaintenanceRunOutcome](message.GetOutcome()),
		Error:         message.GetError(),
		IndexRevision: message.GetIndexRevision(),
		Fence:         message.GetFence(),
	}
}

// ProcessHealth is how the maintenance of one server process is doing.
type ProcessHealth struct {
	Phase        MaintenancePhase
	WorkerCount  int32
	RunningCount int32
	RunCount     int64
	FailureCount int64
	LastError    string
	LastErrorAt  time.Time
}

func processHealthOf(message *pb.MaintenanceHealth) ProcessHealth {
	return ProcessHealth{
		Phase:        fromEnum[MaintenancePhase](message.GetPhase()),
		WorkerCount:  message.GetWorkerCount(),
		RunningCount: message.GetRunningCount(),
		RunCount:     message.GetRunCount(),
		FailureCount: message.GetFailureCount(),
		LastError:    message.GetLastError(),
		LastErrorAt:  fromTimestamp(message.GetLastErrorAt()),
	}
}

// MaintenanceHealth is the namespace's last receipt and runs, newest first, whoever ran them; and how the answering
// process is doing, which is told to operators, and nil for everybody else.
type MaintenanceHealth struct {
	Process     *ProcessHealth
	LastReceipt *RefreshReceipt
	Runs        []MaintenanceRun
}
