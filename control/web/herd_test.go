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
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
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

// Weakness: everybody coming back at once to a node whose database is 10 ms away is a
// collapse: agents give up, ask again, and what is done for them is done in vain.
// Checked: a node that has just started, and knows nobody, answers a few hundred
// computers that come at once from one address, and hardly any of them has to ask twice.
func TestHerd(t *testing.T) {
	t.Parallel()
	const computers = 300
	direct := pgtest.Database(t)
	naming := control.Naming{Domain: "porch.example", AuthHost: "control.example"}
	node := func(url string) *control.Service {
		store := openStore(t, url)
		return must(control.New(control.Config{Store: store, Naming: naming, Mail: mail.NewOutbox(store, nil), SharedStore: true}))
	}
	var credentials []string
	near := node(direct)
	for n := range computers {
		owner := fmt.Sprintf("owner%d@example.com", n/10)
		credentials = append(credentials, must(near.Computers.Ensure(t.Context(), owner, fmt.Sprintf("c%d", n))).Credential)
	}

	server := httptest.NewServer(New(node(far(t, direct, 10*time.Millisecond)), Config{}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	var tried atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, credential := range credentials {
		wg.Go(func() {
			c := &controlapi.Client{BaseURL: server.URL, Credential: credential, HTTP: &http.Client{Transport: transport}}
			<-begin
			for {
				tried.Add(1)
				snapshot, err := c.Sync(ctx, "")
				if err == nil && len(snapshot.People) == 1 {
					return
				}
				wait, _ := controlapi.Obey(err, 200*time.Millisecond)
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					t.Errorf("a computer is not back: %v", errors.Join(err, ctx.Err()))
					return
				}
			}
		})
	}
	began := time.Now()
	close(begin)
	wg.Wait()
	t.Logf("%d computers, all back after %v, syncs tried ÷ needed %.2f", computers, time.Since(began).Round(time.Millisecond), float64(tried.Load())/computers)
	if n := tried.Load(); n > computers*6/5 {
		t.Errorf("%d syncs were tried where %d were needed", n, computers)
	}
}
