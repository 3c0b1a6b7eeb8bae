package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
	"porchlight/test/sleeper"
)

func nobody() procinfo.Process { return procinfo.Process{} }

// attach starts a registry and returns what ends it.
func attach(t *testing.T, cfg RegistryConfig) (*Registry, func()) {
	t.Helper()
	cfg.Changes = new(broadcast.Signal)
	r := NewRegistry(cfg)
	return r, programs.Run(t, r.Run)
}

func register(t *testing.T, r *Registry, appID string, pid int) agentapi.Registration {
	t.Helper()
	got, err := r.Register(Caller{}, agentapi.RegisterRequest{AppID: appID, PID: pid}, nobody)
	if err != nil {
		t.Fatalf("register %s, pid %d: %v", appID, pid, err)
	}
	return got
}

// awaitCount waits until there are n registrations.
func awaitCount(t *testing.T, r *Registry, n int) {
	t.Helper()
	changed, cancel := r.cfg.Changes.Subscribe()
	defer cancel()
	limit := time.After(programs.Patience)
	for r.Count() != n {
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%d registrants, want %d", r.Count(), n)
		}
	}
}

// living is a process that ends when it is told to. closed, where it has one, is closed once
// it is let go of.
type living struct{ over, closed chan struct{} }

func (l living) Ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

func (l living) Wait(ctx context.Context) error {
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l living) Close() {
	if l.closed != nil {
		close(l.closed)
	}
}

// immortal opens processes that never end.
func immortal(int) (procinfo.Handle, error) { return living{over: make(chan struct{})}, nil }

func TestRegisterRefusals(t *testing.T) {
	t.Parallel()
	r, _ := attach(t, RegistryConfig{Open: immortal})
	for _, req := range []agentapi.RegisterRequest{
		{AppID: "", PID: 7}, {AppID: strings.Repeat("é", maxAppID+1), PID: 7}, {AppID: "a\nb", PID: 7}, {AppID: "a\u202eb", PID: 7},
		{AppID: "a\xffb", PID: 7}, {AppID: "com.example", PID: 0}, {AppID: "com.example", PID: -1},
	} {
		if _, err := r.Register(Caller{}, req, nobody); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%+v: %v", req, err)
		}
		if _, err := r.Heartbeat(Caller{}, req); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("heartbeat of %+v: %v", req, err)
		}
	}
	if n := r.Count(); n != 0 {
		t.Errorf("%d registrants after refusals", n)
	}
	if _, err := r.Heartbeat(Caller{}, agentapi.RegisterRequest{AppID: "com.example", PID: 7}); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("heartbeat of an unknown app: %v", err)
	}
	if got, err := r.Deregister(Caller{}, "com.example", nobody); err != nil || !got.OK {
		t.Errorf("deregistering an unknown app: %+v, %v", got, err)
	}
}

func TestRegistryIsBounded(t *testing.T) {
	t.Parallel()
	r, _ := attach(t, RegistryConfig{Open: immortal})
	for i := range maxRegistrants {
		register(t, r, "com.example", i+1)
	}
	looked := false
	_, err := r.Register(Caller{}, agentapi.RegisterRequest{AppID: "com.example", PID: maxRegistrants + 1}, func() procinfo.Process { looked = true; return nobody() })
	if agentapi.CodeOf(err) != agentapi.CodeTooMany || looked {
		t.Errorf("one more: %v; looked who calls: %v", err, looked)
	}
	register(t, r, "com.example", 7) // known: no more room needed
	if left, err := r.Deregister(Caller{}, "com.example", nobody); err != nil || left.Registrants != 0 {
		t.Errorf("%+v, %v", left, err)
	}
}

// TestTwoAppsWithOneID: each process of the same appId counts, and one that
// leaves does not take the other with it.
func TestTwoAppsWithOneID(t *testing.T) {
	t.Parallel()
	r, _ := attach(t, RegistryConfig{Open: immortal})
	by := func(pid int) func() procinfo.Process {
		return func() procinfo.Process { return procinfo.Process{PID: pid, Program: "notes"} }
	}
	for pid := 1001; pid <= 1003; pid++ {
		programs.Got(r.Register(Caller{}, agentapi.RegisterRequest{AppID: "com.example", PID: pid}, by(pid)))(t)
	}
	if left, _ := r.Deregister(Caller{}, "com.example", by(1002)); left.Registrants != 2 {
		t.Errorf("%d left after one of three", left.Registrants)
	}
	if pids := pidsOf(r); !slices.Equal(pids, []int{1001, 1003}) {
		t.Errorf("left are %v", pids)
	}
	// A helper of neither process: the app as a whole leaves.
	if left, _ := r.Deregister(Caller{}, "com.example", by(77)); left.Registrants != 0 {
		t.Errorf("%d left after all", left.Registrants)
	}
}

func pidsOf(r *Registry) (pids []int) {
	for _, row := range r.Registrants() {
		pids = append(pids, row.PID)
	}
	slices.Sort(pids)
	return pids
}

// TestReusedPID: the process behind a registration has ended and another one has
// its pid already. It counts as new, and the end of the old one does not end it.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var opened []living
	r, _ := attach(t, RegistryConfig{Open: func(int) (procinfo.Handle, error) {
		mu.Lock()
		defer mu.Unlock()
		opened = append(opened, living{make(chan struct{}), make(chan struct{})})
		return opened[len(opened)-1], nil
	}})
	register(t, r, "com.example", 4711)
	close(opened[0].over)
	if got := register(t, r, "com.example", 4711); got.Registrants != 1 {
		t.Errorf("%d registrants", got.Registrants)
	}
	if _, err := r.Heartbeat(Caller{}, agentapi.RegisterRequest{AppID: "com.example", PID: 4711}); err != nil {
		t.Errorf("the second process: %v", err)
	}
	close(opened[len(opened)-1].over)
	awaitCount(t, r, 0)
	for _, process := range opened {
		<-process.closed
	}
}

// TestDayOfHeartbeats is 24 hours of three apps: one that beats as told, one
// that falls silent and comes back, one that registers before each request.
func TestDayOfHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, end := attach(t, RegistryConfig{Open: immortal})
		steady := agentapi.RegisterRequest{AppID: "steady", PID: 1}
		moody := agentapi.RegisterRequest{AppID: "moody", PID: 2}
		register(t, r, "steady", 1)
		capability := register(t, r, "moody", 2).Capability
		began := time.Now()
		for time.Since(began) < 24*time.Hour {
			time.Sleep(agentapi.HeartbeatEvery)
			if _, err := r.Heartbeat(Caller{}, steady); err != nil {
				t.Fatalf("after %v the steady app is gone: %v", time.Since(began), err)
			}
			hour := time.Since(began) % time.Hour
			switch _, err := r.Heartbeat(Caller{}, moody); {
			case hour > 0 && err != nil:
				t.Fatalf("after %v the moody app is gone: %v", time.Since(began), err)
			case hour == 0: // silent for longer than allowed from now on
				time.Sleep(agentapi.ReapAfter - time.Second)
				r.Heartbeat(Caller{}, steady)
				if n := r.Count(); n != 2 {
					t.Fatalf("a second early, %d registrants", n)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if pids := pidsOf(r); !slices.Equal(pids, []int{1}) {
					t.Fatalf("after silence left are %v", pids)
				}
				if again := register(t, r, "moody", 2); again.Capability != capability || again.Registrants != 2 {
					t.Fatalf("registering again gave %+v", again)
				}
			}
		}
		end()
	})
}

// TestIdle: after the last one has left, and only a grace later; one that comes
// within it keeps the engine, one that comes after it is turned away.
func TestIdle(t *testing.T) {
	t.Parallel()
	idle := func(r *Registry) bool {
		synctest.Wait()
		select {
		case <-r.Idle():
			return true
		default:
			return false
		}
	}
	const grace = 10 * time.Second
	t.Run("grace", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, end := attach(t, RegistryConfig{Open: immortal, Grace: grace})
			time.Sleep(time.Hour)
			if idle(r) {
				t.Fatal("idle before anybody came")
			}
			register(t, r, "a", 1)
			r.Deregister(Caller{}, "a", nobody)
			time.Sleep(grace - time.Second)
			register(t, r, "b", 2)
			time.Sleep(2 * time.Second)
			if idle(r) {
				t.Fatal("idle although one came within the grace")
			}
			time.Sleep(agentapi.ReapAfter - 3*time.Second)
			if r.Count() != 1 {
				t.Fatal("reaped early")
			}
			time.Sleep(2*time.Second + grace - 2*time.Second)
			if idle(r) {
				t.Fatal("idle within the grace after a crash")
			}
			time.Sleep(2 * time.Second)
			if !idle(r) {
				t.Fatal("not idle after the grace")
			}
			if _, err := r.Register(Caller{}, agentapi.RegisterRequest{AppID: "c", PID: 3}, nobody); agentapi.CodeOf(err) != agentapi.CodeUnavailable {
				t.Errorf("attached to an engine on its way out: %v", err)
			}
			end()
		})
	})
	t.Run("nobody ever comes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, end := attach(t, RegistryConfig{Open: immortal, Grace: grace, FirstWithin: time.Minute})
			time.Sleep(59 * time.Second)
			if idle(r) {
				t.Fatal("idle early")
			}
			time.Sleep(2 * time.Second)
			if !idle(r) {
				t.Fatal("not idle")
			}
			end()
		})
	})
	t.Run("held open", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, end := attach(t, RegistryConfig{Open: immortal})
			register(t, r, "a", 1)
			r.Deregister(Caller{}, "a", nobody)
			time.Sleep(time.Hour)
			if idle(r) {
				t.Fatal("idle although something else holds it open")
			}
			end()
		})
	})
}

// TestManyComeAndGo registers and deregisters 10,000 times from many goroutines,
// watching a real process.
func TestManyComeAndGo(t *testing.T) {
	before := descriptors(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	r, end := attach(t, RegistryConfig{})
	const workers, each = 20, 500
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			appID := fmt.Sprintf("com.example.app%d", w)
			for range each {
				if _, err := r.Register(Caller{}, agentapi.RegisterRequest{AppID: appID, PID: os.Getpid()}, nobody); err != nil {
					t.Errorf("register: %v", err)
					return
				}
				if _, err := r.Deregister(Caller{}, appID, nobody); err != nil {
					t.Errorf("deregister: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := r.Count(); n != 0 {
		t.Errorf("%d registrants are left", n)
	}
	end()
	if after := descriptors(t); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
}

// TestKilledAtRandom registers 1,000 processes and kills them in random order:
// who is killed is gone at once, and nobody else is.
func TestKilledAtRandom(t *testing.T) {
	before := descriptors(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	r, end := attach(t, RegistryConfig{})
	processes := make([]*exec.Cmd, maxRegistrants)
	for i := range processes {
		cmd := sleeper.Command()
		programs.Must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		processes[i] = cmd
		register(t, r, fmt.Sprintf("com.example.app%d", i%7), cmd.Process.Pid)
	}
	all := slices.Clone(processes)
	rand.Shuffle(len(processes), func(i, j int) { processes[i], processes[j] = processes[j], processes[i] })
	for _, batch := range [][]*exec.Cmd{processes[:1], processes[1:400], processes[400:999], processes[999:]} {
		for i, cmd := range batch {
			programs.Must(t, cmd.Process.Kill())
			if i%2 == 0 { // the others are zombies until the end of the test: dead all the same
				_ = cmd.Wait()
			}
		}
		processes = processes[len(batch):]
		awaitCount(t, r, len(processes))
		var want []int
		for _, cmd := range processes {
			want = append(want, cmd.Process.Pid)
		}
		slices.Sort(want)
		if got := pidsOf(r); !slices.Equal(got, want) {
			t.Fatalf("%d are left that are not the %d alive", len(got), len(want))
		}
	}
	end()
	for _, cmd := range all {
		_ = cmd.Wait() // os/exec holds descriptors, too, until then
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
}

// descriptors counts the open files of this process; 0 where that is not told.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(open)
}
