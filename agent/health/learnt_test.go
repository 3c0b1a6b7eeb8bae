package health_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// comparing is an app of that a refusal was seen.
func comparing(t *testing.T, kind agentapi.Compared, status int) (*house, *counted) {
	h, app := build(t), count(t)
	h.set("a", app.port, agentapi.AppOptions{})
	h.Probe(t.Context(), "a")
	h.Compared("a", kind, status)
	return h, app
}

// Weakness: an app that answers its first page to everybody, and refuses each form or
// WebSocket that comes with an address it does not know, was told to do well.
// Checked: the first refusal is told, with the option that may help; what says nothing of
// the address is not.
func TestRefusalsTeach(t *testing.T) {
	t.Parallel()
	for kind, what := range map[agentapi.Compared]string{
		agentapi.ComparedForm: "a form", agentapi.ComparedCall: "a call", agentapi.ComparedWebSocket: "a WebSocket",
	} {
		for status, taught := range map[int]bool{400: true, 403: true, 421: true, 401: false, 404: false, 422: false, 500: false, 200: false, 101: false} {
			h, _ := comparing(t, kind, status)
			got := h.Of("a")
			told := got.HealthOption["localhostHost"] == true && strings.Contains(got.HealthDetail, "refused "+what) && strings.Contains(got.HealthDetail, "It may compare addresses")
			if told != taught || got.Health != agentapi.HealthAnswers || got.HealthNote {
				t.Errorf("%s, %d: %+v", kind, status, got)
			}
		}
	}
	// One that is taken shows that another reason is to be had, before and after.
	h, _ := comparing(t, agentapi.ComparedForm, 400)
	h.Compared("a", agentapi.ComparedCall, 200)
	if h.Of("a").HealthOption == nil {
		t.Error("a call that is taken says nothing of forms")
	}
	h.Compared("a", agentapi.ComparedForm, 303)
	h.Compared("a", agentapi.ComparedForm, 400)
	if got := h.Of("a"); got.HealthOption != nil {
		t.Errorf("after a form that was taken: %+v", got)
	}
	// What is worse goes first.
	bad := build(t)
	bad.set("a", serve(t, status(503, 503), nil), agentapi.AppOptions{})
	bad.Probe(t.Context(), "a")
	bad.Compared("a", agentapi.ComparedForm, 403)
	if got := bad.Of("a"); !strings.Contains(got.HealthDetail, "503") || got.HealthOption != nil {
		t.Errorf("%+v", got)
	}
}

// TestARefusalAsksOnce: it has the app asked for its first page, as a probe does, and
// others within ten minutes do not, however many they are.
func TestARefusalAsksOnce(t *testing.T) {
	t.Parallel()
	h, app := comparing(t, agentapi.ComparedForm, 200)
	app.status.Store(http.StatusForbidden)
	asked := func(want int64, when string) {
		t.Helper()
		h.Await(t.Context(), "a")
		if got := app.asked.Load(); got != want {
			t.Errorf("%s: asked %d times, want %d", when, got, want)
		}
	}
	asked(1, "at first")
	h.later(time.Minute)
	for range 50 {
		h.Compared("a", agentapi.ComparedWebSocket, 403)
	}
	asked(3, "refused") // once more as localhost
	h.later(9 * time.Minute)
	h.Compared("a", agentapi.ComparedWebSocket, 403)
	asked(3, "nine minutes later")
	h.later(time.Minute)
	h.Compared("a", agentapi.ComparedWebSocket, 403)
	asked(5, "ten minutes later")
	h.off.Store(true)
	h.later(time.Hour)
	h.Compared("a", agentapi.ComparedWebSocket, 403)
	asked(5, "switched off")
}

// Weakness: a suggestion went away once it was taken, whether it helped or not.
// Checked: the same evidence is looked at again, and told to be as it was.
func TestAnOptionThatDidNotHelp(t *testing.T) {
	t.Parallel()
	const vain = "did not help"
	tells := func(h *house, want bool, when string) {
		t.Helper()
		got := h.Of("a")
		if strings.Contains(got.HealthDetail, vain) != want || got.HealthNote != want || want && got.HealthOption != nil {
			t.Errorf("%s: %+v", when, got)
		}
	}
	take := func(h *house, port int, o agentapi.AppOptions) {
		h.set("a", port, o)
		h.Ask("a")
		h.Await(t.Context(), "a")
	}
	local, told := agentapi.AppOptions{LocalhostHost: true}, agentapi.AppOptions{PublicAddress: true}
	t.Run("called localhost", func(t *testing.T) {
		h, app := comparing(t, agentapi.ComparedWebSocket, 403)
		take(h, app.port, local)
		tells(h, false, "taken")
		h.Compared("a", agentapi.ComparedWebSocket, 403)
		tells(h, true, "refused again")
		h.Compared("a", agentapi.ComparedWebSocket, 101)
		tells(h, false, "taken at last")
		take(h, app.port, agentapi.AppOptions{})
		h.Compared("a", agentapi.ComparedWebSocket, 403)
		if h.Of("a").HealthOption == nil {
			t.Error("not suggested again")
		}
		take(h, app.port, local)
		h.Compared("a", agentapi.ComparedWebSocket, 403)
		h.change(func() { h.socket = 2 })
		h.Probe(t.Context(), "a")
		tells(h, false, "started with other settings")
	})
	t.Run("called localhost from the first", func(t *testing.T) {
		h, app := build(t), count(t)
		take(h, app.port, local)
		h.Compared("a", agentapi.ComparedForm, 400)
		tells(h, false, "a form that is wrong")
	})
	t.Run("told its address, by what visitors got", func(t *testing.T) {
		h, app := build(t), count(t)
		take(h, app.port, agentapi.AppOptions{})
		h.Hint("a")
		take(h, app.port, told)
		tells(h, false, "taken")
		h.Hint("a")
		tells(h, true, "the same again")
		take(h, app.port, agentapi.AppOptions{})
		tells(h, false, "given back")
	})
	t.Run("told its address, by its first page", func(t *testing.T) {
		h := build(t)
		port := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `<base href="http://`+host+`/">`)
		}), nil)
		take(h, port, agentapi.AppOptions{})
		if h.Of("a").HealthOption == nil {
			t.Error("not suggested")
		}
		take(h, port, told)
		tells(h, true, "taken")
		take(h, port, agentapi.AppOptions{PublicAddress: true, FirstByte: 100})
		tells(h, true, "with another option")
	})
	t.Run("told its address from the first", func(t *testing.T) {
		h, app := build(t), count(t)
		take(h, app.port, told)
		h.Hint("a")
		tells(h, false, "nobody suggested it")
	})
}

// TestLearntIsForgotten with the app.
func TestLearntIsForgotten(t *testing.T) {
	t.Parallel()
	h, app := comparing(t, agentapi.ComparedForm, 403)
	h.change(func() { delete(h.apps, "a") })
	h.Compared("a", agentapi.ComparedForm, 403)
	h.Gone("a")
	h.set("a", app.port, agentapi.AppOptions{})
	h.Listening(h.apps["a"], true)
	h.Ask("a")
	programs.Eventually(t, "it is asked again", func() bool { return h.Await(t.Context(), "a").Health == agentapi.HealthAnswers })
	if got := h.Of("a"); got.HealthOption != nil {
		t.Errorf("%+v", got)
	}
}
