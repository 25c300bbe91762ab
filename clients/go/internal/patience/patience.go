// Package patience is how long those wait for the service who can go on without it. They are variables for tests of
// what does not hang on that: a busy machine must not fail them.
package patience

import "time"

// A client keeps what they were when it was made.
var (
	// Timeout bounds what may go without an answer, with all that has to come before it.
	Timeout = 2 * time.Second
	// Pause is how long, after an outage, calls that may go without an answer do so at once.
	Pause = 2 * time.Second
)
