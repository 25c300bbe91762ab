// Package durablememory is the client of Durable Memory, the memory of record for AI agents: errors by reason, safe
// retries, and a test server ([durablememory.dev/go/dmtest]).
//
// [NewClient] connects; a [Client] is also a view of its default namespace, and [Client.In] gives views of others. An
// agent proposes what it heard ([Memory.Propose]), somebody with that right activates it ([Memory.Activate]), and a turn
// recalls it in a [Run] of a [Session], shows it to a model ([Render]), and records what was used.
//
// NewClient takes options. Each call takes what may be left out of it as a struct; nil is all defaults. Pointers in such
// a struct are for values where zero means something: new(0.5) states one.
//
// Every call that changes something has a request id, which all its attempts share: an unavailable service is asked
// again without ever doing a thing twice. Every call has a deadline, all attempts together: that of its context, else
// 10 seconds. Streams have that of their context alone.
//
// An error of the service is an [*Error]. errors.Is finds its reason in it, such as [ReasonRevisionConflict], and
// [ErrUnavailable] where the service cannot answer now. The reasons in the comment of a call are those that it adds to
// the ones that any call may have.
package durablememory
