package desktop

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// fakeAgent answers what it is asked, and keeps it.
type fakeAgent struct {
	*agentapi.Client
	mu      sync.Mutex
	calls   []string
	answers map[string]any // by call; a func(body) is asked, an *agentapi.Error refuses
}

// startAgent answers calls, such as "POST /owner/dark", so, and others by nothing.
func startAgent(t *testing.T, answers map[string]any) *fakeAgent {
	t.Helper()
	a := &fakeAgent{answers: answers}
	dir := t.TempDir()
	programs.Must(t, os.Chmod(dir, 0o700))
	socket := filepath.Join(dir, "owner.sock")
	l := programs.Got(net.Listen("unix", socket))(t)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Method + " " + r.URL.Path
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.calls = append(a.calls, call+string(body))
		answer := a.answers[call]
		a.mu.Unlock()
		if ask, ok := answer.(func(string) any); ok {
			answer = ask(string(body))
		}
		w.Header().Set("Content-Type", "application/json")
		if refusal, ok := answer.(*agentapi.Error); ok {
			w.WriteHeader(refusal.Code.Status())
			answer = agentapi.ErrorBody{Error: refusal.Message}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}}
	s.Start()
	t.Cleanup(s.Close)
	a.Client = agentapi.NewOwner(socket, "secret")
	return a
}

// answer has a call answered so from now on.
func (a *fakeAgent) answer(call string, answer any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[call] = answer
}

// asked are the calls, with their bodies.
func (a *fakeAgent) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}
