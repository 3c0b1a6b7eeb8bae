package kv

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/kv/pgtest"
)

// tripCounter stands between a store and its server and counts how often the
// store waits for an answer: every Sync ends a round trip (the protocol's
// "Message Flow", 55.2.3).
func tripCounter(t *testing.T, direct string) (through string, trips *atomic.Int64) {
	t.Helper()
	at, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	socket := at.Query().Get("host") + "/.s.PGSQL.5432"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	trips = &atomic.Int64{}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
			go func() { countTrips(client, server, trips); _ = server.Close() }()
		}
	}()
	at.Host = l.Addr().String()
	at.RawQuery = url.Values{"user": {at.Query().Get("user")}, "sslmode": {"disable"}}.Encode()
	return at.String(), trips
}

// countTrips passes on what the client says, message by message.
func countTrips(client io.Reader, server io.Writer, trips *atomic.Int64) {
	in, out := bufio.NewReaderSize(client, 64<<10), bufio.NewWriterSize(server, 64<<10)
	typed := false // the first message has no type
	for {
		head := make([]byte, 4, 5)
		if typed {
			head = head[:5]
		}
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		length := int64(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		if typed && (head[0] == 'S' || head[0] == 'Q') {
			trips.Add(1)
		}
		typed = true
		_, _ = out.Write(head) // a broken one shows below
		if _, err := io.CopyN(out, in, length); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// An Update that reads what it needs with GetAll and writes is two round trips:
// one begins it and reads, one writes and commits.
func TestPostgresRoundTrips(t *testing.T) {
	t.Parallel()
	through, trips := tripCounter(t, pgtest.Database(t))
	s, err := Open(context.Background(), through+"&pool_max_conns=1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx := context.Background()
	rotate := func() error {
		return s.Update(ctx, func(tx Tx) error {
			if _, err := tx.GetAll("grant", "client", "computer", "person"); err != nil {
				return err
			}
			for _, key := range []string{"grant", "person"} { // known by now
				if _, err := tx.Get(key); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return tx.Put("grant", []byte("x"), 90*24*time.Hour)
		})
	}
	for _, c := range []struct {
		what string
		run  func() error
		want int64
	}{
		{"read all, write", rotate, 2},
		{"write only", func() error { return s.Update(ctx, func(tx Tx) error { return tx.Put("k", nil, 0) }) }, 1},
		{"read twice, write", func() error {
			return s.Update(ctx, func(tx Tx) error {
				_, err := tx.Get("k")
				if err == nil {
					_, err = tx.Scan("k", "", 1)
				}
				return errors.Join(err, tx.Put("k", nil, 0))
			})
		}, 3},
	} {
		if err := c.run(); err != nil { // prepares every statement
			t.Fatal(err)
		}
		before := trips.Load()
		for range 10 {
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
		}
		if got := trips.Load() - before; got != 10*c.want {
			t.Errorf("%s: %d round trips in ten, want %d", c.what, got, 10*c.want)
		}
	}
}
