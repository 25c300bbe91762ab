package durablememory

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A time or duration that is zero is one that is not stated. Times of the service are in UTC, to the microsecond.

func toTimestamp(moment time.Time) *timestamppb.Timestamp {
	if moment.IsZero() {
		return nil
	}
	return timestamppb.New(moment)
}

func fromTimestamp(stamp *timestamppb.Timestamp) time.Time {
	if stamp == nil {
		return time.Time{}
	}
	return stamp.AsTime()
}

func toDuration(span time.Duration) *durationpb.Duration {
	if span == 0 {
		return nil
	}
	return durationpb.New(span)
}

func fromDuration(span *durationpb.Duration) time.Duration { return span.AsDuration() }

// optional is nil for the zero value, where zero means that nothing is stated.
func optional[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
