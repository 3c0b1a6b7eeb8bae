package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// TestMain keeps the owner secret's file out of the tester's home.
func TestMain(m *testing.M) {
	if os.Getenv("PORCHLIGHT_TEST_PROGRAM") != "" {
		os.Unsetenv("PORCHLIGHT_TEST_PROGRAM") // its own children are what they are told to be
		main()                                 // and no test: see inProcess
	}
	if how := os.Getenv("PORCHLIGHT_TEST_SERVER"); how != "" {
		serve(how)
	}
	dir, err := os.MkdirTemp("", "porchlight-cli-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	os.Setenv("XDG_DATA_HOME", filepath.Join(dir, "share")) // what comes after -- goes to the program, --data too
	os.Unsetenv("PORCHLIGHT_DATA")
	os.Unsetenv("PORCHLIGHT_API")
	// No keychain: the headless agent must not need one.
	os.Unsetenv("DBUS_SESSION_BUS_ADDRESS")
	os.Setenv("XDG_RUNTIME_DIR", "")
	// What it says is compared as it is in English, wherever this machine stands.
	os.Setenv("LC_ALL", "C.UTF-8")
	if os.Getenv("HOME") == "" {
		os.Setenv("HOME", dir)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// serve is a local app: it prints its port, and greets. How says whether it takes the
// port it was given, and what it makes of signals.
func serve(how string) {
	port := "0"
	if strings.Contains(how, "port") {
		port = os.Getenv("PORT")
	}
	if strings.Contains(how, "deaf") {
		signal.Ignore(os.Interrupt)
	}
	if strings.Contains(how, "stubborn") {
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(l, http.HandlerFunc(greets)))
}

// TestShapes is the contract of --json: names of fields are never changed.
func TestShapes(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.NotFoundHandler())
	var published map[string]any
	s.json(&published, "publish", "notes", "--label", "Notes", "--port", port)
	if fmt.Sprint(published) != "map[status:pending]" {
		t.Errorf("publish: %v", published)
	}
	var apps []map[string]any
	s.json(&apps, "apps")
	if len(apps) != 1 || apps[0]["name"] != "notes" || apps[0]["label"] != "Notes" || apps[0]["status"] != "pending" || fmt.Sprint(apps[0]["localPort"]) != port {
		t.Errorf("apps: %v", apps)
	}
	s.json(&published, "approve", "notes")
	var account agentapi.Account
	s.json(&account, "account")
	host := "notes." + account.Host
	if published["status"] != "live" || published["host"] != host || published["url"] != "https://"+host {
		t.Errorf("approve: %v", published)
	}
	if !account.Connected || !account.Local || account.Email != "owner@"+account.Name+".localhost" || account.AccountID == "" || !strings.HasPrefix(account.AuthURL, "https://control.localhost:") {
		t.Errorf("account: %+v", account)
	}
	s.json(&apps, "apps")
	if apps[0]["host"] != host || apps[0]["url"] != "https://"+host {
		t.Errorf("apps: %v", apps)
	}
	var status map[string]any
	s.json(&status, "status")
	for _, field := range []string{"connected", "host", "name", "url", "pendingApps", "apps"} {
		if _, ok := status[field]; !ok {
			t.Errorf("status has no %s: %v", field, status)
		}
	}
	var mails []map[string]any
	s.json(&mails, "outbox")
	if mails == nil || len(mails) != 0 {
		t.Errorf("outbox: %v", mails)
	}
	if link := strings.TrimSpace(s.ok("open", "notes", "--print")); !strings.HasPrefix(link, "https://"+host+"/") || strings.Contains(link, "\n") {
		t.Errorf("open --print: %q", link)
	}
	root := strings.TrimPrefix(host, "notes.")
	if link := strings.TrimSpace(s.ok("open", "--print")); !strings.HasPrefix(link, "https://"+root+"/") || strings.Contains(link, "\n") {
		t.Errorf("open --print without a name: %q", link)
	}
	var assist map[string]any
	s.json(&assist, "assist", "notes")
	if assist["url"] != "https://"+host+"/mcp" || assist["authorizationServer"] != account.AuthURL {
		t.Errorf("assist: %v", assist)
	}
	for _, want := range []string{`"url": "https://` + host + `/api"`, "client add --public", " --data " + filepath.Join(s.dir, "control"), "none elsewhere"} {
		if said := s.ok("assist", "notes", "--path", "/api"); !strings.Contains(said, want) {
			t.Errorf("assist does not say %q: %s", want, said)
		}
	}
	var closed map[string]any
	s.json(&closed, "revoke", "notes")
	if closed["ok"] != true {
		t.Errorf("revoke: %v", closed)
	}
	var info map[string]any
	s.json(&info, "engine")
	if info["mode"] != "headless" || info["protocol"] != 1.0 || info["firstPartyApp"] != "" {
		t.Errorf("engine: %v", info)
	}
}

// TestWordsForPeople: without --json every verb says what happened.
func TestWordsForPeople(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"apps"}, "No app has asked"},
		{[]string{"publish", "shop", "--port", "8001"}, "waits for the owner's approval"},
		{[]string{"unpublish", "shop"}, "never approved, so publishing it again asks"},
		{[]string{"outbox"}, "No mail yet"},
		{[]string{"publish", "notes", "--label", "Notes", "--port", "8001"}, "waits for the owner's approval"},
		{[]string{"status"}, "1 app waits"},
		{[]string{"deny", "notes"}, "stays off"},
		{[]string{"publish", "notes", "--label", "Notes", "--port", "8001"}, "waits"},
		{[]string{"approve", "notes"}, "notes is on, at https://notes."},
		{[]string{"apps"}, "Notes"},
		{[]string{"unpublish", "notes"}, "needs no new approval"},
		{[]string{"publish", "notes", "--port", "8001"}, "notes is on"},
		{[]string{"apps"}, "Notes"}, // the label it had
		{[]string{"stop", "notes"}, "until you resume it"},
		{[]string{"publish", "notes", "--label", "Notes", "--port", "8001"}, "paused by its owner"},
		{[]string{"status"}, "paused"},
		{[]string{"apps"}, "paused"},
		{[]string{"resume", "notes"}, "open again"},
		{[]string{"revoke", "notes"}, "forgotten"},
		{[]string{"account"}, "nobody else can reach it"},
		{[]string{"engine"}, "protocol 1"},
	} {
		s.wants(0, step.want, step.args...)
	}
}

// TestNextSteps: who approves, invites or gives an app reads its address, and what to type
// next, as a shell takes it; with --json nothing is added.
func TestNextSteps(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	const label = "Anna's Notes & more"
	s.ok("publish", "notes", "--label", label, "--port", "8001")
	for _, step := range []struct {
		args      []string
		out, errs string
	}{
		{[]string{"approve", "notes"}, "notes is on, at https://notes.", `people invite EMAIL --app 'Anna'\''s Notes & more' --data ` + s.dir},
		{[]string{"approve", "notes", "--json"}, `"url": "https://notes.`, ""},
		{[]string{"people", "invite", bob, "--app", label}, "at https://notes.", "The invitation is in: "},
		{[]string{"people", "invite", "a@example.com", "b@example.com", "--app", label}, "at https://notes.", "The invitations are in: "},
		{[]string{"people", "grant", bob, "--app", label}, "address: https://notes.", ""},
	} {
		code, out, errs := s.run(step.args...)
		if code != 0 || !strings.Contains(out, step.out) || !strings.Contains(errs, step.errs) || step.args[len(step.args)-1] == "--json" && strings.Contains(errs, "Next") {
			t.Errorf("%v: exit %d, want %q and %q\n%s%s", step.args, code, step.out, step.errs, out, errs)
		}
	}
	if _, _, errs := s.run("approve", "notes"); !strings.Contains(errs, " open notes") {
		t.Errorf("approved again: %q", errs)
	}
}

// TestPublishWaits: --wait ends with the owner's decision, whichever it is.
func TestPublishWaits(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	for decision, want := range map[string]int{"approve": 0, "deny": commandline.ExitRefused} {
		name := decision + "d"
		done := make(chan int, 1)
		go func() {
			code, _, _ := s.run("publish", name, "--label", name, "--port", "8001", "--wait")
			done <- code
		}()
		for {
			var apps []agentapi.AppSummary
			s.json(&apps, "apps")
			if slices.ContainsFunc(apps, func(a agentapi.AppSummary) bool { return a.Name == name }) {
				break
			}
		}
		s.ok(decision, name)
		if code := <-done; code != want {
			t.Errorf("%s: exit %d, want %d", decision, code, want)
		}
	}
}

// TestPublishWaitsForAChange: a denied change of what was approved ends the wait, too.
func TestPublishWaitsForAChange(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.ok("settings", "--ask-again")
	s.ok("publish", "notes", "--port", "8001")
	s.ok("approve", "notes")
	type result struct {
		code int
		errs string
	}
	done := make(chan result, 1)
	go func() {
		code, _, errs := s.run("publish", "notes", "--port", "8002", "--wait")
		done <- result{code, errs}
	}()
	programs.Eventually(t, "it asks again", func() bool { return s.ownerApp("notes").Status == agentapi.StatusPending })
	s.ok("deny", "notes")
	if got := <-done; got.code != commandline.ExitRefused || !strings.Contains(got.errs, "What was approved before is kept") {
		t.Errorf("exit %d: %s", got.code, got.errs)
	}
}

// TestDenySaysForHowLong: how long nothing is heard of an app is the agent's word, and
// what to type against it works.
func TestDenySaysForHowLong(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	for _, want := range []string{"for 10 minutes", " unmute notes --data "} {
		s.ok("publish", "notes", "--port", "8001")
		s.wants(0, want, "deny", "notes")
	}
	s.ok("publish", "notes", "--port", "8001")
	if !s.ownerApp("notes").Quiet {
		t.Error("denied twice, it rings")
	}
	if out := s.ok("unmute", "notes"); !strings.Contains(out, "You hear of notes again") || s.ownerApp("notes").Quiet {
		t.Errorf("unmuted: %q", out)
	}
}

// TestExitCodes: 1 refused, 2 usage, 3 not running, each with a sentence and
// nothing on standard output.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	running := startAgent(t)
	running.publishing("notes", "Notes", http.NotFoundHandler())
	absent := shell{t, t.TempDir()}
	for _, tt := range []struct {
		in   shell
		args []string
		code int
		want string
	}{
		{running, []string{"approve", "nothing"}, commandline.ExitRefused, "There is no app of this name. See: porchlight apps\n"},
		{running, []string{"publish", "WWW", "--label", "x", "--port", "1"}, commandline.ExitRefused, "lower-case"},
		{running, []string{"publish", "www", "--label", "x", "--port", "1"}, commandline.ExitRefused, "reserved"},
		{running, []string{"unpublish", "nothing"}, commandline.ExitRefused, "no app"},
		{running, []string{"open", "nothing"}, commandline.ExitRefused, "no app"},
		{running, []string{"assist", "nothing"}, commandline.ExitRefused, "no app"},
		{running, []string{"assist", "notes", "--path", "mcp"}, commandline.ExitUsage, "such as /mcp"},
		{running, []string{"open", "notes", "wiki"}, commandline.ExitUsage, "does not know what to do with \"wiki\""},
		{running, []string{"agent", "--local", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0"}, commandline.ExitRefused, "already runs here (headless"},
		{absent, []string{"agent"}, commandline.ExitUsage, "--local"},
		{absent, []string{"agent", "--local", "--api", "0.0.0.0:0", "--https", "127.0.0.1:0"}, commandline.ExitRefused, "loopback"},
		{absent, []string{"approve"}, commandline.ExitUsage, "NAME"},
		{absent, []string{"approve", "a", "b"}, commandline.ExitUsage, "\"b\""},
		{absent, []string{"publish", "notes", "--label", "x"}, commandline.ExitUsage, "--port"},
		{absent, []string{"publish", "notes", "8000"}, commandline.ExitUsage, "porchlight publish notes --port 8000"},
		{absent, []string{"publish", "notes", "--label", "x", "--port", "abc"}, commandline.ExitUsage, "whole number"},
		{absent, []string{"publish", "notes", "--label", "x", "--port", "99999999999999999999"}, commandline.ExitUsage, "whole number"},
		{absent, []string{"publish", "notes", "--label", "x", "--port", "many"}, commandline.ExitUsage, "--port"},
		{absent, []string{"apps", "--colour"}, commandline.ExitUsage, "--colour"},
		{absent, []string{"dance"}, commandline.ExitUsage, "dance"},
		{absent, []string{"apps"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"status"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"engine"}, commandline.ExitNotRunning, "not running"},
		{running, []string{"settings", "--quiet", "renamed"}, commandline.ExitUsage, "settings --help"},
		{absent, []string{"status", "--api", "127.0.0.1:1"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"dark"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"knocks"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"knocks", "answer"}, commandline.ExitUsage, "ID"},
		{absent, []string{"knocks", "answer", "x"}, commandline.ExitUsage, "--today"},
		{absent, []string{"knocks", "answer", "x", "--today", "--no"}, commandline.ExitUsage, "needs one of"},
		{running, []string{"knocks", "answer", "x", "--always"}, commandline.ExitRefused, "Nobody waits"},
		{absent, []string{"settings"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"activity"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"agent", "--local", "--control", "https://control.example.net"}, commandline.ExitUsage, "not both"},
		{absent, []string{"agent", "--control", "http://control.example.net", "--api", "127.0.0.1:0"}, commandline.ExitRefused, "https://control.example.net"},
		{absent, []string{"agent", "--local", "--ca", absent.dir + "/absent.pem"}, commandline.ExitRefused, "certificate authority"},
		{absent, []string{"connect"}, commandline.ExitUsage, "URL"},
		{absent, []string{"connect", "https://control.example.net"}, commandline.ExitNotRunning, "not running"},
		{running, []string{"connect", "https://control.localhost:1", "--name", "Bad Name"}, commandline.ExitRefused, `"Bad Name" cannot be one`},
		{absent, []string{"disconnect"}, commandline.ExitNotRunning, "not running"},
		{running, []string{"options", "notes", "--identity-value", "id"}, commandline.ExitUsage, "--identity-value needs an --identity-header"},
		{running, []string{"status", "--api", "foo"}, commandline.ExitUsage, `"foo" is no address of the loopback API. It looks like 127.0.0.1:8765` + "\nTry 'porchlight status --help'."},
		{running, []string{"status", "--api", ":8765"}, commandline.ExitUsage, "is no address"},
		{running, []string{"status", "--api", "127.0.0.1:0"}, commandline.ExitUsage, "is no address"},
		{running, []string{"trust", "--undo=maybe"}, commandline.ExitUsage, "must be true or false"},
		{running, []string{"aprove", "notes"}, commandline.ExitUsage, "Did you mean approve?"},
		{absent, []string{"list"}, commandline.ExitUsage, "Did you mean listening or apps?"},
		{absent, []string{"logs"}, commandline.ExitUsage, "Did you mean activity?"},
		{absent, []string{"start"}, commandline.ExitUsage, "agent"},
		{absent, []string{"invite", "ben@example.net"}, commandline.ExitUsage, "Did you mean people invite?"},
		{running, []string{"people", "lst"}, commandline.ExitUsage, `there is no command "people lst". Did you mean list?`},
		{running, []string{"people", "lst", "--nothing"}, commandline.ExitUsage, "Did you mean list?"},
	} {
		tt.in.wants(tt.code, tt.want, tt.args...)
	}
}

// TestBundledFindsTheOneThatRuns: an app that brings Porchlight along starts it
// without knowing whether one runs; it attaches to the one that does.
func TestBundledFindsTheOneThatRuns(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	code, out, errOut := s.run("agent", "--local", "--first-party", "com.example.wiki", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0")
	if code != 0 || errOut != "" || !strings.HasPrefix(out, "Porchlight already runs here (headless, pid ") || !strings.Contains(out, "; attach to it at 127.0.0.1:") {
		t.Errorf("exit %d\nout: %s\nerr: %s", code, out, errOut)
	}
}

// TestNothingSecretOnDisk: the data directory of a headless agent holds neither
// the owner secret nor anything others can read.
func TestNothingSecretOnDisk(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	secret, err := ownersecret.File(s.dir).Get(t.Context())
	programs.Must(t, err)
	public := []string{"root.pem", "intermediate.pem"} // certificates
	err = filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && !slices.Contains(public, d.Name()) {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%s holds the owner secret", path)
		}
		return nil
	})
	programs.Must(t, err)
}

// TestStopsBesideAHangingCaller: a local program that began a request and never
// ended it does not make stopping a failure.
func TestStopsBesideAHangingCaller(t *testing.T) {
	t.Parallel()
	var caller net.Conn
	t.Cleanup(func() { caller.Close() }) // after the agent has ended
	s := startAgent(t)
	running, err := agentapi.ReadRunning(s.dir)
	programs.Must(t, err)
	if caller, err = net.Dial("tcp", running.API); err != nil {
		t.Fatal(err)
	}
	// The server asks for the body once the handler waits for it.
	fmt.Fprintf(caller, "POST /publish HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", running.API)
	programs.Got(caller.Read(make([]byte, 1)))(t)
}

// TestHTTPIsIgnored: a unit or a script of before 0.1.0 may still say what reads visitors'
// requests. On a data directory that ran so Porchlight starts, and says once that it
// ignores it.
func TestHTTPIsIgnored(t *testing.T) {
	t.Parallel()
	s, https := shell{t, filepath.Join(t.TempDir(), "data")}, programs.FreeAddress(t)
	for _, flags := range [][]string{{"--http", "own"}, {"--http=go"}} {
		ctx, stop := context.WithCancel(t.Context())
		var o output
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, append([]string{"agent", "--local", "--data", s.dir, "--api", "127.0.0.1:0", "--https", https}, flags...), o.terminal())
		}()
		programs.Eventually(t, "the agent is up", func() bool { return strings.Contains(o.stdout(), "Stop with Ctrl-C") })
		s.state() // it serves
		stop()
		if code := <-ended; code != 0 || o.stderr() != "--http is ignored, and can be left out: Porchlight's own code reads what visitors send.\n" {
			t.Errorf("%v: exit %d, and says %q", flags, code, o.stderr())
		}
	}
	if _, out, _ := s.run("agent", "--help"); strings.Contains(out, "--http ") {
		t.Errorf("it is still offered: %s", out)
	}
}

// TestStoppedWhileStarting: Ctrl-C in the first moments ends the program as at
// any other time.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var o output
	code := run(ctx, []string{"agent", "--local", "--data", filepath.Join(t.TempDir(), "data"), "--api", "127.0.0.1:0", "--https", "127.0.0.1:0"}, o.terminal())
	if code != 0 || o.stderr() != "" {
		t.Errorf("exit %d: %s", code, o.stderr())
	}
}
