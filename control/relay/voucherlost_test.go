package relay

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"porchlight/test/programs"
)

// between stands before a node's port for peers, as a network does.
type between struct {
	to    string
	does  atomic.Int32 // one of the following
	calls atomic.Int32 // connections since does was set
}

const (
	opens   = iota // everything
	ends           // nothing: each connection is closed at once
	holds          // nothing: each connection is taken, and nobody answers
	tlsOnly        // what begins as TLS
)

func (b *between) set(does int32) { b.does.Store(does); b.calls.Store(0) }

// run serves until l is closed.
func (b *between) run(l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	over := make(chan struct{})
	defer close(over)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b.calls.Add(1)
		does := b.does.Load()
		wg.Go(func() {
			defer conn.Close()
			if does == ends {
				return
			}
			if does == holds {
				<-over
				return
			}
			b.pass(conn, does, over)
		})
	}
}

func (b *between) pass(conn net.Conn, does int32, over <-chan struct{}) {
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil || does == tlsOnly && first[0] == voucherMark {
		return
	}
	on, err := net.Dial("tcp", b.to)
	if err != nil {
		return
	}
	defer on.Close()
	ended := make(chan struct{})
	defer func() { <-ended }()
	go func() {
		select {
		case <-over:
		case <-ended:
		}
		_, _ = conn.Close(), on.Close()
	}()
	go func() {
		defer close(ended)
		_, _ = io.Copy(conn, on)
		_ = conn.Close()
	}()
	if _, err := on.Write(first[:]); err == nil {
		_, _ = io.Copy(on, conn)
	}
	_ = on.(*net.TCPConn).CloseWrite()
}

// A node that is too busy to answer keeps its vouchers: who is silent is not asked a
// second time, and the key outlasts a full door. Only where TLS gets through, and
// vouchers time and again do not, visitors go inside it.
func TestVouchersOfABusyNode(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one := serveNode(t, store, "one", nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	way := &between{}
	two := serveNode(t, store, "two", func(c *Config) {
		way.to = c.Peers.Address
		c.Peers.Address = l.Addr().String()
	})
	go way.run(l)
	t.Cleanup(func() { _ = l.Close() })
	one.sees(t, 2)
	realAgent(t, "maya", two)
	hello := recordHello(t, &tls.Config{ServerName: "notes.maya.localhost"})
	one.comesBackFrom(t, hello)
	one.holdsKeyOf(t, two)
	key := one.vouchers.keyFor(two.row())
	keeps := func(what string) {
		t.Helper()
		if one.vouchers.keyFor(two.row()) != key {
			t.Errorf("%s: the key is dropped", what)
		}
	}
	// visits tries once, also where the node was not reached a moment ago.
	visits := func() error {
		one.directory.mu.Lock()
		clear(one.directory.unreached)
		one.directory.mu.Unlock()
		conn := visit(t, one.addr, hello)
		defer conn.Close()
		got := make([]byte, len(hello))
		if _, err := io.ReadFull(conn, got); err != nil {
			return err
		}
		if string(got) != string(hello) {
			return errors.New("it was turned away")
		}
		return nil
	}
	way.set(holds)
	if visits() == nil || way.calls.Load() != 1 {
		t.Errorf("a node that is silent was asked %d times", way.calls.Load())
	}
	keeps("silence")
	way.set(ends)
	for range 2 * silentVouchers {
		_ = visits()
	}
	keeps("a full door")
	way.set(opens)
	before := one.Stats().PassedPlain
	if err := visits(); err != nil || one.Stats().PassedPlain != before+1 {
		t.Errorf("as it answers again: %v, %d behind vouchers", err, one.Stats().PassedPlain-before)
	}
	keeps("answers")
	way.set(tlsOnly)
	for range silentVouchers {
		keeps("what TLS only gets through")
		if err := visits(); err != nil {
			t.Errorf("inside TLS: %v", err)
		}
	}
	programs.Eventually(t, "the key is dropped", func() bool { return one.vouchers.keyFor(two.row()) == nil })
	before, calls := one.Stats().PassedPlain, way.calls.Load()
	if err := visits(); err != nil || one.Stats().PassedPlain != before || way.calls.Load() != calls+1 {
		t.Errorf("then: %v, %d behind vouchers, %d connections", err, one.Stats().PassedPlain-before, way.calls.Load()-calls)
	}
}
