package local

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// TestVisitsTellHowAnAppDoes: what a visitor meets is what the owner reads, until the
// app answers one; its last error stays. An app that hung when it was asked, and
// answers a visitor, does not hang any more.
func TestVisitsTellHowAnAppDoes(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	h.asksApps(t, true)
	hang := make(chan struct{})
	h.serves(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.UserAgent() == "Porchlight-probe":
			<-hang
		case r.URL.Path == "/bad":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
		default:
			fmt.Fprint(w, "fine")
		}
	})))
	t.Cleanup(func() { close(hang) }) // before the server ends
	address := h.publish(t)
	does := func(when string, want agentapi.Health) agentapi.OwnerApp {
		t.Helper()
		var app agentapi.OwnerApp
		// An approval waits for an answer only so long, which a busy machine exceeds.
		programs.Eventually(t, when, func() bool {
			state, err := h.owner.State(t.Context())
			if err != nil || len(state.Apps) != 1 {
				t.Fatalf("%s: %+v, %v", when, state.Apps, err)
			}
			app = state.Apps[0]
			return app.Health == want
		})
		return app
	}
	does("it hangs", agentapi.HealthSilent)
	client := h.ownersClient(t, false)
	visit := func(path string, want int) {
		t.Helper()
		res := send(t, client, http.MethodGet, address+path, nil)
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != want {
			t.Fatalf("%s: %s, %v", path, res.Status, err)
		}
	}
	visit("/", http.StatusOK)
	if app := does("it answered a visitor", agentapi.HealthAnswers); app.LastError != nil {
		t.Errorf("%+v", app.LastError)
	}
	visit("/bad", http.StatusBadGateway)
	app := does("it answered wrongly", agentapi.HealthWrong)
	if app.LastError == nil || app.LastError.Text != app.HealthDetail || !strings.Contains(app.HealthDetail, "two lengths") {
		t.Errorf("%+v", app.AppHealth)
	}
	visit("/", http.StatusOK)
	if app := does("and well again", agentapi.HealthAnswers); app.LastError == nil || !strings.Contains(app.LastError.Text, "two lengths") {
		t.Errorf("%+v", app.AppHealth)
	}
	if _, err := h.owner.Revoke(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	h.publish(t)
	if app := does("approved anew", agentapi.HealthSilent); app.LastError != nil {
		t.Errorf("the last error of another approval: %+v", app.LastError)
	}
}
