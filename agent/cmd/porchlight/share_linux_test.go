package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

var onceLink = regexp.MustCompile(`https://(\S+)/\.porchlight/open\?token=\S+`)

// browse opens a link as a browser of this computer does that trusts the directory's
// authority, and returns the page behind it.
func browse(t *testing.T, dir, link string) string {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, "ca", "root.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(addr)
			return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		},
	}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	res, err := (&http.Client{Transport: tr, Jar: jar}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// From nothing to the first page in one command on one terminal, which shows the
// request; Ctrl-C leaves nothing behind but the directory, whose agent needs no
// --local any more.
func TestShareFromNothing(t *testing.T) {
	t.Parallel()
	_, port := anApp(t, http.HandlerFunc(greets))
	dir := filepath.Join(t.TempDir(), "data")
	p := inProcess(t, dir, "share", port, "--api", "127.0.0.1:0").onTerminal()
	p.says("Ctrl-C takes it off")
	said := p.output()
	if !strings.Contains(said, "Sharing my-shop on port "+port) || !strings.Contains(said, "https://my-shop.") || !strings.Contains(said, "▀") {
		t.Errorf("it said:\n%s", said)
	}
	link := onceLink.FindString(said)
	if page := browse(t, dir, link); page != "the first page" {
		t.Errorf("the page is %q", page)
	}
	p.says(" 200 ")
	p.says(" GET /  ")
	p.ctrlC()
	p.ends(0)
	p.says("my-shop is off its address")
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", "127.0.0.1:"+u.Port()); err == nil {
		c.Close()
		t.Error("the agent is still there")
	}
	s := startAgentIn(t, dir)
	var apps []agentapi.AppSummary
	if s.json(&apps, "apps"); len(apps) != 0 {
		t.Errorf("left behind: %+v", apps)
	}
}

// An app that was approved before is only off its address afterwards: its people,
// label, port and options are as they were, whatever ends the share.
func TestShareLeavesAnApprovedApp(t *testing.T) {
	t.Parallel()
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		s := startAgent(t)
		_, port := anApp(t, http.HandlerFunc(greets))
		_, other := anApp(t, http.HandlerFunc(greets))
		s.ok("publish", "notes", "--label", "My Notes", "--port", port)
		s.ok("approve", "notes")
		s.ok("people", "invite", "bob@example.com", "--app", "My Notes")
		s.ok("options", "notes", "--forwarded")
		s.ok("unpublish", "notes")
		before := ownerApp(t, s, "notes")
		p := inProcess(t, s.dir, "share", other, "--name", "notes").onPipes()
		p.says("Ctrl-C takes it off")
		p.says("bob@example.com can open it")
		if during := ownerApp(t, s, "notes"); during.Status != agentapi.StatusLive || during.Label != "My Notes" || during.Shared == nil || during.Shared.PID != p.Process.Pid {
			t.Errorf("shared: %+v", during)
		}
		p.signal(end)
		p.ends(0)
		if after := ownerApp(t, s, "notes"); !reflect.DeepEqual(after, before) {
			t.Errorf("%v: afterwards it is\n%+v, and was\n%+v", end, after, before)
		}
	}
}

// Another share of the same name is refused while the first is there, and takes over
// what a kill -9 left behind, which the owner sees.
func TestShareIsKilled(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.HandlerFunc(greets))
	first := inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	first.says("Ctrl-C takes it off")
	if code, _, said := s.run("share", port, "--name", "shop"); code != 1 || !strings.Contains(said, "is shared by process") {
		t.Errorf("twice: %d %s", code, said)
	}
	first.signal(syscall.SIGKILL)
	first.ends(-1)
	if left := ownerApp(t, s, "shop"); left.Status != agentapi.StatusLive || left.Shared == nil || left.Shared.PID != first.Process.Pid {
		t.Errorf("left: %+v", left)
	}
	if out := s.ok("apps"); !strings.Contains(out, "which has ended and left it") {
		t.Errorf("apps says:\n%s", out)
	}
	if out := s.ok("notices"); !strings.Contains(out, "shop was approved at a terminal, on port "+port) {
		t.Errorf("notices says:\n%s", out)
	}
	second := inProcess(t, s.dir, "share", port).onPipes()
	second.says("Sharing shop on port")
	second.says("Ctrl-C takes it off")
	second.signal(syscall.SIGINT)
	second.ends(0)
	if state := stateOf(t, s); len(state.Apps) != 0 {
		t.Errorf("afterwards: %+v", state.Apps)
	}
}

// Without a name the port's live app is meant, and never one that is off and that others
// open: by now the port may be another program's.
func TestShareOfAPortIsNotForEarlierPeople(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.HandlerFunc(greets))
	s.ok("publish", "old", "--label", "Old", "--port", port)
	s.ok("approve", "old")
	s.ok("people", "invite", "bob@example.com", "--app", "Old")
	s.ok("unpublish", "old")
	p := inProcess(t, s.dir, "share", port).onPipes()
	p.says("Only you can open it")
	p.says("Ctrl-C takes it off")
	p.signal(syscall.SIGINT)
	p.ends(0)
	if app := ownerApp(t, s, "old"); app.Status != agentapi.StatusStopped {
		t.Errorf("the earlier app is %+v", app)
	}
	s.ok("publish", "live", "--port", port)
	s.ok("approve", "live")
	p = inProcess(t, s.dir, "share", port).onPipes()
	p.says("live on port " + port)
	p.says("is on already")
	p.signal(syscall.SIGINT)
	p.ends(0)
}

// A share that the owner ended elsewhere, and whose name another has by now, leaves
// that one alone at its end.
func TestShareEndsNoOther(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.HandlerFunc(greets))
	first := inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	first.says("Ctrl-C takes it off")
	s.ok("unshare", "shop")
	second := inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	second.says("Ctrl-C takes it off")
	first.signal(syscall.SIGINT)
	first.ends(0)
	if left := ownerApp(t, s, "shop"); left.Status != agentapi.StatusLive || left.Shared == nil || left.Shared.PID != second.Process.Pid {
		t.Errorf("the other is %+v", left)
	}
	second.signal(syscall.SIGINT)
	second.ends(0)
}

// What was shared when the agent ended is ended by the command that is named then, and
// an app that was approved before keeps its people.
func TestShareOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	s := shell{t, filepath.Join(t.TempDir(), "data")}
	agent := func() *process {
		p := inProcess(t, s.dir, "agent", "--local", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0").onPipes()
		p.says("Stop with Ctrl-C")
		return p
	}
	first := agent()
	_, port := anApp(t, http.HandlerFunc(greets))
	s.ok("publish", "notes", "--label", "Notes", "--port", port)
	s.ok("approve", "notes")
	p := inProcess(t, s.dir, "share", port, "--name", "notes").onPipes()
	p.says("Ctrl-C takes it off")
	first.signal(syscall.SIGTERM)
	first.ends(0)
	p.says("Waiting for it")
	second := agent()
	browse(t, s.dir, strings.TrimSpace(s.ok("open", "notes", "--print")))
	p.says(" GET /  ") // it goes on with the next agent
	second.signal(syscall.SIGTERM)
	second.ends(0)
	p.signal(syscall.SIGINT)
	p.ends(1)
	p.says("unshare notes")
	s = startAgentIn(t, s.dir)
	s.ok("unshare", "notes")
	if app := ownerApp(t, s, "notes"); app.Status != agentapi.StatusStopped || app.Shared != nil {
		t.Errorf("afterwards: %+v", app)
	}
}

// Without the owner secret the request waits for the owner, who says yes; at the end
// the app is off, or the request withdrawn.
func TestShareWithoutTheOwnerSecret(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.HandlerFunc(greets))
	guest := func() *process {
		p := inProcess(t, s.dir, "share", port, "--name", "shop")
		p.Env = append(p.Env, "XDG_CONFIG_HOME="+t.TempDir())
		return p.onPipes()
	}
	p := guest()
	p.says("waits for the owner")
	p.signal(syscall.SIGINT)
	p.ends(0)
	p.says("withdrawn")
	if state := stateOf(t, s); len(state.Apps) != 0 {
		t.Errorf("the request is left: %+v", state.Apps)
	}
	p = guest()
	p.says("waits for the owner")
	s.ok("approve", "shop")
	p.says("https://shop.")
	p.signal(syscall.SIGHUP)
	p.ends(0)
	if app := ownerApp(t, s, "shop"); app.Status != agentapi.StatusStopped {
		t.Errorf("afterwards: %+v", app)
	}
	p = guest()
	p.says("https://shop.")
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

// A port where nothing listens yet is shared; one of another user's program only when
// the owner says so.
func TestShareOtherListeners(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	p := inProcess(t, s.dir, "share", "9", "--name", "later").onPipes()
	p.says("Nothing listens there yet")
	p.says("Ctrl-C takes it off")
	p.signal(syscall.SIGINT)
	p.ends(0)
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program of another user")
	}
	port := othersListener(t)
	code, out, said := s.run("share", port, "--name", "theirs")
	if code != 1 || !strings.Contains(said, "not a program of yours") || !strings.Contains(said, "--yes") {
		t.Errorf("%d %s %s", code, out, said)
	}
	if state := stateOf(t, s); len(state.Apps) != 0 {
		t.Errorf("it is there all the same: %+v", state.Apps)
	}
	p = inProcess(t, s.dir, "share", port, "--name", "theirs", "--yes", "--keep").onPipes()
	p.says("Ctrl-C leaves it there")
	p.signal(syscall.SIGINT)
	p.ends(0)
	if app := ownerApp(t, s, "theirs"); app.Status != agentapi.StatusLive || app.Shared != nil || app.Listener.UserID != "65534" {
		t.Errorf("kept: %+v", app)
	}
}

// What keeps visitors out of what is shared is said before they come, with what helps.
func TestShareSaysWhatKeepsVisitorsOut(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	port := plant(t, http.NotFoundHandler(), (*httptest.Server).StartTLS)
	p := inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	p.says("shop speaks HTTPS on port " + port)
	p.says("porchlight options shop --upstream https")
	p.says("Ctrl-C takes it off")
	p.signal(syscall.SIGINT)
	p.ends(0)
}

// othersListener is the port of a program of another user.
func othersListener(t *testing.T) (port string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "PORCHLIGHT_TEST_SERVER=plain")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 16)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(buf[:n]))
}

func TestShareLines(t *testing.T) {
	t.Parallel()
	s := shell{t, filepath.Join(t.TempDir(), "data")}
	for _, args := range [][]string{{"share"}, {"share", "x"}, {"share", "0"}, {"share", "70000"}, {"share", "1", "2"}, {"run"}, {"run", "shop"}, {"run", "shop", "ls"}, {"run", "Not A Name", "--", "true"}, {"run", "--", "true"}} {
		if code, _, said := s.run(args...); code != 2 {
			t.Errorf("%v: %d %s", args, code, said)
		}
	}
}

func stateOf(t *testing.T, s shell) agentapi.OwnerState {
	t.Helper()
	client, err := (&location{data: s.dir}).owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, err := client.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func ownerApp(t *testing.T, s shell, name string) agentapi.OwnerApp {
	t.Helper()
	app, err := appIn(stateOf(t, s), name)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// startAgentIn runs `porchlight agent` on a directory that knows what it is.
func startAgentIn(t *testing.T, dir string) shell {
	t.Helper()
	p := inProcess(t, dir, "agent", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0").onPipes()
	programs.Eventually(t, "the agent is up", func() bool { return strings.Contains(p.output(), "Stop with Ctrl-C") })
	t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		p.ends(0)
	})
	return shell{t, dir}
}

// Ctrl-C while publish waits is no fault of the program, and says what is left.
func TestCtrlCWhilePublishWaits(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	p := inProcess(t, s.dir, "publish", "notes", "--port", "8001", "--wait").onPipes()
	p.says("Waiting for the owner")
	p.signal(syscall.SIGINT)
	p.ends(1)
	p.says("notes still waits for the owner. To withdraw the request, type: ")
	if strings.Contains(p.output(), "canceled") {
		t.Error(p.output())
	}
	if app := ownerApp(t, s, "notes"); app.Status != agentapi.StatusPending || app.Label != "notes" {
		t.Errorf("%+v", app)
	}
}

// An approval by the command line is told in the menu bar, one of the menu bar's own
// process is not.
func TestApprovalsAtATerminalLeaveANotice(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.ok("publish", "notes", "--port", "8001")
	s.ok("publish", "wiki", "--port", "8002")
	s.ok("approve", "notes") // in the agent's process, as the menu bar's
	p := inProcess(t, s.dir, "approve", "wiki").onPipes()
	p.ends(0)
	notices := stateOf(t, s).Notices
	if len(notices) != 1 || notices[0].Kind != agentapi.NoticeApproved || notices[0].App != "wiki" || !strings.HasPrefix(notices[0].Text, "wiki was approved at a terminal, on port 8002") {
		t.Errorf("%+v", notices)
	}
}

// A terminal that is closed puts everything back, too.
func TestShareOnATerminalThatIsClosed(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.HandlerFunc(greets))
	p := inProcess(t, s.dir, "share", port, "--name", "shop").onTerminal()
	p.says("Ctrl-C takes it off")
	p.tty.Close()
	p.ends(0)
	if state := stateOf(t, s); len(state.Apps) != 0 {
		t.Errorf("left behind: %+v", state.Apps)
	}
}

// A share ends when its app is revoked elsewhere, and goes on, without requests, while
// the owner wants none kept.
func TestShareIsOvertaken(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, port := anApp(t, http.HandlerFunc(greets))
	p := inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	p.says("Ctrl-C takes it off")
	s.ok("revoke", "shop")
	p.says("shop was revoked elsewhere")
	p.ends(1)
	s.ok("settings", "--requests=false")
	p = inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	p.says("so it cannot be shown")
	p.signal(syscall.SIGINT)
	p.ends(0)
	if state := stateOf(t, s); len(state.Apps) != 0 {
		t.Errorf("left behind: %+v", state.Apps)
	}
}
