package tunnel

import (
	"errors"
	"os"
	"porchlight/internal/broadcast"
	"time"
)

// lateBy is how late a ping is due when this process counts as having stood still.
const lateBy = 500 * time.Millisecond

// heard reads what the relay says. Where this process stood still (a machine short of
// memory, a paused one), the relay's time has passed, while its answers may be in the
// socket: then it is asked once more.
type heard struct {
	*session
	again bool // for this frame
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.conn.Read(b)
	if n > 0 || h.again || !errors.Is(err, os.ErrDeadlineExceeded) || !h.stoodStill() {
		return n, err
	}
	h.again = true
	if err := h.conn.SetReadDeadline(time.Now().Add(h.probeWait())); err != nil {
		return 0, err
	}
	broadcast.Raise(h.probes)
	return h.conn.Read(b)
}

// stoodStill says whether a ping was late since the last frame came, or is.
func (s *session) stoodStill() bool { return s.late.Load() || s.overdue() }

// overdue says whether the ping that is due next is late.
func (s *session) overdue() bool {
	return time.Since(s.tunnel.began)-time.Duration(s.due.Load()) > lateBy
}
