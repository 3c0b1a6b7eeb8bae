package kv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

func openPG(t *testing.T, url string) *pgStore {
	t.Helper()
	return openStore(t, url).(*pgStore)
}

func startServer(t *testing.T) *pgtest.Server {
	t.Helper()
	server := programs.Got(pgtest.Start(pgtest.Options{}))(t)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// The server is restarted and killed while 16 writers work. Every update that
// was acknowledged is there, whole, and was carried out once; writers go on by
// themselves.
func TestPostgresRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := startWork(t, openPG(t, server.Database(t)))
	for _, end := range []func() error{server.Kill, server.Shutdown, server.Kill} {
		w.work(500)
		programs.Must(t, end())
		w.forget()
		programs.Must(t, server.StartAgain())
	}
	w.work(500)
	w.check()
}

// cutter stands between a store and its server and can break a connection at the
// moment of a commit. It counts how often the server was done with what was asked:
// every ReadyForQuery ends a round trip (the protocol's "Message Flow", 55.2.3).
type cutter struct {
	net.Listener
	socket string
	trips  atomic.Int64
	rule   atomic.Pointer[func(l *line, sent []byte) (pass bool)]
	wg     sync.WaitGroup
	mu     sync.Mutex // protects open
	open   []net.Conn
}

// line is one connection through the cutter.
type line struct {
	client, server net.Conn
	ready          chan struct{} // a value for every ReadyForQuery of the server
	mute           atomic.Bool   // what the server sends goes nowhere
}

// newCutter listens in a directory of its own, as the server does, and returns
// the URL that leads through it.
func newCutter(t *testing.T, direct string) (*cutter, string) {
	t.Helper()
	u := programs.Got(url.Parse(direct))(t)
	q := u.Query()
	const name = ".s.PGSQL.5432"
	dir := filepath.Join(t.TempDir(), "a b")
	programs.Must(t, os.Mkdir(dir, 0o700))
	l := programs.Got(net.Listen("unix", filepath.Join(dir, name)))(t)
	c := &cutter{Listener: l, socket: filepath.Join(q.Get("host"), name)}
	c.wg.Go(c.serve)
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		for _, conn := range c.open {
			conn.Close()
		}
		c.mu.Unlock()
		c.wg.Wait()
	})
	q.Set("host", dir)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // which is no space in a database's URL
	return c, u.String()
}

func (c *cutter) serve() {
	for {
		client, err := c.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", c.socket)
		if err != nil {
			client.Close()
			continue
		}
		l := &line{client: client, server: server, ready: make(chan struct{}, 1<<12)}
		c.mu.Lock()
		c.open = append(c.open, client, server)
		c.mu.Unlock()
		c.wg.Go(func() { c.up(l) })
		c.wg.Go(func() { c.down(l) })
	}
}

// up carries what the store sends, unless the rule breaks the line, which leaves
// the server's end open.
func (c *cutter) up(l *line) {
	buf := make([]byte, 1<<16)
	for {
		n, err := l.client.Read(buf)
		if rule := c.rule.Load(); rule != nil && n > 0 && !(*rule)(l, buf[:n]) {
			return
		}
		if _, werr := l.server.Write(buf[:n]); err != nil || werr != nil {
			l.server.Close()
			return
		}
	}
}

// down carries what the server sends, also when nobody takes it any more. In
// ReadyForQuery 'Z' and a length of five come before the state.
func (c *cutter) down(l *line) {
	defer close(l.ready)
	defer l.client.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buf)
		if n >= 6 && bytes.Equal(buf[n-6:n-1], []byte{'Z', 0, 0, 0, 5}) {
			c.trips.Add(1)
			l.ready <- struct{}{}
		}
		if !l.mute.Load() {
			_, _ = l.client.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// ask sends what a store sent and waits until the server is done with it.
func (l *line) ask(sent []byte) error {
	for len(l.ready) > 0 {
		<-l.ready
	}
	if _, err := l.server.Write(sent); err != nil {
		return err
	}
	if _, ok := <-l.ready; !ok {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// once installs a rule for the next message that holds mark.
func (c *cutter) once(mark string, rule func(l *line, sent []byte)) {
	var used atomic.Bool
	f := func(l *line, sent []byte) bool {
		if !bytes.Contains(sent, []byte(mark)) || !used.CompareAndSwap(false, true) {
			return true
		}
		rule(l, sent)
		return false
	}
	c.rule.Store(&f)
}

// increment adds one to a counter and says how often its function ran.
func increment(s Store) (runs int, err error) {
	err = s.Update(context.Background(), func(tx Tx) error {
		runs++
		v, err := tx.Get("counter")
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		return tx.Put("counter", append(v, "mark"...), 0)
	})
	return runs, err
}

func counted(t *testing.T, s Store) int {
	t.Helper()
	var v []byte
	err := s.View(context.Background(), func(tx Tx) (err error) {
		v, err = tx.Get("counter")
		return err
	})
	programs.Must(t, err)
	return len(v) / len("mark")
}

// A connection breaks between COMMIT and its answer. What was committed counts
// as committed and is not repeated; what was not, is repeated.
func TestPostgresCommitAnswerLost(t *testing.T) {
	t.Parallel()
	direct := pgtest.Database(t)
	c, through := newCutter(t, direct)
	s, watcher := openPG(t, through), openPG(t, direct)
	if _, err := increment(s); err != nil { // prepares every statement
		t.Fatal(err)
	}

	t.Log("the server carries the commit out, and the answer is lost")
	answered := make(chan error, 1)
	c.once("mark", func(l *line, sent []byte) {
		l.mute.Store(true)
		answered <- l.ask(sent)
		l.client.Close()
	})
	if runs, err := increment(s); err != nil || runs != 1 {
		t.Errorf("after a commit whose answer was lost: %d runs, %v", runs, err)
	}
	if err := await(t, answered); err != nil {
		t.Error(err)
	}
	if n := counted(t, watcher); n != 2 {
		t.Errorf("the counter is %d, want 2", n)
	}

	t.Log("the commit never reaches the server")
	c.once("mark", func(l *line, _ []byte) {
		l.client.Close()
		l.server.Close()
	})
	if runs, err := increment(s); err != nil || runs != 2 {
		t.Errorf("after a commit that was lost: %d runs, %v", runs, err)
	}
	if n := counted(t, watcher); n != 3 {
		t.Errorf("the counter is %d, want 3", n)
	}

	t.Log("the commit reaches the server late, after its outcome was decided")
	type held struct {
		*line
		sent []byte
	}
	late := make(chan held, 1)
	c.once("mark", func(l *line, sent []byte) {
		late <- held{l, bytes.Clone(sent)}
		l.client.Close()
	})
	// Nothing is read, so the store's isolation alone would let it in.
	put := func(value string) error {
		return s.Update(context.Background(), func(tx Tx) error { return tx.Put("blind", []byte(value), 0) })
	}
	programs.Must(t, put("mark"), put("newer"))
	h := await(t, late)
	programs.Must(t, h.ask(h.sent))
	err := watcher.View(context.Background(), func(tx Tx) error {
		v, err := tx.Get("blind")
		if string(v) != "newer" {
			t.Errorf("the late commit was carried out: %q", v)
		}
		return err
	})
	programs.Must(t, err)
}

func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatal("it did not happen within a minute")
	}
	return v
}

// A database that stays away is told apart from a refusal, within a bounded
// time, and the password is never part of what is said.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	ctx := context.Background()
	db := server.Database(t)
	patient := openPG(t, db)
	s := programs.Got(Open(ctx, db, Options{Patience: 100 * time.Millisecond}))(t)
	t.Cleanup(func() { _ = s.Close() })
	programs.Must(t, server.Kill())
	get := func(tx Tx) error { _, err := tx.Get("k"); return err }
	for what, err := range map[string]error{
		"View":   s.View(ctx, get),
		"Update": s.Update(ctx, func(tx Tx) error { return tx.Put("k", nil, 0) }),
	} {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.View(short, get); !errors.Is(err, context.Canceled) {
		t.Errorf("View without time: %v", err)
	}
	// Close does not wait for a call to lose its patience.
	waiting := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		waiting <- patient.View(ctx, func(tx Tx) error { close(began); return get(tx) })
	}()
	<-began
	programs.Must(t, patient.Close())
	if err := await(t, waiting); !errors.Is(err, ErrClosed) {
		t.Errorf("View while the store is closed: %v", err)
	}
}
