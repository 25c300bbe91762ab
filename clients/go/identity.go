package durablememory

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

var lastMillisecond struct {
	sync.Mutex
	value int64
}

// newID is a UUID of version 7: unique, and in the order in which this process made them, up to the millisecond.
func newID() string {
	lastMillisecond.Lock()
	// A clock that is set back must not break the order.
	lastMillisecond.value = max(lastMillisecond.value, time.Now().UnixMilli())
	milliseconds := lastMillisecond.value
	lastMillisecond.Unlock()

	var id [16]byte
	_, _ = rand.Read(id[6:]) // never fails: crypto/rand ends the program instead
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], uint64(milliseconds))
	copy(id[:6], stamp[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// hostInstance identifies this process to the service.
var hostInstance = sync.OnceValue(newID)
