package engine

import (
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// A pause is the owner's: nothing the app does opens it, it stays live for the
// app itself, and it goes with the approval.
func TestPauseStands(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	ctx := t.Context()
	notes := agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000}
	must := func(_ any, err error) {
		t.Helper()
		programs.Must(t, err)
	}
	paused := func(want bool) {
		t.Helper()
		app, ok := h.apps.Lookup("notes")
		if owner := h.apps.OwnerApps(nil); !ok || app.Paused != want || owner[0].Paused != want {
			t.Fatalf("paused %v and %v, want %v", app.Paused, owner[0].Paused, want)
		}
	}
	if _, err := h.apps.Pause(ctx, "notes"); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("pausing nothing: %v", err)
	}
	must(h.apps.Publish(ctx, Caller{}, notes))
	for _, refused := range []error{
		func() error { _, err := h.apps.Pause(ctx, "notes"); return err }(),
		func() error { _, err := h.apps.Resume(ctx, "notes"); return err }(),
		func() error {
			_, err := h.apps.ChangeOptions(ctx, "notes", to(agentapi.AppOptions{H2C: true}))
			return err
		}(),
	} {
		if agentapi.CodeOf(refused) != agentapi.CodeConflict {
			t.Errorf("of a request: %v", refused)
		}
	}
	must(h.apps.Approve(ctx, "notes", agentapi.Approval{}))
	app, _ := h.apps.Lookup("notes")
	h.gone = nil
	closed, err := h.apps.Pause(ctx, "notes")
	if err != nil || closed.Closed != 3 || strings.Join(h.gone, " ") != app.ID {
		t.Fatalf("%+v, %v, gone %v", closed, err, h.gone)
	}
	paused(true)
	// What slipped in before the proxy saw it is closed by pausing again.
	h.gone = nil
	if closed, err := h.apps.Pause(ctx, "notes"); err != nil || closed.Closed != 3 || strings.Join(h.gone, " ") != app.ID {
		t.Errorf("pausing again: %+v, %v, gone %v", closed, err, h.gone)
	}
	if pub, err := h.apps.Get("notes"); err != nil || pub.Status != agentapi.StatusLive || pub.URL == "" {
		t.Errorf("the app sees %+v, %v", pub, err)
	}
	must(h.apps.Unpublish(ctx, Caller{}, "notes"))
	must(h.apps.Publish(ctx, Caller{}, notes))
	h.reopen()
	paused(true)
	must(h.apps.Resume(ctx, "notes"))
	must(h.apps.Resume(ctx, "notes"))
	paused(false)
	must(h.apps.Pause(ctx, "notes"))
	must(h.apps.Revoke(ctx, "notes"))
	must(h.apps.Publish(ctx, Caller{}, notes))
	must(h.apps.Approve(ctx, "notes", agentapi.Approval{}))
	paused(false)
}

// to changes options to others.
func to(o agentapi.AppOptions) func(*agentapi.AppOptions) {
	return func(kept *agentapi.AppOptions) { *kept = o }
}

func TestOptions(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	ctx := t.Context()
	h.live(t, "notes", "Notes", 8000)
	for _, header := range []string{"X-Remote-User", "Remote-User", "REMOTE_USER", "X-WEBAUTH-USER", "X-Auth-Request-Email", "X-Forwarded-User", "X-Email", " X-User "} {
		kept, err := h.apps.ChangeOptions(ctx, "notes", to(agentapi.AppOptions{Forwarded: true, IdentityHeader: header}))
		want := agentapi.AppOptions{Forwarded: true, IdentityHeader: strings.TrimSpace(header), IdentityValue: agentapi.IdentityEmail}
		if err != nil || kept != want {
			t.Errorf("%q: %+v, %v", header, kept, err)
		}
		h.reopen()
		if app, _ := h.apps.Lookup("notes"); app.Options != want || h.apps.OwnerApps(nil)[0].Options != want {
			t.Errorf("%q is kept as %+v", header, app.Options)
		}
	}
	before, _ := h.apps.Lookup("notes")
	for _, header := range []string{
		"X-Service-User", "x_service_role", "X.Service.Anything", "X-Forwarded-For", "Host", "HOST", "Cookie", "cookie2", "Authorization",
		"Proxy-Authorization", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "transfer_encoding", "Upgrade",
		"Content-Length", "Content-Type", "Content-", "Origin", "Referer", "Sec-Fetch-Site", "Sec-WebSocket-Key", "Range", "If-Match",
		"Access-Control-Request-Method", "Accept", "Accept-Encoding", "Forwarded", "X-Real-IP", "X-Porchlight-Key", "X-HTTP-Method-Override", "X-Original-URL",
		"X-Rewrite-URL", "Expect", "Via", "Proxy", "Set-Cookie", "Destination",
		"X Remote User", "X-Remote-User:", "X-Remote-User\r\nHost", "X-Rémote", "\x00", "-", "__", strings.Repeat("x", 65),
	} {
		if _, err := h.apps.ChangeOptions(ctx, "notes", to(agentapi.AppOptions{IdentityHeader: header})); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%q: %v", header, err)
		}
	}
	if _, err := h.apps.ChangeOptions(ctx, "notes", to(agentapi.AppOptions{IdentityHeader: "X-User", IdentityValue: "name"})); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("a value nobody knows: %v", err)
	}
	if after, _ := h.apps.Lookup("notes"); after.Options != before.Options {
		t.Errorf("a refusal left %+v", after.Options)
	}
	kept, err := h.apps.ChangeOptions(ctx, "notes", to(agentapi.AppOptions{IdentityValue: agentapi.IdentityID}))
	if err != nil || kept != (agentapi.AppOptions{}) {
		t.Errorf("without a header: %+v, %v", kept, err)
	}
}

// An app that begins to ask for a passkey, or lets in something else besides, is closed to
// whoever is in: they come again by a way that will do. Nothing else closes anybody.
func TestOnlyPasskeyClosesWhoIsIn(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	h.live(t, "notes", "Notes", 8000)
	app, _ := h.apps.Lookup("notes")
	for _, step := range []struct {
		to     agentapi.AppOptions
		kept   string // of BesidesPasskey
		closes bool
	}{
		{agentapi.AppOptions{BesidesPasskey: "tokens"}, "", false},
		{agentapi.AppOptions{OnlyPasskey: true, BesidesPasskey: " provider,passwords,provider "}, "passwords,provider", true},
		{agentapi.AppOptions{OnlyPasskey: true, BesidesPasskey: "passwords,provider", H2C: true}, "passwords,provider", false},
		{agentapi.AppOptions{OnlyPasskey: true, BesidesPasskey: "passwords"}, "passwords", true},
		{agentapi.AppOptions{BesidesPasskey: "passwords"}, "", false},
		{agentapi.AppOptions{OnlyPasskey: true}, "", true},
	} {
		h.gone = nil
		kept, err := h.apps.ChangeOptions(t.Context(), "notes", to(step.to))
		if err != nil || kept.OnlyPasskey != step.to.OnlyPasskey || kept.BesidesPasskey != step.kept {
			t.Errorf("%+v is kept as %+v, %v", step.to, kept, err)
		}
		if want := map[bool]string{true: app.ID}[step.closes]; strings.Join(h.gone, " ") != want {
			t.Errorf("%+v closed %q", step.to, h.gone)
		}
	}
	if _, err := h.apps.ChangeOptions(t.Context(), "notes", to(agentapi.AppOptions{OnlyPasskey: true, BesidesPasskey: "mail"})); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("letting in by mail: %v", err)
	}
}

// TestAskAgain: with the setting on, a changed port waits for the owner; whatever
// they say, the approval that was there is not lost by asking.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	was := store.App{ID: "id-1", Name: "notes", Label: "Notes", LocalPort: 8000, Status: agentapi.StatusLive, Paused: true}
	ask := asksAgain("Diary", 9000)
	out, err := happens(t, kept(was), ask)
	if err != nil || out.App.Status != agentapi.StatusPending || out.Gone != "id-1" || out.App.ID != "id-1" || out.App.LocalPort != 9000 {
		t.Fatalf("%+v, %v", out.App, err)
	}
	asking := left(out)
	for what, tt := range map[string]struct {
		event  event
		status agentapi.Status
		label  string
		port   int
	}{
		"approve":                          {approves("id-2"), agentapi.StatusLive, "Diary", 9000},
		"deny":                             {on("deny"), agentapi.StatusStopped, "Notes", 8000},
		"withdraw":                         {on("withdraw"), agentapi.StatusStopped, "Notes", 8000},
		"revoke":                           {on("revoke"), "", "", 0},
		"back at its port":                 {asksAgain("Diary", 8000), agentapi.StatusLive, "Diary", 8000},
		"another port":                     {asksAgain("Diary", 9001), agentapi.StatusPending, "Diary", 9001},
		"another, with the setting off":    {asks("Diary", 9001), agentapi.StatusPending, "Diary", 9001},
		"approve what is not there to see": {event{Kind: "approve", Seen: &agentapi.Seen{Label: "Notes", LocalPort: 8000}}, agentapi.StatusPending, "Diary", 9000},
	} {
		out, err := happens(t, asking, tt.event)
		if statusOf(out.App) != tt.status || (err != nil) != (tt.event.Seen != nil) {
			t.Errorf("%s: %q, %v", what, statusOf(out.App), err)
			continue
		}
		if app := out.App; app != nil && (app.ID != "id-1" || app.Label != tt.label || app.LocalPort != tt.port || !app.Paused ||
			(app.Approved != nil) != (tt.status == agentapi.StatusPending)) {
			t.Errorf("%s: %+v", what, app)
		}
		if out.App != nil && out.App.Approved != nil && (out.App.Approved.Label != "Notes" || out.App.Approved.LocalPort != 8000) {
			t.Errorf("%s: the approval is for %+v by now", what, out.App.Approved)
		}
	}
	if out, err = happens(t, kept(was), asksAgain("Diary", 8000)); err != nil || statusOf(out.App) != agentapi.StatusLive {
		t.Errorf("the same port: %+v, %v", out.App, err)
	}
	denied, _ := happens(t, asking, on("deny"))
	if out, _ = happens(t, left(denied), ask); !out.App.Quiet || out.Gone != "" {
		t.Errorf("asking again after a no: %+v, gone %q", out.App, out.Gone)
	}
}

// TestLabelIsHeldWhileAskingAgain: an app that asks again under another label still
// has the first one, so nobody else can take it meanwhile.
func TestLabelIsHeldWhileAskingAgain(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	ctx := t.Context()
	h.live(t, "notes", "Notes", 8000)
	h.cfg.AskAgain = func() bool { return true }
	programs.Must(t, second(h.apps.Publish(ctx, Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Diary", LocalPort: 9000})))
	for _, label := range []string{"notes", "Diary"} {
		if _, err := h.apps.Publish(ctx, Caller{}, agentapi.PublishRequest{Name: "other", Label: label, LocalPort: 8001}); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("%s: %v", label, err)
		}
	}
}
