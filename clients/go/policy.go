package durablememory

import (
	_ "embed"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Deadlines and retries as data that the clients of all languages share: a copy of clients/service_config.json.
//
//go:embed service_config.json
var serviceConfigJSON []byte

const (
	jitter          = 0.2
	retryInfoGrowth = 1.5
	retryInfoMax    = 5 * time.Second
)

// retryPolicy is a gRPC retry policy; maxAttempts includes the first. It is executed here and not by the library,
// which does not say how often it repeated a call, and whether an error is definite hangs on that.
type retryPolicy struct {
	maxAttempts    int
	initialBackoff time.Duration
	maxBackoff     time.Duration
	multiplier     float64
	codes          map[codes.Code]bool
}

// backoff is how long to wait after the failed attempt with this number, from 1.
func (p *retryPolicy) backoff(attempt int) time.Duration {
	exact := float64(p.initialBackoff) * math.Pow(p.multiplier, float64(attempt-1))
	return spread(min(float64(p.maxBackoff), exact))
}

// callPolicy is what one RPC has: the default deadline of the whole call, all attempts together, zero for streams.
type callPolicy struct {
	timeout time.Duration
	retry   *retryPolicy
}

// delay is how long to wait before the next attempt, and whether there is to be one. Unavailable waits by the retry
// policy; a reason with RetryInfo waits as the service says, as often as the deadline allows. Nothing else is ever
// repeated. A positive maxAttempts bounds both from above.
func (p callPolicy) delay(err *Error, attempt, maxAttempts int) (time.Duration, bool) {
	if p.retry == nil || (maxAttempts > 0 && attempt >= maxAttempts) {
		return 0, false
	}
	if p.retry.codes[err.Code] {
		return p.retry.backoff(attempt), attempt < p.retry.maxAttempts
	}
	row, known := reasons().rows[err.Reason]
	if !known || row.Retry != "retry_info" || err.RetryAfter <= 0 {
		return 0, false
	}
	wait := float64(err.RetryAfter) * math.Pow(retryInfoGrowth, float64(attempt-1))
	return spread(min(float64(retryInfoMax), wait)), true
}

// policyOf is the policy of one RPC, by its full name such as /durablememory.v1.MemoryService/Remember: the most
// specific entry alone counts.
func policyOf(fullMethod string) callPolicy {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	for _, name := range []methodName{{service, method}, {service, ""}, {"", ""}} {
		if policy, ok := policies()[name]; ok {
			return policy
		}
	}
	return callPolicy{}
}

type methodName struct{ service, method string }

var policies = sync.OnceValue(func() map[methodName]callPolicy {
	var config struct {
		MethodConfig []struct {
			Name []struct {
				Service string `json:"service"`
				Method  string `json:"method"`
			} `json:"name"`
			Timeout     string `json:"timeout"`
			RetryPolicy *struct {
				MaxAttempts          int      `json:"maxAttempts"`
				InitialBackoff       string   `json:"initialBackoff"`
				MaxBackoff           string   `json:"maxBackoff"`
				BackoffMultiplier    float64  `json:"backoffMultiplier"`
				RetryableStatusCodes []string `json:"retryableStatusCodes"`
			} `json:"retryPolicy"`
		} `json:"methodConfig"`
	}
	mustDecode(serviceConfigJSON, &config)
	found := map[methodName]callPolicy{}
	for _, entry := range config.MethodConfig {
		policy := callPolicy{timeout: seconds(entry.Timeout)}
		if row := entry.RetryPolicy; row != nil {
			policy.retry = &retryPolicy{
				maxAttempts:    row.MaxAttempts,
				initialBackoff: seconds(row.InitialBackoff),
				maxBackoff:     seconds(row.MaxBackoff),
				multiplier:     row.BackoffMultiplier,
				codes:          map[codes.Code]bool{},
			}
			for _, name := range row.RetryableStatusCodes {
				policy.retry.codes[codeOf(name)] = true
			}
		}
		for _, name := range entry.Name {
			found[methodName{name.Service, name.Method}] = policy
		}
	}
	return found
})

// seconds reads a duration of proto JSON; an empty one is zero.
func seconds(text string) time.Duration {
	if text == "" {
		return 0
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		panic("durablememory: embedded data: " + err.Error())
	}
	return duration
}

// spread keeps callers that failed together from coming back together.
func spread(nanoseconds float64) time.Duration {
	return time.Duration(nanoseconds * (1 - jitter + 2*jitter*rand.Float64()))
}
