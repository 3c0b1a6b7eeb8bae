package relay

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control/relay/clienthello"
	"porchlight/test/programs"
)

// atDoor is how many have not shown yet who they are.
func atDoor(r *Relay) int {
	r.door.mu.Lock()
	defer r.door.mu.Unlock()
	n := 0
	for _, theirs := range r.door.sources {
		n += theirs.count
	}
	if n != r.door.count {
		panic("the door's two accounts differ")
	}
	return n
}

// Weakness: connections that say nothing fill the door, and who comes then is
// refused although nobody does any work. Checked: whoever comes gets in, who has
// been silent longest goes for it, within a source where that has its share, and
// none goes without need.
func TestTheOldestGoesForANewcomer(t *testing.T) {
	t.Parallel()
	d := newDoor(200, 64)
	source := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32)
	}
	var line []*newcomer
	enter := func(i int) *newcomer {
		c, sent, ok := d.enter(nil, source(i))
		if !ok {
			t.Fatal("somebody was refused")
		}
		line = append(line, c)
		return sent
	}
	for i := range 200 {
		if enter(i/20) != nil {
			t.Fatalf("somebody went for the %dth of 200", i+1)
		}
	}
	if got := enter(100); got != line[0] {
		t.Error("the oldest did not go for another source")
	}
	d.heard(line[1])
	if got := enter(101); got != line[2] {
		t.Error("who had said something went before one who had not")
	}
	// A source that has its share loses its own.
	for range 31 {
		enter(101)
	}
	own := line[len(line)-32]
	if got := enter(101); got != own {
		t.Error("a source with its share took another's place")
	}
	if own.inAll != nil || d.inside() != 200 {
		t.Errorf("%d are here", d.inside())
	}
	d.release(own) // a second time changes nothing
	for _, c := range line {
		d.release(c)
	}
	if d.inside() != 0 || len(d.sources) != 0 {
		t.Errorf("%d of %d sources are left", d.inside(), len(d.sources))
	}
}

// Weakness: connections that are never heard of again take every place at the
// door for as long as they may. Attack: from many addresses at once, several
// times as many of them as there are places, while people visit. Checked: every
// visit comes about, the agent's data connections too, and the log and the numbers
// name the limit.
func TestVisitsPassAFloodOfSilence(t *testing.T) {
	t.Parallel()
	const places, sources = 64, 8
	var log logLines
	r, addr := serveRelay(t, func(c *Config) {
		c.Limits.Handshakes, c.Limits.HandshakesPerSource = places, places/2
		c.FirstBytes, c.Log = longest, slog.New(slog.NewJSONHandler(&log, nil))
		c.Now = (&clock{now: time.Now()}).Now // which stands: all is within a minute
	}, nil)
	a := connectAgent(t, addr, "maya")
	opened := uint64(0)
	flood := func(n int) {
		for range n {
			opened++
			conn := dialFrom(t, fmt.Sprintf("127.0.0.%d", 10+opened%sources), addr)
			_, _ = conn.Write([]byte{clienthello.Handshake}) // or the kernel keeps it to itself
		}
		programs.Eventually(t, "the door is full", func() bool {
			return atDoor(r) == places && r.Stats().LimitedBy["handshakes"] >= opened-places
		})
	}
	flood(places)
	hello := programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost"})
	for i := range 20 {
		flood(places / 4)
		visitor := dialFrom(t, "127.0.0.2", addr)
		if _, err := visitor.Write(hello); err != nil {
			t.Fatalf("visit %d: %v", i, err)
		}
		ticket := a.ticket()
		data := a.open(ticket)
		a.visitor(data, ticket)
		exchange(t, data, visitor, "answer")
	}
	if n := strings.Count(log.String(), `"limit":"handshakes"`); n != 1 {
		t.Errorf("the log names the limit %d times within a minute:\n%s", n, log.String())
	}
}

// logLines may be read while it is written to.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
