package durablememory

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// RecallAllOptions is what may be left out of RecallAll.
type RecallAllOptions struct {
	// MaxResults cuts the whole. Default: what each session gives.
	MaxResults int
	RecallOptions
}

// RecallAll recalls in several runs, each of a namespace of its own, at once. Nothing is admitted: give what you use to
// [AdmitAll]. With EmptyWhenUnavailable, a namespace out of reach has no hits.
func RecallAll(ctx context.Context, runs []*Run, query string, options *RecallAllOptions) (MergedRecall, error) {
	chosen := orDefault(options)
	parts, err := atOnce(ctx, runs, func(ctx context.Context, run *Run) (Recall, error) {
		return run.Recall(ctx, query, &chosen.RecallOptions)
	})
	if err != nil {
		return MergedRecall{}, err
	}
	merged := MergedRecall{Parts: parts}
	for rank, more := 0, true; more; rank++ {
		more = false
		for _, part := range parts {
			if rank < len(part.Hits) {
				merged.Hits = append(merged.Hits, part.Hits[rank])
				more = true
			}
		}
	}
	if chosen.MaxResults > 0 && len(merged.Hits) > chosen.MaxResults {
		merged.Hits = merged.Hits[:chosen.MaxResults]
	}
	return merged, nil
}

// AdmitAll admits each hit in the run of its namespace. The answer has the hits that may stay, in the order given, and
// the outcomes run by run. It fails for a hit of a namespace that no run is of.
func AdmitAll(ctx context.Context, runs []*Run, hits []Hit, options *AdmitOptions) (Admission, error) {
	shares, err := sharesOf(runs, hits)
	if err != nil {
		return Admission{}, err
	}
	admissions, err := atOnce(ctx, shares, func(ctx context.Context, share share) (Admission, error) {
		return share.run.Admit(ctx, share.hits, options)
	})
	if err != nil {
		return Admission{}, ofSeveral(err, len(shares) > 1)
	}
	var whole Admission
	may := make([]bool, len(hits))
	for i, admission := range admissions {
		whole.Outcomes = append(whole.Outcomes, admission.Outcomes...)
		whole.Err = errors.Join(whole.Err, admission.Err)
		for j, outcome := range admission.Outcomes {
			may[shares[i].places[j]] = outcome.Admitted()
		}
	}
	for place, hit := range hits {
		if may[place] {
			whole.Hits = append(whole.Hits, hit)
		}
	}
	return whole, nil
}

// RecordUseAll records the use of each hit in the run of its namespace; the outcomes run by run. It fails for a hit of
// a namespace that no run is of.
func RecordUseAll(ctx context.Context, runs []*Run, used []Hit) ([]UseOutcome, error) {
	shares, err := sharesOf(runs, used)
	if err != nil {
		return nil, err
	}
	recorded, err := atOnce(ctx, shares, func(ctx context.Context, share share) ([]UseOutcome, error) {
		return share.run.RecordUse(ctx, share.hits, nil)
	})
	var outcomes []UseOutcome
	for _, part := range recorded {
		outcomes = append(outcomes, part...)
	}
	return outcomes, ofSeveral(err, len(shares) > 1)
}

// share is the hits that belong to one run, and their places among all.
type share struct {
	run    *Run
	hits   []Hit
	places []int
}

// sharesOf is the shares that have hits, in the order of the runs.
func sharesOf(runs []*Run, hits []Hit) ([]share, error) {
	shares := make([]share, 0, len(runs))
	index := map[Namespace]int{}
	for _, run := range runs {
		if _, twice := index[run.Namespace()]; !twice {
			index[run.Namespace()] = len(shares)
			shares = append(shares, share{run: run})
		}
	}
	for place, hit := range hits {
		at, known := index[hit.Namespace]
		if !known {
			return nil, fmt.Errorf("durablememory: no run is of the namespace of a hit: %+v", hit.Namespace)
		}
		shares[at].hits = append(shares[at].hits, hit)
		shares[at].places = append(shares[at].places, place)
	}
	wanted := shares[:0]
	for _, share := range shares {
		if len(share.hits) > 0 {
			wanted = append(wanted, share)
		}
	}
	return wanted, nil
}

// atOnce does something with all at once; the results in order. The first error cancels the others, and is returned
// when they have ended.
func atOnce[T, R any](ctx context.Context, items []T, do func(context.Context, T) (R, error)) ([]R, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]R, len(items))
	var group sync.WaitGroup
	var once sync.Once
	var failed error
	for i, item := range items {
		group.Go(func() {
			result, err := do(ctx, item)
			if err != nil {
				once.Do(func() { failed = err })
				cancel()
				return
			}
			results[i] = result
		})
	}
	group.Wait()
	if failed != nil {
		return nil, failed
	}
	return results, nil
}
