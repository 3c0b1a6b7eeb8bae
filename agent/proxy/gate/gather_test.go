package gate

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"porchlight/agent/proxy/limits"
	"porchlight/test/programs"
)

// writes is a connection that keeps what each Write brought, and fails from a
// given one on.
type writes struct {
	net.Conn
	got  [][]byte
	fail int // this write and all after fail; zero: none
}

func (*writes) SetWriteDeadline(time.Time) error { return nil }

var errTorn = errors.New("torn")

func (w *writes) Write(p []byte) (int, error) {
	if w.fail > 0 && len(w.got)+1 >= w.fail {
		return len(p) / 2, errTorn
	}
	w.got = append(w.got, bytes.Clone(p))
	return len(p), nil
}

func TestGather(t *testing.T) {
	t.Parallel()
	w := &writes{}
	c := &gatherConn{Conn: w}
	var want []byte
	write := func(n int) {
		t.Helper()
		p := bytes.Repeat([]byte{byte(len(want))}, n)
		want = append(want, p...)
		if got, err := c.Write(p); got != n || err != nil {
			t.Fatal(got, err)
		}
	}
	write(1) // nothing is held yet
	c.hold()
	for range 4 {
		write(limits.Record)
	}
	if len(w.got) != 1 {
		t.Fatalf("%d writes before release", len(w.got))
	}
	write(limits.Record)     // does not fit beside the others
	write(limits.Gather + 1) // fits nowhere
	write(7)
	programs.Must(t, c.release())
	write(2) // at once again
	programs.Must(t, c.release())
	if !bytes.Equal(slices.Concat(w.got...), want) {
		t.Error("the bytes are not those written, in order")
	}
	var sizes []int
	for _, p := range w.got {
		sizes = append(sizes, len(p))
	}
	if !slices.Equal(sizes, []int{1, 4 * limits.Record, limits.Record, limits.Gather + 1, 7, 2}) {
		t.Errorf("sizes of writes: %v", sizes)
	}
}

// After half a record nothing may follow, however often it is tried.
func TestGatherFailsForGood(t *testing.T) {
	t.Parallel()
	w := &writes{fail: 1}
	c := &gatherConn{Conn: w}
	c.hold()
	programs.Got(c.Write([]byte("a record")))(t)
	if err := c.release(); !errors.Is(err, errTorn) {
		t.Fatal(err)
	}
	w.fail = 0
	if _, err := c.Write([]byte("another")); !errors.Is(err, errTorn) || len(w.got) > 0 {
		t.Errorf("%v, %q went out", err, w.got)
	}
	c.hold()
	if _, err := c.Write([]byte("and another")); !errors.Is(err, errTorn) {
		t.Error(err)
	}
	if err := c.release(); !errors.Is(err, errTorn) || len(w.got) > 0 {
		t.Errorf("%v, %q went out", err, w.got)
	}
}
