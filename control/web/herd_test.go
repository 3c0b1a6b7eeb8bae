package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

// far stands a database as far away as it takes delay to go there and back, and returns
// the URL that leads through it.
func far(t *testing.T, direct string, delay time.Duration) string {
	t.Helper()
	u := must(url.Parse(direct))
	q := u.Query()
	const name = ".s.PGSQL.5432"
	server, dir := filepath.Join(q.Get("host"), name), t.TempDir()
	l := must(net.Listen("unix", filepath.Join(dir, name)))
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			away, err := net.Dial("unix", server)
			if err != nil {
				near.Close()
				continue
			}
			closing := context.AfterFunc(ctx, func() { near.Close(); away.Close() })
			wg.Go(func() { carry(near, away, delay/2); closing() })
			wg.Go(func() { carry(away, near, delay/2) })
		}
	})
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String()
}

// carry brings what from sends to to, each piece after delay, however many are on the
// way.
func carry(from, to net.Conn, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	way := make(chan piece, 1<<10)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				from.Close()
				for range way {
				}
			}
		}
	})
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if n > 0 {
			way <- piece{buf[:n], time.Now().Add(delay)}
		}
		if err != nil {
			close(way)
			wg.Wait()
			from.Close()
			return
		}
	}
}

// askedStore counts what is asked of it, also what waits.
type askedStore struct {
	kv.Store
	asked atomic.Int64
}

func (s *askedStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	s.asked.Add(1)
	return s.Store.ViewOf(ctx, rows, fn)
}

// Weakness: everybody coming back at once to a node whose database is slow is a
// collapse: agents give up, ask again, and what is done for them is done in vain; and
// one of them that asks a great deal is served before all others.
// Checked: a node that has just started, knows nobody, and needs longer for all than
// an agent is patient answers a few hundred computers that come at once from one address,
// and hardly any of them has to ask twice. Another computer, which had asked a hundred
// things before they came, has most of it still before it when all are back. When they
// come again, the node asks its database once for each.
func TestHerd(t *testing.T) {
	t.Parallel()
	const computers, hoards = 150, 100
	direct := pgtest.Database(t)
	naming := control.Naming{Domain: "porch.example", AuthHost: "control.example"}
	node := func(store kv.Store) *control.Service {
		return must(control.New(control.Config{Store: store, Naming: naming, Mail: mail.NewOutbox(store, nil), SharedStore: true}))
	}
	var credentials []string
	near := node(openStore(t, direct))
	for n := range computers + 1 {
		owner := fmt.Sprintf("owner%d@example.com", n/10)
		credentials = append(credentials, must(near.Computers.Ensure(t.Context(), owner, fmt.Sprintf("c%d", n))).Credential)
	}

	// On a busy machine the clock is too fast. What is wrong is wrong with everything slower,
	// too.
	var wrong []string
	for _, patience := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		store := &askedStore{Store: openStore(t, far(t, direct, patience/100)+"&pool_max_conns=2")}
		svc := node(store)
		server := httptest.NewServer(New(svc, Config{}))
		wrong = herdAt(t, svc, server.URL, store, credentials, hoards)
		server.Close()
		if len(wrong) == 0 {
			return
		}
		t.Logf("%q", wrong)
	}
	t.Errorf("%q", wrong)
}

// herdAt has all computers come back to a server at once, the first of them a hoarder,
// and says what should not have been.
func herdAt(t *testing.T, svc *control.Service, url string, store *askedStore, credentials []string, hoards int64) (wrong []string) {
	t.Helper()
	computers := int64(len(credentials) - 1)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	herd := func() {
		var n atomic.Int64
		var wg sync.WaitGroup
		for _, credential := range credentials[1:] {
			wg.Go(func() { n.Add(comeBack(ctx, t, svc, credential)) })
		}
		wg.Wait()
		if n.Load() > computers*6/5 {
			wrong = append(wrong, fmt.Sprintf("%d syncs were tried where %d were needed", n.Load(), computers))
		}
	}

	hoarder := &controlapi.Client{BaseURL: url, Credential: credentials[0], HTTP: &http.Client{Transport: transport}}
	must(hoarder.People(ctx))
	before := store.asked.Load()
	var had atomic.Int64
	var hoarding sync.WaitGroup
	hoard, leave := context.WithCancel(ctx)
	defer leave()
	for range hoards {
		hoarding.Go(func() {
			if _, err := hoarder.People(hoard); err == nil {
				had.Add(1)
			}
		})
	}
	programs.Eventually(t, "the hoarder's calls wait", func() bool { return store.asked.Load() >= before+hoards })
	herd()
	t.Logf("one computer had %d of the %d it asked for when all were back", had.Load(), hoards)
	if n := had.Load(); n > hoards/2 {
		wrong = append(wrong, fmt.Sprintf("one computer had %d of the %d it asked for before others were back", n, hoards))
	}
	leave()
	hoarding.Wait()
	before = store.asked.Load()
	herd()
	if n := store.asked.Load() - before; n > computers*6/5 {
		wrong = append(wrong, fmt.Sprintf("the database was asked %d times where %d were needed", n, computers))
	}
	return wrong
}

// comeBack syncs until it is told something, and says how often it tried.
func comeBack(ctx context.Context, t *testing.T, svc *control.Service, credential string) (tried int64) {
	for {
		tried++
		var err error
		select {
		case s := <-tells(t, svc, credential):
			if err = s.err; err == nil && len(s.People) == 1 {
				return tried
			}
		case <-ctx.Done():
		}
		wait, _ := controlapi.Obey(err, 200*time.Millisecond)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			t.Errorf("a computer is not back: %v", errors.Join(err, ctx.Err()))
			return tried
		}
	}
}
