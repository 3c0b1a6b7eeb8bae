package news_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"porchlight/control/news"
	"porchlight/test/programs"
)

// way is what lies between two nodes, and can be cut.
type way struct {
	net.Listener
	to string

	mu    sync.Mutex // guards what follows
	cut   bool
	conns []net.Conn
}

func openWay(t *testing.T, to string) *way {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	w := &way{Listener: l, to: to}
	programs.ServeConns(t, l, w.carry)
	t.Cleanup(func() { w.set(true) })
	return w
}

func (w *way) carry(from net.Conn) {
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer to.Close()
	w.mu.Lock()
	cut := w.cut
	w.conns = append(w.conns, from, to)
	w.mu.Unlock()
	if cut {
		return
	}
	go func() { defer to.Close(); _, _ = io.Copy(to, from) }()
	_, _ = io.Copy(from, to)
}

// set cuts the way or has it go again.
func (w *way) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// When the connection between two nodes breaks, nobody is sure that no other node has a
// tunnel: not from the first moment on, not while the other one is only silent, and not
// when it is heard again and has not yet said all that it has.
func TestNobodyIsSureWhileAWayIsCut(t *testing.T) {
	t.Parallel()
	one, two := open(t, "one", nil), open(t, "two", nil)
	ways := []*way{openWay(t, one.Address()), openWay(t, two.Address())}
	two.Know([]news.Node{{Name: "one", Run: one.self.Run, Address: ways[0].Addr().String()}})
	one.Know([]news.Node{{Name: "two", Run: two.self.Run, Address: ways[1].Addr().String()}})
	one.calm(t)
	two.calm(t)
	const host = "c2999.porch.test"
	for i := range 3000 {
		two.Hold(fmt.Sprintf("c%d.porch.test", i), func(string) bool { return true })
	}
	// held asks as who looks for a tunnel does.
	asked := 0
	held := func() bool {
		t.Helper()
		asked++
		found, without := one.Holders(t.Context(), host, 1)
		if len(without) > 0 {
			t.Fatal("it is sure that nobody has a tunnel that two has")
		}
		return len(found) == 1
	}
	programs.Eventually(t, "two says that it has the tunnel", func() bool {
		found, _ := one.Holders(t.Context(), host, 1)
		return len(found) == 1
	})
	for range 2 {
		for _, w := range ways {
			w.set(true)
		}
		programs.Eventually(t, "two is not heard", func() bool {
			return !held() && slices.Equal(one.Unheard(0), []string{two.self.Run})
		})
		for _, w := range ways {
			w.set(false)
		}
		programs.Eventually(t, "two says again that it has the tunnel", held)
	}
	programs.Eventually(t, "it is sure again that nobody has another", func() bool {
		found, without := one.Holders(t.Context(), "nobody.porch.test", 1)
		return len(found) == 0 && slices.Equal(without, []string{two.self.Run})
	})
	if asked < 10 {
		t.Errorf("asked %d times", asked)
	}
}
