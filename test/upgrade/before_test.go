package upgrade_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/upgrade"
	"porchlight/test/visitor"
)

// TestAgentOf15e3b3f: the program of 15e3b3f connects a computer to this version's
// server, is visited, hears within seconds that a person is gone, and is there again
// when the server has been restarted.
func TestAgentOf15e3b3f(t *testing.T) {
	t.Parallel()
	before := os.Getenv("PORCHLIGHT_BEFORE")
	if before == "" {
		t.Skip("it runs the agent of 15e3b3f, which `make test-before` builds from this clone's history")
	}
	const owner, ben = "maya@example.net", "ben@example.com"
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	run := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+in("config"), "PORCHLIGHT_DATA="+in("data"), "PORCHLIGHT_API=")
		return cmd
	}
	ok := func(program string, args ...string) string {
		t.Helper()
		out, err := programs.Output(run(program, args...))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	control, old := filepath.Join(bin, "porchlight-control"), filepath.Join(before, "porchlight")
	says := func(p *programs.Process, pattern string) []string {
		t.Helper()
		found, err := p.Says(t.Context(), pattern)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	serve := []string{"serve", "--data", in("control"), "--domain", upgrade.Domain, "--log-level", "warn", "--grace", "1s",
		"--outbox", in("mails"), "--listen", programs.FreeAddress(t)}
	server := programs.Begin(t, run(control, serve...))
	at := says(server, `control plane at (\S+), listening`)[1]
	ok(control, "account", "add", owner, "--data", in("control"))
	authority := ok(control, "ca", "--data", in("control"))
	if err := os.WriteFile(in("authority.pem"), []byte(authority), 0o600); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	mails := programs.MailsIn(in("mails"))
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	defer app.Close()

	// It connects.
	says(programs.Begin(t, run(old, "agent", "--api", "127.0.0.1:0", "--control", at, "--ca", in("authority.pem"))), "Stop with Ctrl-C")
	connect := programs.Begin(t, run(old, "connect", at, "--ca", in("authority.pem"), "--json"))
	var waiting agentapi.Connecting
	if err := json.Unmarshal([]byte(says(connect, `(?s)^(\{.*?\n\})`)[1]), &waiting); err != nil {
		t.Fatal(err)
	}
	confirming := visitor.New(roots)
	defer confirming.Close()
	if err := upgrade.Confirm(t.Context(), confirming, waiting, owner, "cellar", mails); err != nil {
		t.Fatal(err)
	}
	if code := connect.Wait(); code != 0 {
		t.Fatalf("connect ended with %d", code)
	}

	// It is visited.
	ok(old, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(app.Listener.Addr().(*net.TCPAddr).Port))
	ok(old, "approve", "notes")
	ok(old, "people", "invite", ben, "--app", "Notes")
	var account agentapi.Account
	if err := json.Unmarshal([]byte(ok(old, "account", "--json")), &account); err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(in("data/connected-ca/root.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(own)
	notes := "https://notes." + account.Host + "/"
	browsers := map[string]*visitor.Visitor{}
	for _, who := range []string{ben, owner} {
		b := visitor.New(roots)
		defer b.Close()
		if who == ben {
			link, err := mails.Link(t.Context(), ben)
			if err != nil {
				t.Fatal(err)
			}
			page, err := b.Open(t.Context(), link)
			if err == nil {
				_, err = b.Submit(t.Context(), page, "", nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		} else if _, err := b.SignIn(t.Context(), notes, who, func(ctx context.Context) (string, error) { return mails.Link(ctx, who) }); err != nil {
			t.Fatal(err)
		}
		browsers[who] = b
	}
	sees := func(who string) string {
		page, err := browsers[who].Open(t.Context(), notes)
		if err != nil {
			return err.Error()
		}
		return page.Body
	}
	for who := range browsers {
		if body := sees(who); body != "hello "+who {
			t.Fatalf("%s sees %q", who, body)
		}
	}

	// It hears that ben is gone, from the server.
	ok(control, "account", "remove", ben, "--data", in("control"))
	gone := time.Now()
	programs.Eventually(t, "ben is not let in", func() bool { return !strings.HasPrefix(sees(ben), "hello") })
	t.Logf("ben was not let in any more %v after", time.Since(gone))

	// It comes back.
	server.Stop()
	server = programs.Begin(t, run(control, serve...))
	says(server, `control plane at (\S+), listening`)
	programs.Eventually(t, "the owner is let in again", func() bool { return sees(owner) == "hello "+owner })
	ok(control, "account", "add", "eva@example.net", "--data", in("control"))
	ok(old, "people", "invite", "eva@example.net", "--app", "Notes") // it still has its say
}
