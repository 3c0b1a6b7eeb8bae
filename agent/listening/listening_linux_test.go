package listening_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"porchlight/agent/agentapi"
	"porchlight/agent/listening"
	"porchlight/agent/procinfo"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) {
	if port := os.Getenv(otherVariable); port != "" {
		os.Exit(listenAsOther())
	}
	goleak.VerifyTestMain(m)
}

// me is the user of this test.
func me() string { return strconv.Itoa(os.Getuid()) }

// rig is what listens, as the owner is told of it.
type rig struct {
	*listening.Listening
	apps   map[int]agentapi.AppSummary
	titles atomic.Bool
}

func newRig(own ...int) *rig {
	r := &rig{apps: map[int]agentapi.AppSummary{}}
	r.titles.Store(true)
	r.Listening = listening.New(listening.Config{
		App: func(port int) (agentapi.AppSummary, bool) { app, ok := r.apps[port]; return app, ok },
		Suggest: func(texts ...string) (string, string) {
			for _, text := range texts {
				if text != "" {
					return "name", text
				}
			}
			return "", ""
		},
		Called:   func(_ netip.AddrPort, p procinfo.Process, _ uint64) string { return p.Program },
		OwnPorts: own, Me: me(), Titles: r.titles.Load,
	})
	r.AskFor(programs.Patience) // a busy machine may need more than the second there is
	return r
}

func (r *rig) at(port int) (agentapi.Listening, bool) {
	for _, one := range r.List() {
		if one.Port == port {
			return one, true
		}
	}
	return agentapi.Listening{}, false
}

// serve is the port of a program of ours that counts what it is asked.
func serve(t *testing.T, handler http.Handler) (port int, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port, asked
}

func TestList(t *testing.T) {
	t.Parallel()
	port, asked := serve(t, http.NotFoundHandler())
	own, _ := serve(t, http.NotFoundHandler())
	live, _ := serve(t, http.NotFoundHandler())
	pending, _ := serve(t, http.NotFoundHandler())
	wide := programs.Got(net.Listen("tcp", ":0"))(t)
	defer wide.Close()
	six := programs.Got(net.Listen("tcp6", "[::1]:0"))(t)
	defer six.Close()
	r := newRig(own)
	r.apps[live] = agentapi.AppSummary{Name: "notes", Label: "Notes", Status: agentapi.StatusLive}
	r.apps[pending] = agentapi.AppSummary{Name: "photos", Label: "Photos", Status: agentapi.StatusPending}

	for what, want := range map[string]struct {
		port int
		agentapi.Listening
	}{
		"a program of ours": {port, agentapi.Listening{Own: true, Looks: true, MeantFor: agentapi.MeantFor{Label: "Listening.test"}}},
		"our own port":      {own, agentapi.Listening{Own: true, NotOffered: agentapi.NotOfferedOwn, MeantFor: agentapi.MeantFor{Label: "Listening.test"}}},
		"a live app":        {live, agentapi.Listening{Own: true, MeantFor: agentapi.MeantFor{Published: true, App: "notes", Status: agentapi.StatusLive, Label: "Notes"}}},
		"one that asks":     {pending, agentapi.Listening{Own: true, Looks: true, MeantFor: agentapi.MeantFor{App: "photos", Status: agentapi.StatusPending, Label: "Photos"}}},
		"on every address":  {wide.Addr().(*net.TCPAddr).Port, agentapi.Listening{Own: true, Looks: true, Network: true, MeantFor: agentapi.MeantFor{Label: "Listening.test"}}},
		"on [::1] alone":    {six.Addr().(*net.TCPAddr).Port, agentapi.Listening{Own: true, Looks: true, MeantFor: agentapi.MeantFor{Label: "Listening.test"}}},
	} {
		var got agentapi.Listening
		var ok bool
		// On a busy machine the time of one list is over before every program is found.
		programs.Eventually(t, what+" has a name", func() bool { got, ok = r.at(want.port); return got.Program != "" })
		if !ok || got.Program != "listening.test" || got.User == "" || got.Since.IsZero() || got.Own != want.Own || got.Looks != want.Looks || got.Network != want.Network ||
			got.Published != want.Published || got.App != want.App || got.Status != want.Status || got.NotOffered != want.NotOffered || got.Label != want.Label {
			t.Errorf("%s: %+v, %v", what, got, ok)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("a list asked a program %d times", asked.Load())
	}
	r.titles.Store(false)
	if got, _ := r.at(port); got.Looks {
		t.Error("titles are off, and it may be looked at")
	}
}

// What was there before Porchlight looked has listened for a while; what comes later may be
// a helper that is gone soon, above all where the system gave it its port.
func TestHelpersAreToldFromWhatStays(t *testing.T) {
	t.Parallel()
	listens := func(port int) int {
		l := programs.Got(net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)))(t)
		t.Cleanup(func() { l.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	r := newRig()
	chosen, given := listens(programs.FreePort(t)), listens(0)
	check := func(port int, steady, passing bool) {
		t.Helper()
		if got, ok := r.at(port); !ok || got.Steady != steady || got.Passing != passing {
			t.Errorf("port %d: %v, steady %v, passing %v", port, ok, got.Steady, got.Passing)
		}
	}
	check(chosen, true, false)
	check(given, false, false)
	check(listens(programs.FreePort(t)), false, false)
	check(listens(0), false, true)
	check(chosen, true, false)
}

// What came later is known as that, and what went away is gone at once.
func TestNewestCameLast(t *testing.T) {
	t.Parallel()
	first, _ := serve(t, http.NotFoundHandler())
	r := newRig()
	before, _ := r.at(first)
	s := programs.Serve(t, http.NotFoundHandler())
	second := s.Listener.Addr().(*net.TCPAddr).Port
	after, ok := r.at(second)
	if again, _ := r.at(first); !ok || !after.Since.After(before.Since) || !again.Since.Equal(before.Since) {
		t.Errorf("%v, then %v", before.Since, after.Since)
	}
	s.Close()
	if _, ok := r.at(second); ok {
		t.Error("it is closed, and listed")
	}
	if _, err := r.Look(t.Context(), agentapi.Look{Port: second}); agentapi.CodeOf(err) != agentapi.CodeConflict || err.Error() != "Port "+strconv.Itoa(second)+" stopped listening." {
		t.Errorf("a look at it: %v", err)
	}
}
