package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// codingAgent is the SDK's own client, with `porchlight mcp` as a process at its other end.
type codingAgent struct {
	*process
	session  *mcp.ClientSession
	progress chan string
}

// assists starts one that can find no owner secret.
func (s shell) assists(env ...string) codingAgent {
	s.t.Helper()
	a := codingAgent{process: inProcess(s.t, s.dir, "mcp"), progress: make(chan string, 100)}
	a.Env = append(append(a.Env, "XDG_CONFIG_HOME="+s.t.TempDir()), env...)
	a.Stderr = a
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			a.progress <- r.Params.Message
		},
	})
	a.session = programs.Got(client.Connect(s.t.Context(), &mcp.CommandTransport{Command: a.Cmd}, nil))(s.t)
	s.t.Cleanup(func() { a.session.Close() })
	return a
}

// tool calls one, and returns why it failed, or else its answer.
func (a codingAgent) tool(ctx context.Context, name string, in any, out any) (said string) {
	call := &mcp.CallToolParams{Name: name, Arguments: in}
	call.SetProgressToken(name)
	answer, err := a.session.CallTool(ctx, call)
	if err != nil {
		return err.Error()
	}
	if answer.IsError {
		return answer.Content[0].(*mcp.TextContent).Text
	}
	raw, err := json.Marshal(answer.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// gets calls a tool that must answer with a status.
func (a codingAgent) gets(status, tool string, in any) standing {
	a.t.Helper()
	var out standing
	if said := a.tool(a.t.Context(), tool, in, &out); said != "" || out.Status != status || out.Next == "" {
		a.t.Fatalf("%s %v: %q, %+v, want %s", tool, in, said, out, status)
	}
	return out
}

// refused calls a tool that must refuse, in words.
func (a codingAgent) refused(want, tool string, in any) {
	a.t.Helper()
	if said := a.tool(a.t.Context(), tool, in, new(map[string]any)); !strings.Contains(said, want) || said == "" {
		a.t.Errorf("%s %.200v: %q, want %q", tool, in, said, want)
	}
}

// leaves closes its standard input, at which the program ends well.
func (a codingAgent) leaves() {
	a.t.Helper()
	programs.Must(a.t, a.session.Close())
	if !a.ProcessState.Success() || a.output() != "" {
		a.t.Errorf("it ended with %v, and said %q", a.ProcessState, a.output())
	}
}

type args = map[string]any

// From the port to the address and off it again, with the owner's yes between them, and
// what was published outlives the assistant.
func TestAssistantPublishes(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, text := anApp(t, http.HandlerFunc(greets))
	port, _ := strconv.Atoi(text)
	a := s.assists()
	var found portsFound
	programs.Eventually(t, "the port is listed with its program", func() bool {
		if said := a.tool(t.Context(), "ports", nil, &found); said != "" {
			t.Fatal(said)
		}
		return strings.Contains(fmt.Sprint(found.Ports), fmt.Sprintf("{%d porchlight.test}", port))
	})
	asks := fmt.Sprintf("Asked for by porchlight.test, run by %s. A coding agent asks. It calls itself “agent”.", programs.Got(user.Current())(t).Username)
	// A request waits a moment to have its program found; it may ask again.
	programs.Eventually(t, "it is told what asks", func() bool {
		if asked := a.gets("pending", "publish", args{"name": "notes", "port": port}); !strings.Contains(asked.Next, " approve notes") {
			t.Fatalf("%+v", asked)
		}
		return strings.Contains(s.ok("apps"), "notes: "+asks)
	})
	s.wants(0, asks, "approve", "notes")
	if listed := s.ok("apps"); strings.Contains(listed, "Asked for") {
		t.Errorf("approved: %s", listed)
	}
	var all standings
	if said := a.tool(t.Context(), "status", nil, &all); said != "" || len(all.Apps) != 1 || all.Apps[0].Status != "live" || all.Apps[0].Port != port || !all.Connected {
		t.Fatalf("%q, %+v", said, all)
	}
	if page := s.browse(strings.TrimSpace(s.ok("open", "notes", "--print"))); page != "the first page" {
		t.Errorf("the page is %q", page)
	}
	a.gets("stopped", "stop", args{"name": "notes"})
	if app := s.ownerApp("notes"); app.Status != agentapi.StatusStopped {
		t.Errorf("stopped: %s", app.Status)
	}
	if on := a.gets("live", "publish", args{"name": "notes", "port": port, "wait": true}); on.URL != all.Apps[0].URL {
		t.Errorf("again: %+v", on)
	}
	s.ok("pause", "notes")
	a.gets("paused", "publish", args{"name": "notes", "port": port})
	a.leaves()
	if app := s.ownerApp("notes"); app.Status != agentapi.StatusLive {
		t.Errorf("afterwards: %s", app.Status)
	}
	// To another run it is somebody else's.
	b := s.assists()
	b.gets("paused", "publish", args{"name": "notes", "port": port})
	b.refused("was not published in this run", "stop", args{"name": "notes"})
}

// The papers that people and agents read name every tool.
func TestAssistantsPapersNameTheTools(t *testing.T) {
	t.Parallel()
	tools := programs.Got(startAgent(t).assists().session.ListTools(t.Context(), nil))(t).Tools
	if len(tools) != 4 {
		t.Errorf("there are %d tools", len(tools))
	}
	for _, paper := range []string{"assistants.md", "SKILL.md"} {
		page := string(programs.Got(os.ReadFile(filepath.Join("../../../docs", paper)))(t))
		for _, tool := range tools {
			if !strings.Contains(page, "`"+tool.Name+"`") {
				t.Errorf("%s does not name %s", paper, tool.Name)
			}
		}
	}
}

// The owner may have put another app under a name that this run asked for: it is that one's.
func TestAssistantLosesAName(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, text := anApp(t, http.HandlerFunc(greets))
	port, _ := strconv.Atoi(text)
	a := s.assists()
	a.gets("pending", "publish", args{"name": "notes", "port": port})
	s.ok("deny", "notes")
	s.publishing("notes", "Diary", http.HandlerFunc(greets))
	before := s.ownerApp("notes").AppSummary
	a.refused("is another app's: Diary", "publish", args{"name": "notes", "port": port})
	a.refused("was not published in this run", "stop", args{"name": "notes"})
	if after := s.ownerApp("notes").AppSummary; after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
}

// Two calls wait, each until its own is decided. One that is cancelled leaves its request,
// as does an assistant that ends while it waits.
func TestAssistantWaits(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, text := anApp(t, http.HandlerFunc(greets))
	port, _ := strconv.Atoi(text)
	a := s.assists()
	type result struct {
		standing
		said string
	}
	waits := func(ctx context.Context, name string) chan result {
		done := make(chan result, 1)
		go func() {
			var r result
			r.said = a.tool(ctx, "publish", args{"name": name, "port": port, "wait": true}, &r.standing)
			done <- r
		}()
		for {
			select {
			case told := <-a.progress:
				if strings.Contains(told, " approve "+name) {
					return done
				}
			case got := <-done:
				t.Fatalf("%s does not wait: %+v", name, got)
			}
		}
	}
	one, two, three := waits(t.Context(), "one"), waits(t.Context(), "two"), waits(t.Context(), "three")
	s.ok("approve", "two")
	if got := <-two; got.said != "" || got.Status != "live" || got.URL == "" {
		t.Errorf("approved: %+v", got)
	}
	s.ok("deny", "one")
	if got := <-one; !strings.Contains(got.said, "The owner denied") {
		t.Errorf("denied: %+v", got)
	}
	a.gets("withdrawn", "stop", args{"name": "three"})
	if got := <-three; got.Status != "withdrawn" {
		t.Errorf("withdrawn: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	four := waits(ctx, "four")
	cancel()
	if got := <-four; got.said == "" {
		t.Errorf("cancelled: %+v", got)
	}
	if app := s.ownerApp("four"); app.Status != agentapi.StatusPending {
		t.Errorf("cancelled: %s", app.Status)
	}
	a.gets("withdrawn", "stop", args{"name": "four"})
	a.leaves()
	p := inProcess(t, s.dir, "mcp")
	in := programs.Got(p.StdinPipe())(t)
	p.onPipes()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"publish","arguments":{"name":"five","port":%d,"wait":true},"_meta":{"progressToken":2}}}`+"\n", port)
	p.says(" approve five")
	in.Close()
	p.ends(0)
	if app := s.ownerApp("five"); app.Status != agentapi.StatusPending {
		t.Errorf("left: %s", app.Status)
	}
}

// A hostile agent gets nothing by what it asks: no app of others is changed or taken off,
// none is asked for, and the server goes on.
func TestAssistantIsHostile(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.HandlerFunc(greets))
	notes := s.ownerApp("notes").LocalPort
	s.publishing("off", "Off", http.HandlerFunc(greets))
	s.ok("unpublish", "off")
	s.ok("publish", "waits", "--port", strconv.Itoa(notes))
	_, text := anApp(t, http.HandlerFunc(greets))
	port, _ := strconv.Atoi(text)
	_, api, _ := strings.Cut(s.state().API, ":")
	own, _ := strconv.Atoi(api)
	nobody := programs.FreePort(t)
	before := s.summaries()
	a := s.assists()
	for _, name := range []string{
		"", ".", "..", "../owner/state", "..%2fowner%2fstate", "notes/approve", "/notes", "notes?x=1", "notes#x", "notes\x00", "notes\n", " notes",
		"NOTES", "nötes", "n_tes", "notes.evil.example", "www", strings.Repeat("a", 64), strings.Repeat("a", 1<<20), "\u202enotes", "--data", "$(id)", "notes;id",
	} {
		a.refused("", "publish", args{"name": name, "port": port})
		a.refused("", "stop", args{"name": name})
	}
	for _, bad := range []any{0, -1, 22, 70000, 1 << 40, 1.5, "8000", nil, true, []int{port}, own, nobody} {
		a.refused("", "publish", args{"name": "mine", "port": bad})
		for _, name := range []string{"notes", "off", "waits"} {
			a.refused("", "publish", args{"name": name, "port": bad})
		}
	}
	for _, label := range []any{strings.Repeat("a", 101), strings.Repeat("a", 1<<20), "a\nb", "a\u202eb", "Notes", 7, args{}} {
		a.refused("", "publish", args{"name": "mine", "port": port, "label": label})
	}
	for name, want := range map[string]string{"notes": "another app's: Notes, on port", "off": "which is off now", "waits": "waits for the owner"} {
		a.refused(want, "publish", args{"name": name, "port": port})
		a.refused("was not published in this run", "stop", args{"name": name})
	}
	a.refused("another app's", "publish", args{"name": "notes", "port": notes, "label": "Mine"})
	a.refused("", "publish", args{"name": "mine", "port": port, "approve": true})
	a.refused("", "publish", args{"name": "mine", "port": port, "wait": "for ever"})
	a.refused("", "publish", []string{"mine"})
	a.refused("Nothing is published under", "stop", args{"name": "22"})
	a.refused("Nothing is published under", "status", args{"name": "owner"})
	a.refused("", "ports", args{"user": "root"})
	for _, tool := range []string{"approve", "invite", "options", "revoke", "secret", "../publish", ""} {
		a.refused("", tool, args{"name": "waits"})
	}
	if after := s.summaries(); after != before {
		t.Errorf("now\n%s\nbefore\n%s", after, before)
	}
	a.gets("live", "publish", args{"name": "notes", "port": notes}) // as it was approved
	if after := s.summaries(); after != before {
		t.Errorf("published as approved: now\n%s\nbefore\n%s", after, before)
	}
	a.leaves()
}

// summaries are all apps as one text.
func (s shell) summaries() string {
	var b strings.Builder
	for _, app := range s.state().Apps {
		fmt.Fprintln(&b, app.AppSummary, app.AskedBy)
	}
	return b.String()
}

// A thousand calls leave nothing behind in the server.
func TestAssistantDoesNotGrow(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	_, text := anApp(t, http.HandlerFunc(greets))
	port, _ := strconv.Atoi(text)
	a := s.assists("GODEBUG=gctrace=1", "GOGC=10")
	calls := func(n int) {
		for range n / 4 {
			a.gets("pending", "publish", args{"name": "notes", "port": port})
			for _, tool := range []string{"ports", "status"} {
				if said := a.tool(t.Context(), tool, nil, new(any)); said != "" {
					t.Fatal(said)
				}
			}
			a.gets("withdrawn", "stop", args{"name": "notes"})
		}
	}
	calls(200)
	files, heap := a.files(), a.heap()
	calls(1000)
	programs.Eventually(t, fmt.Sprintf("no more than about %d open files", files), func() bool { return a.files() <= files+2 })
	if h := a.heap(); h > heap+2 {
		t.Errorf("%d MB, after %d", h, heap)
	}
	s.hasNoApps()
}

// files are the open ones of the process.
func (a codingAgent) files() int {
	a.t.Helper()
	return len(programs.Got(os.ReadDir(filepath.Join("/proc", strconv.Itoa(a.Process.Pid), "fd")))(a.t))
}

// heap is the least that the last ten collections left of it, in MB: one that took long
// leaves what was made and dropped meanwhile, too.
func (a codingAgent) heap() int {
	a.t.Helper()
	var left []int
	for _, found := range regexp.MustCompile(`->(\d+) MB,`).FindAllStringSubmatch(a.output(), -1) {
		left = append(left, programs.Got(strconv.Atoi(found[1]))(a.t))
	}
	if len(left) == 0 {
		a.t.Fatalf("nothing was collected: %q", a.output())
	}
	return slices.Min(left[max(0, len(left)-10):])
}

// What is no message, or too long for one, ends the program and nothing else.
func TestAssistantReadsRubbish(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	for _, line := range []string{"GET / HTTP/1.1\n", "\x00\xff\n", strings.Repeat("[", 1<<16) + "\n", strings.Repeat("a", maxLine+1<<20)} {
		p := inProcess(t, s.dir, "mcp")
		in := programs.Got(p.StdinPipe())(t)
		p.onPipes()
		io.WriteString(in, line) // it may be gone before it has read all
		in.Close()
		p.Wait()
		if said := p.output(); strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
			t.Errorf("%.20q: %s", line, said)
		}
	}
	s.hasNoApps()
}
