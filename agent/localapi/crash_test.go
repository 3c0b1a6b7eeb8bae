package localapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/health"
	"porchlight/agent/ownersecret"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// The environment of a process that is there to be killed.
const (
	crashDirVariable    = "PORCHLIGHT_TEST_CRASH_DIR"
	crashSecretVariable = "PORCHLIGHT_TEST_CRASH_SECRET"
)

// commitsFD is where it writes 'B' as a commit begins and 'E' as it ends.
const commitsFD = 3

// beCrashed serves the API on dir until it is killed or its standard input ends,
// which it does with the test. It prints where it listens as JSON.
func beCrashed(dir string) int {
	commits := os.NewFile(commitsFD, "commits")
	kept, err := store.Open(dir, store.ObserveCommits(func(committing bool) {
		mark := "E"
		if committing {
			mark = "B"
		}
		io.WriteString(commits, mark)
	}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer kept.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server := NewServer(ServerConfig{
		DataDir: dir, Address: "127.0.0.1:0",
		OwnerSecretHash: ownersecret.Hash(os.Getenv(crashSecretVariable)), Log: log,
	})
	if err := server.Listen(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apps, err := engine.NewApps(engine.AppsConfig{
		Store:    kept,
		Root:     func() engine.Root { return engine.Root{Name: connected.Name, Host: connected.Host} },
		Listener: func(upstream.Target, int) agentapi.Listener { return agentapi.Listener{} },
		OnGone:   func(string) agentapi.Closed { return agentapi.Closed{OK: true} },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	does := health.New(health.Config{Find: apps.ByID, Root: func() engine.Root { return engine.Root{} }, On: func() bool { return false }})
	api := New(Config{Server: server, Apps: apps, Health: does, Connection: func() Connection { return Connection{Account: connected} }, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(agentapi.Running{API: server.Addr(), OwnerSocket: server.OwnerSocket()}); err != nil {
		return 1
	}
	var g errgroup.Group
	g.Go(func() error { return server.Run(ctx) })
	g.Go(func() error { return api.Run(ctx) })
	if err := g.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// victim is such a process.
type victim struct {
	cmd   *exec.Cmd
	open  *agentapi.Client
	owner *agentapi.Client
	// commits is what it writes of its commits; ended by its death.
	commits *os.File
	stdin   io.Closer
}

func raise(t *testing.T, dir, secret string) *victim {
	t.Helper()
	read, written, err := os.Pipe()
	programs.Must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDirVariable+"="+dir, crashSecretVariable+"="+secret)
	cmd.ExtraFiles = []*os.File{written} // commitsFD
	cmd.Stderr = t.Output()
	stdin := programs.Got(cmd.StdinPipe())(t)
	stdout := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	v := &victim{cmd: cmd, commits: read, stdin: stdin}
	t.Cleanup(v.kill)
	written.Close()
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the process did not come up: %v", err)
	}
	var running agentapi.Running
	programs.Must(t, json.Unmarshal(line, &running))
	v.open, v.owner = agentapi.New(running.API), agentapi.NewOwner(running.OwnerSocket, secret)
	return v
}

// kill is kill -9; it returns when the process is gone. Idempotent.
func (v *victim) kill() {
	v.cmd.Process.Kill()
	v.cmd.Wait()
	v.stdin.Close()
	v.commits.Close()
}

// claim is what a client believes about one name.
type claim struct {
	status agentapi.Status // "" for none
	label  string
	port   int
}

// believer is a client that owns one name, so that nobody else changes what it
// was answered.
type believer struct {
	name string
	rand *rand.Rand
	n    int // makes labels unique

	answered claim  // by the last answer
	asked    *claim // by the request that was not answered, if there was one
	id       string // of the app, as last read from the store; "" when it has to be another
	forget   bool   // a revocation was asked for: the id may be gone
}

// next chooses an event and says what it leads to by the table of
// docs/interface.md, States of a published app.
func (b *believer) next() (verb string, after claim) {
	pick := func(verbs ...string) string { return verbs[b.rand.IntN(len(verbs))] }
	now := b.answered
	switch now.status {
	case "":
		verb = "publish"
	case agentapi.StatusPending:
		verb = pick("publish", "approve", "approve", "withdraw", "deny")
	case agentapi.StatusLive:
		verb = pick("publish", "publish", "withdraw", "revoke")
	case agentapi.StatusStopped:
		verb = pick("publish", "publish", "revoke")
	}
	switch verb {
	case "publish":
		b.n++
		after = claim{agentapi.StatusPending, fmt.Sprintf("%s %d", b.name, b.n), 8000 + b.n%1000}
		if now.status == agentapi.StatusLive || now.status == agentapi.StatusStopped {
			after.status = agentapi.StatusLive
		}
	case "approve":
		after = now
		after.status = agentapi.StatusLive
	case "withdraw":
		if now.status != agentapi.StatusPending {
			after = now
			after.status = agentapi.StatusStopped
		}
	case "deny", "revoke":
	}
	return verb, after
}

// act asks for one thing and notes the answer. It returns false when the process
// was gone before it answered, and an error for a wrong answer.
func (b *believer) act(ctx context.Context, v *victim) (bool, error) {
	verb, after := b.next()
	b.asked = &after
	b.forget = b.forget || verb == "revoke"
	var err error
	status := after.status
	switch verb {
	case "publish":
		var pub agentapi.Publication
		pub, err = v.open.Publish(ctx, agentapi.PublishRequest{Name: b.name, Label: after.label, LocalPort: after.port})
		status = pub.Status
	case "approve":
		var pub agentapi.Approved
		pub, err = v.owner.Approve(ctx, b.name)
		status = pub.Status
	case "withdraw":
		_, err = v.open.Unpublish(ctx, b.name)
	case "deny":
		_, err = v.owner.Deny(ctx, b.name)
	case "revoke":
		_, err = v.owner.Revoke(ctx, b.name)
	}
	switch {
	case errors.Is(err, agentapi.ErrNotRunning), agentapi.CodeOf(err) == agentapi.CodeUnavailable:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s of %s (%+v): %w", verb, b.name, b.answered, err)
	case status != after.status:
		return false, fmt.Errorf("%s of %s (%+v) answered %q, want %q", verb, b.name, b.answered, status, after.status)
	}
	b.answered, b.asked = after, nil
	return true, nil
}

// check compares what was answered with what the store holds, and goes on from
// there. A request that was not answered may have happened or not; half of it
// may not.
func (b *believer) check(t *testing.T, kept store.Apps) {
	t.Helper()
	app, there := kept.Apps[b.name]
	found := claim{app.Status, app.Label, app.LocalPort}
	if found != b.answered && (b.asked == nil || found != *b.asked) {
		t.Errorf("%s: answered %+v, unanswered %+v, stored %+v", b.name, b.answered, b.asked, found)
	}
	approved := there && app.Status != agentapi.StatusPending
	if approved == (app.ID == "") {
		t.Errorf("%s: %q with the id %q", b.name, app.Status, app.ID)
	}
	if approved && b.id != "" && !b.forget && app.ID != b.id {
		t.Errorf("%s: its id was %q and is %q, so grants for it are lost", b.name, b.id, app.ID)
	}
	b.answered, b.asked, b.id, b.forget = found, nil, app.ID, false
}

// TestP13_Killed kills the process with publishing, approving, stopping and revoking
// clients on it, again and again, and compares every answer they were given with
// the store it leaves behind.
func TestP13_Killed(t *testing.T) {
	if testing.Short() {
		t.Skip("100 processes take a while")
	}
	const (
		kills       = 100
		most        = 400 // gives up on reaching insideWant
		insideWant  = 20
		believers   = 8
		mostCommits = 40 // before a kill
	)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	secret := ownersecret.New()
	var all []*believer
	for i := range believers {
		all = append(all, &believer{name: fmt.Sprintf("app-%d", i), rand: rand.New(rand.NewPCG(seed, uint64(i+1)))})
	}
	var done, inside, answers int
	for done < kills || inside < insideWant && done < most {
		v := raise(t, dir, secret)
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		counts := make([]int, len(all))
		wrong := make([]error, len(all))
		for i, b := range all {
			clients.Go(func() {
				for {
					ok, err := b.act(ctx, v)
					if !ok {
						wrong[i] = err
						if err != nil { // no reason to go on, for anybody
							cancel()
							v.cmd.Process.Kill()
						}
						return
					}
					counts[i]++
				}
			})
		}
		// Two of three kills aim at a commit that has begun, the others at the
		// moment after one.
		aim := byte('B')
		if random.IntN(3) == 0 {
			aim = 'E'
		}
		last, err := killAt(v, aim, 1+random.IntN(mostCommits))
		clients.Wait()
		cancel()
		if err := errors.Join(append(wrong, err)...); err != nil {
			t.Fatalf("kill %d: %v", done+1, err)
		}
		done++
		if last == 'B' {
			inside++
		}
		for _, n := range counts {
			answers += n
		}

		reopened, err := store.Open(dir)
		if err != nil {
			t.Fatalf("kill %d: %v", done, err)
		}
		kept, err := reopened.Apps()
		if err := errors.Join(err, reopened.Close()); err != nil {
			t.Fatalf("kill %d: %v", done, err)
		}
		for _, b := range all {
			b.check(t, kept)
		}
		if len(kept.Apps) > len(all) {
			t.Errorf("kill %d: %d apps of %d names", done, len(kept.Apps), len(all))
		}
		if t.Failed() {
			t.Fatalf("after kill %d", done)
		}
	}
	t.Logf("%d kills, %d of them during a commit, %d answers compared", done, inside, answers)
	if inside < insideWant {
		t.Errorf("only %d of %d kills came during a commit", inside, done)
	}
}

// killAt kills v as soon as it has written mark for the nth time, and returns
// the last thing it wrote: 'B' when it died between the beginning and the end of
// a commit.
func killAt(v *victim, mark byte, n int) (last byte, err error) {
	marks := bufio.NewReaderSize(v.commits, 16)
	for {
		b, err := marks.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		last = b
		if b == mark {
			if n--; n == 0 {
				if err := v.cmd.Process.Kill(); err != nil {
					return 0, err
				}
			}
		}
	}
	v.kill()
	if n > 0 {
		return 0, errors.New("the process ended by itself")
	}
	return last, nil
}

// BenchmarkPublish is one POST /publish over a connection that is kept, as an
// app does at each of its starts (unchanged), and when it has to be made durable
// (changed).
func BenchmarkPublish(b *testing.B) {
	for _, bench := range []struct {
		name   string
		labels []string
	}{
		{"unchanged", []string{"Notes"}},
		{"changed", []string{"Notes", "Diary"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := start(b)
			r.approved(b, "notes", "Notes")
			c := programs.Got(net.Dial("tcp", r.addr))(b)
			defer c.Close()
			post := poster(c, r.addr)
			for i := 0; b.Loop(); i++ {
				programs.Must(b, post(bench.labels[i%len(bench.labels)]))
			}
		})
	}
}
