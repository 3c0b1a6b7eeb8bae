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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/upgrade"
	"porchlight/test/visitor"
)

// TestProgramsOfBefore: an agent of before version 0.1.0, connected to a server of then and
// visited, is told to update once the server is this version's, as is who connects anew. It
// tries seldom meanwhile and lets its owner remove a person. With this version's program in
// its place, on the same data directory, everything works again, and the person is gone.
func TestProgramsOfBefore(t *testing.T) {
	t.Parallel()
	before := os.Getenv("PORCHLIGHT_BEFORE")
	if before == "" {
		t.Skip("it runs programs of before 0.1.0, which `make test-before` builds from this clone's history")
	}
	// How often each tries in its first minute, at most. 15e3b3f heeds no Retry-After but the
	// relay's: three loops of its wait up to 30 s each, and begin sooner.
	for version, tries := range map[string]int{"15e3b3f": 60, "c3b4a6fe": 12} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			isToldToUpdate(t, filepath.Join(before, version), tries)
		})
	}
}

func isToldToUpdate(t *testing.T, before string, tries int) {
	t.Helper()
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
		programs.Must(t, err)
		return string(out)
	}
	control, program := filepath.Join(bin, "porchlight-control"), filepath.Join(bin, "porchlight")
	oldControl, old := filepath.Join(before, "porchlight-control"), filepath.Join(before, "porchlight")
	says := func(p *programs.Process, pattern string) []string {
		t.Helper()
		found, err := p.Says(t.Context(), pattern)
		programs.Must(t, err)
		return found
	}
	serve := []string{"serve", "--data", in("control"), "--domain", upgrade.Domain, "--log-level", "debug", "--grace", "1s",
		"--outbox", in("mails"), "--listen", programs.FreeAddress(t)}
	server := programs.Begin(t, run(oldControl, serve...))
	at := says(server, `control plane at (\S+), listening`)[1]
	ok(oldControl, "account", "add", owner, "--data", in("control"))
	authority := ok(oldControl, "ca", "--data", in("control"))
	programs.Must(t, os.WriteFile(in("authority.pem"), []byte(authority), 0o600))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	mails := rig.MailsIn(in("mails"))
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	defer app.Close()

	// It connects.
	serveApps := []string{"agent", "--api", "127.0.0.1:0"}
	agent := programs.Begin(t, run(old, append(serveApps, "--control", at, "--ca", in("authority.pem"))...))
	says(agent, "Stop with Ctrl-C")
	connect := programs.Begin(t, run(old, "connect", at, "--ca", in("authority.pem"), "--json"))
	var waiting agentapi.Connecting
	programs.Must(t, json.Unmarshal([]byte(says(connect, `(?s)^(\{.*?\n\})`)[1]), &waiting))
	confirming := visitor.New(roots)
	defer confirming.Close()
	programs.Must(t, upgrade.Confirm(t.Context(), confirming, waiting, owner, "cellar", mails))
	if code := connect.Wait(); code != 0 {
		t.Fatalf("connect ended with %d", code)
	}

	// It is visited.
	ok(old, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(app.Listener.Addr().(*net.TCPAddr).Port))
	ok(old, "approve", "notes")
	ok(old, "people", "invite", ben, "--app", "Notes")
	var account agentapi.Account
	programs.Must(t, json.Unmarshal([]byte(ok(old, "account", "--json")), &account))
	own, err := os.ReadFile(in("data/connected-ca/root.pem"))
	programs.Must(t, err)
	roots.AppendCertsFromPEM(own)
	notes := "https://notes." + account.Host + "/"
	browsers := map[string]*visitor.Visitor{}
	for _, who := range []string{ben, owner} {
		b := visitor.New(roots)
		defer b.Close()
		if who == ben {
			link, err := mails.Link(t.Context(), ben)
			programs.Must(t, err)
			page, err := b.Open(t.Context(), link)
			if err == nil {
				_, err = b.Submit(t.Context(), page, "", nil)
			}
			programs.Must(t, err)
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

	var people agentapi.People
	programs.Must(t, json.Unmarshal([]byte(ok(old, "people", "list", "--json")), &people))

	// The server is replaced.
	server.Stop()
	server = programs.Begin(t, run(control, serve...))
	says(server, `control plane at (\S+), listening`)
	logs := func(p *programs.Process, pattern string) {
		t.Helper()
		if _, err := p.Logs(t.Context(), pattern); err != nil {
			t.Fatal(err)
		}
	}
	sentence := regexp.QuoteMeta(controlapi.SayOutdated)
	logs(agent, `control plane does not answer.*`+sentence)
	logs(agent, `not connected to the relay.*`+sentence)
	refused := func() int {
		log := server.Stderr()
		return len(regexp.MustCompile(`"route":"/v1/[^"]*","took":\d+,"ok":false`).FindAllString(log, -1)) + strings.Count(log, "before version 0.1.0")
	}
	first := refused()
	time.Sleep(time.Minute) // nothing else says how many a minute there are
	if n := refused() - first; n > tries || first > tries {
		t.Errorf("it tried %d times before it was noticed, and %d times in the minute after:\n%s", first, n, agent.Stderr())
	} else {
		t.Logf("it tried %d times before it was noticed, and %d times in the minute after", first, n)
	}
	if out, err := run(old, "people", "invite", "eva@example.net", "--app", "Notes").CombinedOutput(); err == nil || !strings.Contains(string(out), controlapi.SayOutdated) {
		t.Errorf("its owner reads %q, %v", out, err)
	}
	i := slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.Email == ben })
	if i < 0 {
		t.Fatalf("people: %+v", people)
	}
	out, err := run(old, "people", "remove", people.Members[i].AccountID).CombinedOutput() // done here, told later
	t.Logf("removing ben: %s, %v", out, err)

	// Who connects anew is told, too.
	anew := func(program string, args ...string) *exec.Cmd {
		return run(program, append(args, "--data", in("anew"))...)
	}
	says(programs.Begin(t, anew(old, "agent", "--api", "127.0.0.1:0", "--control", at, "--ca", in("authority.pem"))), "Stop with Ctrl-C")
	if out, err := anew(old, "connect", at, "--ca", in("authority.pem")).CombinedOutput(); err == nil || !strings.Contains(string(out), controlapi.SayOutdated) {
		t.Errorf("who connects reads %q, %v", out, err)
	}

	// It is replaced, too.
	if code := agent.Stop(); code != 0 {
		t.Errorf("the agent of before ended with %d", code)
	}
	says(programs.Begin(t, run(program, serveApps...)), "Stop with Ctrl-C")
	ok(program, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(app.Listener.Addr().(*net.TCPAddr).Port))
	programs.Eventually(t, "the owner is let in again", func() bool { return sees(owner) == "hello "+owner })
	programs.Eventually(t, "the server knows that ben is removed", func() bool {
		err := json.Unmarshal([]byte(ok(program, "people", "list", "--json")), &people)
		return err == nil && !slices.ContainsFunc(people.Members, func(p agentapi.Person) bool { return p.Email == ben && p.Status != agentapi.PersonRemoved })
	})
	if body := sees(ben); strings.HasPrefix(body, "hello") {
		t.Errorf("ben, who was removed, sees %q", body)
	}
	ok(program, "people", "invite", "eva@example.net", "--app", "Notes")
}
