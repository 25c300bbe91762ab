package durablememory

import (
	"time"

	"durablememory.dev/go/internal/patience"
)

// UsualPatience is that of clients outside of tests.
var UsualPatience = patience.Timeout

// SetPatience is for a client that makes no call now.
func (c *Client) SetPatience(timeout time.Duration) { c.calls.patience = timeout }
