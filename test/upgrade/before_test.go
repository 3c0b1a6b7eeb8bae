package upgrade_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
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
	env := rig.Environ(in("config"), "PORCHLIGHT_DATA="+in("data"))
	old, now := rig.In(t, before), rig.In(t, bin)
	old.Env, now.Env = env, env
	ok := func(r *rig.Rig, args ...string) {
		t.Helper()
		programs.Must(t, r.Run(nil, "porchlight", args...))
	}
	serve := []string{"--domain", upgrade.Domain, "--log-level", "debug", "--outbox", in("mails"), "--listen", programs.FreeAddress(t)}
	server, err := old.Node(t.Context(), in("control"), serve...)
	programs.Must(t, err, server.Run(nil, "account", "add", owner))
	auth, authority := server.AuthURL, rig.Authority(server.Data)
	mails := rig.MailsIn(in("mails"))
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	defer app.Close()

	// It connects.
	agent := programs.Got(old.Computer(t.Context(), in("data"), "--control", auth, "--ca", authority))(t)
	confirm(t, old, auth, authority, owner, mails)

	// It is visited.
	ok(old, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(app.Listener.Addr().(*net.TCPAddr).Port))
	ok(old, "approve", "notes")
	ok(old, "people", "invite", ben, "--app", "Notes")
	var account agentapi.Account
	programs.Must(t, old.Run(&account, "porchlight", "account"))
	roots := programs.Got(rig.Roots(authority, rig.Own(in("data"))))(t)
	notes := "https://notes." + account.Host + "/"
	browsers := map[string]*visitor.Visitor{}
	for _, who := range []string{ben, owner} {
		b := visitor.New(roots)
		defer b.Close()
		if who == ben {
			link, err := mails.Link(t.Context(), ben)
			programs.Must(t, err)
			programs.Must(t, err, b.Accept(t.Context(), link))
		} else if _, err := b.SignIn(t.Context(), notes, who, mails); err != nil {
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
	programs.Must(t, old.Run(&people, "porchlight", "people", "list"))

	// The server is replaced.
	server.Stop()
	server = programs.Got(now.Node(t.Context(), in("control"), serve...))(t)
	logs := func(p *programs.Process, pattern string) {
		t.Helper()
		programs.Got(p.Logs(t.Context(), pattern))(t)
	}
	sentence := regexp.QuoteMeta(controlapi.SayOutdated)
	logs(agent.Process, `control plane does not answer.*`+sentence)
	logs(agent.Process, `not connected to the relay.*`+sentence)
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
	if out, err := old.Command("porchlight", "people", "invite", "eva@example.net", "--app", "Notes").CombinedOutput(); err == nil || !strings.Contains(string(out), controlapi.SayOutdated) {
		t.Errorf("its owner reads %q, %v", out, err)
	}
	i := slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.Email == ben })
	if i < 0 {
		t.Fatalf("people: %+v", people)
	}
	out, err := old.Command("porchlight", "people", "remove", people.Members[i].AccountID).CombinedOutput() // done here, told later
	t.Logf("removing ben: %s, %v", out, err)

	// Who connects anew is told, too.
	programs.Got(old.Computer(t.Context(), in("anew"), "--control", auth, "--ca", authority))(t)
	if out, err := old.Command("porchlight", "connect", auth, "--ca", authority, "--data", in("anew")).CombinedOutput(); err == nil || !strings.Contains(string(out), controlapi.SayOutdated) {
		t.Errorf("who connects reads %q, %v", out, err)
	}

	// It is replaced, too.
	if code := agent.Stop(); code != 0 {
		t.Errorf("the agent of before ended with %d", code)
	}
	programs.Got(now.Computer(t.Context(), in("data")))(t)
	ok(now, "publish", "notes", "--label", "Notes", "--port", strconv.Itoa(app.Listener.Addr().(*net.TCPAddr).Port))
	programs.Eventually(t, "the owner is let in again", func() bool { return sees(owner) == "hello "+owner })
	programs.Eventually(t, "the server knows that ben is removed", func() bool {
		err := now.Run(&people, "porchlight", "people", "list")
		return err == nil && !slices.ContainsFunc(people.Members, func(p agentapi.Person) bool { return p.Email == ben && p.Status != agentapi.PersonRemoved })
	})
	if body := sees(ben); strings.HasPrefix(body, "hello") {
		t.Errorf("ben, who was removed, sees %q", body)
	}
	ok(now, "people", "invite", "eva@example.net", "--app", "Notes")
}

// TestOneAppOfBefore: whoever lets a client into one app of a computer whose agent is of
// before such grants is refused with a sentence, until it is updated. A node of then does
// not run on a store in which there are such grants.
func TestOneAppOfBefore(t *testing.T) {
	t.Parallel()
	before := os.Getenv("PORCHLIGHT_BEFORE")
	if before == "" {
		t.Skip("it runs programs of before grants for one app, which `make test-before` builds from this clone's history")
	}
	const owner, back = "maya@example.net", "http://127.0.0.1:1/back"
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	old, now := rig.In(t, filepath.Join(before, "943bcc8a")), rig.In(t, bin)
	old.Env = rig.Environ(in("config"), "PORCHLIGHT_DATA="+in("data"))
	now.Env = old.Env
	serve := []string{"--domain", upgrade.Domain, "--outbox", in("mails"), "--listen", programs.FreeAddress(t)}
	server := programs.Got(now.Node(t.Context(), in("control"), serve...))(t)
	var client struct{ ClientID string }
	programs.Must(t, server.Run(nil, "account", "add", owner),
		server.Run(&client, "client", "add", "--public", "--name", "Claude", "--redirect-uri", back))
	auth, authority := server.AuthURL, rig.Authority(server.Data)
	mails := rig.MailsIn(in("mails"))

	agent := programs.Got(old.Computer(t.Context(), in("data"), "--control", auth, "--ca", authority))(t)
	confirm(t, old, auth, authority, owner, mails)
	app := httptest.NewServer(http.NotFoundHandler())
	defer app.Close()
	publish := []string{"publish", "notes", "--label", "Notes", "--port", strconv.Itoa(app.Listener.Addr().(*net.TCPAddr).Port)}
	var account agentapi.Account
	programs.Must(t, old.Run(nil, "porchlight", publish...), old.Run(nil, "porchlight", "approve", "notes"), old.Run(&account, "porchlight", "account"))

	b := visitor.New(programs.Got(rig.Roots(authority, rig.Own(in("data"))))(t))
	defer b.Close()
	asks := auth + controlapi.PathAuthorize + "?" + url.Values{
		"response_type": {"code"}, "client_id": {client.ClientID}, "redirect_uri": {back}, "state": {"s"}, "scope": {"connect"},
		"code_challenge_method": {"S256"}, "code_challenge": {strings.Repeat("a", 43)}, "resource": {"https://notes." + account.Host},
	}.Encode()
	refused := programs.Got(b.SignIn(t.Context(), asks, owner, mails))(t)
	if !strings.Contains(refused.Body, "Update it there, or allow all of its apps.") || strings.Contains(refused.Body, "checked") {
		t.Errorf("with the agent of before: %d %s", refused.Status, refused.Body)
	}

	agent.Stop()
	programs.Got(now.Computer(t.Context(), in("data")))(t)
	programs.Must(t, now.Run(nil, "porchlight", publish...))
	programs.Eventually(t, "Notes can be picked once its agent is this version's", func() bool {
		page, err := b.Open(t.Context(), asks)
		return err == nil && strings.Contains(page.Body, "checked") && !strings.Contains(page.Body, "Update it there")
	})

	server.Stop()
	if again, err := old.Node(t.Context(), in("control"), serve...); err == nil || !strings.Contains(again.Stderr(), "a newer version of Porchlight wrote these rows") {
		t.Errorf("the node of before on this store: %v, %s", err, again.Stderr())
	}
}

// confirm connects a computer as its owner does.
func confirm(t *testing.T, r *rig.Rig, auth, authority, owner string, mails *rig.Mails) {
	t.Helper()
	connect := programs.Got(r.Begin(r.Command("porchlight", "connect", auth, "--ca", authority, "--json")))(t)
	said := programs.Got(connect.Says(t.Context(), `(?s)^(\{.*?\n\})`))(t)
	var waiting agentapi.Connecting
	programs.Must(t, json.Unmarshal([]byte(said[1]), &waiting))
	confirming := visitor.New(programs.Got(rig.Roots(authority))(t))
	defer confirming.Close()
	answers := map[string]string{"name": "cellar", "decision": "allow"}
	programs.Got(confirming.Confirm(t.Context(), waiting.VerificationURLComplete, waiting.UserCode, owner, answers, mails))(t)
	if code := connect.Wait(); code != 0 {
		t.Fatalf("connect ended with %d", code)
	}
}
