package serve

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

// A node whose clock is 50 minutes behind the database's tells agents the database's time
// by either way, and keeps mails by it: the leases of mails are shared with other nodes.
func TestNodeGoesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	pgtest.SetClock(t, database, "pg_catalog.clock_timestamp() + interval '50 minutes'")
	var log lines
	n, roots := runNode(t, Config{
		DataDir: t.TempDir(), Postgres: database, Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}, Grace: time.Second,
		Log:  slog.New(slog.NewTextHandler(&log, nil)),
		Mail: MailConfig{SMTP: "smtp://127.0.0.1:1"}, // where nobody listens
	})
	theirs := func(what string, at time.Time) {
		t.Helper()
		if off := time.Until(at) - 50*time.Minute; off.Abs() > 20*time.Minute {
			t.Errorf("%s is %v off", what, off)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(askOf(t, n, roots, "http/1.1", "GET /auth/pubkey HTTP/1.1\r\nHost: "+n.authHost()+"\r\n\r\n")), nil)
	programs.Must(t, err)
	_ = answer.Body.Close()
	date := programs.Got(http.ParseTime(answer.Header.Get("Date")))(t)
	theirs("Date of HTTP", date)

	computer := programs.Got(n.service.Computers.Ensure(t.Context(), "maya@example.com", "maya"))(t)
	tunnel := askOf(t, n, roots, controlapi.TunnelALPN, "")
	send := func(f tunnelwire.Frame) {
		t.Helper()
		programs.Must(t, tunnelwire.WriteFrame(tunnel, f))
	}
	send(tunnelwire.Frame{Type: tunnelwire.Hello, Credential: computer.Credential, Instance: "test"})
	synced(t, tunnel)
	send(tunnelwire.Frame{Type: tunnelwire.Ping})
	pong := tunnelwire.Frame{}
	for pong.Type != tunnelwire.Pong {
		pong = programs.Got(tunnelwire.ReadFrame(tunnel))(t)
	}
	theirs("Date of a pong", time.Unix(pong.Date, 0))

	kept := &Node{cfg: n.cfg, store: n.store}
	kept.cfg.Mail = MailConfig{}
	outbox := programs.Got(kept.mail())(t)
	var rows []kv.Item
	err = n.store.Update(t.Context(), func(tx kv.Tx) (err error) {
		m := mail.Message{To: "maya@example.com", Subject: "s", Text: "t"}
		if err := errors.Join(n.smtp.Put(tx, "id", m), outbox.Put(tx, "id", m)); err != nil {
			return err
		}
		rows, err = tx.Scan("mail/", "", 10)
		return err
	})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	due := programs.Got(strconv.ParseInt(rows[0].Key[len("mail/"):][:16], 16, 64))(t)
	theirs("when a mail is due", time.Unix(0, due))
	entries, err := outbox.(*mail.Outbox).List(t.Context(), 10)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d mails are kept, %v", len(entries), err)
	}
	theirs("when a mail was kept", entries[0].At)

	// The operator is told, also when it changes.
	ahead := func() float64 {
		t.Helper()
		families := programs.Got(n.health.registry.Gather())(t)
		for _, f := range families {
			if f.GetName() == "porchlight_store_clock_ahead_seconds" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no metric tells the clock")
		return 0
	}
	if log.count("database_ahead=") != 1 || ahead() < 30*60 {
		t.Errorf("told %d times, and the metric is %v", log.count("database_ahead="), ahead())
	}
	pgtest.SetClock(t, database, "pg_catalog.clock_timestamp() - interval '50 minutes'")
	programs.Got(n.store.Sweep(t.Context(), 1))(t)
	if log.count("database_ahead=") != 2 || ahead() > -30*60 {
		t.Errorf("told %d times, and the metric is %v", log.count("database_ahead="), ahead())
	}
}

// lines is a log that may be written and read at once.
type lines struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, b...)
	return len(b), nil
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.kept, []byte(what))
}

// askOf connects to the auth host of a node, and sends it something.
func askOf(t *testing.T, n *Node, roots *x509.CertPool, protocol, ask string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", n.listeners[0].Addr().String(), &tls.Config{RootCAs: roots, ServerName: n.authHost(), NextProtos: []string{protocol}})
	programs.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	programs.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	programs.Got(io.WriteString(conn, ask))(t)
	return conn
}
