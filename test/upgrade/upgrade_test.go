package upgrade_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/upgrade"
	"porchlight/test/visitor"
)

const secret = "a test's owner secret"

// TestDirectoryOf15e3b3fOpens: a data directory with its control store, written
// by an earlier version, opens with every approval, person, grant, session,
// setting and option in it, and everything goes on to work: a browser that was
// signed in still is, a client refreshes, an invitation of then is accepted.
func TestDirectoryOf15e3b3fOpens(t *testing.T) {
	t.Parallel()
	open(t, "15e3b3f").works(t)
}

// TestPostgreSQLOf15e3b3fOpens: the same of a computer that an earlier version connected
// to a control plane on PostgreSQL, with that one's database as it left it.
func TestPostgreSQLOf15e3b3fOpens(t *testing.T) {
	t.Parallel()
	open(t, "15e3b3f-postgresql").works(t)
}

// TestDirectoryOfC3b4a6feOpens: a data directory of c3b4a6fe opens with what had come
// by then, too: app passwords, and access that ends.
func TestDirectoryOfC3b4a6feOpens(t *testing.T) {
	t.Parallel()
	open(t, "c3b4a6fe").works(t)
}

// TestPostgreSQLOfC3b4a6feOpens: the same of a connected computer.
func TestPostgreSQLOfC3b4a6feOpens(t *testing.T) {
	t.Parallel()
	open(t, "c3b4a6fe-postgresql").works(t)
}

func (h *house) works(t *testing.T) {
	t.Helper()
	h.keepsEverything(t)
	h.publishesAgain(t)
	for who, cookies := range map[string]map[string]string{"ben@example.com": h.kept.Ben, h.kept.Account.Email: h.kept.Owner} {
		if body := h.visit(t, by(cookies)); body != "hello "+who {
			t.Errorf("the browser of %s sees %q", who, body)
		}
	}
	h.refreshes(t)
	h.invitationWorks(t)
	h.isSearched(t)
	if kept := h.kept.Password.Password; kept != "" {
		asThen := func(r *http.Request) { r.SetBasicAuth(h.kept.Account.Email, kept) }
		if body := h.visit(t, asThen); body != "hello "+h.kept.Account.Email {
			t.Errorf("a program with an app password of then sees %q", body)
		}
	}
	password, err := h.owner.MakePassword(t.Context(), agentapi.PasswordRequest{App: "notes", Name: "since the upgrade"})
	programs.Must(t, err)
	asProgram := func(r *http.Request) { r.SetBasicAuth(h.kept.Account.Email, password.Password) }
	if body := h.visit(t, asProgram); body != "hello "+h.kept.Account.Email {
		t.Errorf("a program with an app password sees %q", body)
	}
	// Once more by this version: what it wrote itself opens too.
	h.stop()
	h.start(t)
	h.keepsEverything(t)
	h.publishesAgain(t)
	if body := h.visit(t, asProgram); body != "hello "+h.kept.Account.Email {
		t.Errorf("a program with an app password of this version sees %q", body)
	}
	h.endsForBen(t)
	h.stop()
}

// isSearched: what operators search has its indexes after a while, of rows of then, too.
func (h *house) isSearched(t *testing.T) {
	t.Helper()
	dir := filepath.Join(h.dir, "control")
	if h.plane != nil {
		dir = h.plane.dir
	}
	c := programs.Got(admin.Dial(dir))(t)
	defer c.Close()
	var found control.Page[control.Account]
	programs.Eventually(t, "the indexes are made", func() (done bool) {
		found = programs.Got(admin.Listed(t.Context(), c, admin.Accounts, control.Query{Prefix: "@example.com"}))(t)
		return !found.Partial
	})
	if !slices.ContainsFunc(found.Rows, func(a control.Account) bool { return a.Email == "ben@example.com" }) {
		t.Errorf("by their domain are found %+v", found.Rows)
	}
	var owner control.AccountDetail
	programs.Eventually(t, "the owner's computers are indexed", func() bool {
		owner = programs.Got(c.Account(t.Context(), h.kept.Account.AccountID))(t)
		return !owner.Partial
	})
	if len(owner.Computers) != 1 {
		t.Errorf("the owner is %+v", owner)
	}
	programs.Eventually(t, "clients are indexed", func() bool {
		p := programs.Got(admin.Listed(t.Context(), c, admin.Clients, control.Query{}))(t)
		return !p.Partial && len(p.Rows) > 0
	})
}

// endsForBen gives what ben has from then an end, which comes.
func (h *house) endsForBen(t *testing.T) {
	t.Helper()
	i := slices.IndexFunc(h.kept.People.Members, func(p agentapi.Person) bool { return p.Email == "ben@example.com" })
	ben := h.kept.People.Members[i]
	for _, app := range ben.Apps {
		var changed agentapi.PersonChanged
		err := error(agentapi.Errorf(agentapi.CodeInvalid, "not given yet"))
		// An end that a busy machine lets come before it is given is refused.
		for away := time.Second; agentapi.CodeOf(err) == agentapi.CodeInvalid && away < time.Minute; away *= 2 {
			changed, err = h.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: ben.AccountID, App: app, Granted: true, Until: away.String()})
		}
		if err != nil || changed.Person.Until[app].IsZero() && changed.Person.Ended[app].IsZero() {
			t.Fatalf("%s until a date: %+v, %v", app, changed, err)
		}
	}
	programs.Eventually(t, "the end of what ben has", func() bool {
		people, err := h.owner.People(t.Context())
		return err == nil && slices.ContainsFunc(people.Members, func(p agentapi.Person) bool {
			return p.AccountID == ben.AccountID && len(p.Apps) == 0 && len(p.Ended) == len(ben.Apps)
		})
	})
	// A connected computer hears of it a moment later.
	programs.Eventually(t, "ben is not let in", func() bool { return !strings.HasPrefix(h.visit(t, by(h.kept.Ben)), "hello") })
}

type house struct {
	kept    upgrade.Kept
	dir     string
	now     func() time.Time
	running *host.Host
	stop    func()
	owner   *agentapi.Client
	port    int    // of the app
	plane   *plane // of a connected computer; nil of one on its own
}

// open unpacks what a version wrote and starts this one on it, an hour after.
func open(t *testing.T, version string) *house {
	t.Helper()
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", version+".tar.gz"), dir)
	h := &house{dir: filepath.Join(dir, "data")}
	raw, err := os.ReadFile(filepath.Join(dir, "kept.json"))
	programs.Must(t, err)
	programs.Must(t, json.Unmarshal(raw, &h.kept))
	began := time.Now()
	h.now = func() time.Time { return h.kept.WrittenAt.Add(time.Hour + time.Since(began)) }
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	t.Cleanup(app.Close)
	h.port = app.Listener.Addr().(*net.TCPAddr).Port
	if _, none := os.Stat(filepath.Join(h.dir, "control")); none == nil {
		// Another program may have the port of then.
		err = os.Remove(filepath.Join(h.dir, "https-port"))
	} else {
		h.plane, err = restore(t, dir, h.now())
	}
	programs.Must(t, err)
	h.start(t)
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *house) start(t *testing.T) {
	t.Helper()
	if h.plane != nil {
		h.plane.start(t, h.dir)
	}
	running := programs.Got(host.New(t.Context(), host.Config{
		DataDir: h.dir, API: "127.0.0.1:0", Local: h.plane == nil, HTTPS: "127.0.0.1:0", Mode: agentapi.ModeHeadless,
		OwnerSecretHash: ownersecret.Hash(secret), Now: h.now, Log: slog.New(slog.DiscardHandler),
	}))(t)
	h.running, h.owner = running, agentapi.NewOwner(running.OwnerSocket(), secret)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { defer close(ended); ended <- running.Run(ctx) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		if h.plane != nil {
			h.plane.stop(t)
		}
	}
	select {
	case <-running.Ready():
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	}
}

func (h *house) keepsEverything(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	account := programs.Got(h.owner.Account(ctx))(t)
	if account.AccountID != h.kept.Account.AccountID || account.Name != h.kept.Account.Name || account.Email != h.kept.Account.Email {
		t.Errorf("the account is %+v, was %+v", account, h.kept.Account)
	}
	state := programs.Got(h.owner.State(ctx))(t)
	h.keepsApps(t, state)
	people, err := h.owner.People(ctx)
	same(t, "people", people, h.kept.People, err)
	settings, err := h.owner.Settings(ctx)
	then := h.kept.Settings
	then.Probe, then.Requests, then.Titles, then.TellOff = true, true, true, true // came since, and are on until somebody turns them off
	then.ClientHosts = []string{}                                                 // came since, and allow nobody
	same(t, "settings", settings, then, err)
	grants, err := h.owner.Grants(ctx)
	for i := range grants {
		grants[i].LastUsedAt = h.kept.Grants[0].LastUsedAt // it may have been used since
	}
	same(t, "grants", grants, h.kept.Grants, err)
	activity, err := h.owner.Activity(ctx, 100)
	if err != nil || len(activity) < len(h.kept.Activity) {
		t.Fatalf("activity: %+v, %v", activity, err)
	}
	activity = activity[len(activity)-len(h.kept.Activity):]
	for i, was := range h.kept.Activity {
		if was.ID == 0 {
			activity[i].ID = 0 // 15e3b3f told no numbers of lines
		}
		if you := was.Email == account.Email; activity[i].You != you {
			t.Errorf("%+v is about the owner: %v", activity[i], you)
		}
		activity[i].You = was.You // came since
	}
	same(t, "activity", activity, h.kept.Activity, nil)
}

func (h *house) keepsApps(t *testing.T, state agentapi.OwnerState) {
	t.Helper()
	for _, was := range h.kept.Apps {
		i := slices.IndexFunc(state.Apps, func(app agentapi.OwnerApp) bool { return app.Name == was.Name })
		if i < 0 {
			t.Errorf("%s is gone", was.Name)
			continue
		}
		app := state.Apps[i]
		if app.Label != was.Label || app.Status != was.Status || (was.LocalPort != app.LocalPort && app.LocalPort != h.port) {
			t.Errorf("%s is %+v, was %+v", was.Name, app.AppSummary, was)
		}
		if app.Paused != (app.Name == "photos") {
			t.Errorf("%s is paused: %v", app.Name, app.Paused)
		}
		if app.Name == "notes" {
			same(t, "options", app.Options, h.kept.Options, nil)
		}
	}
	if len(state.Apps) != len(h.kept.Apps) {
		t.Errorf("%d apps, were %d", len(state.Apps), len(h.kept.Apps))
	}
}

func same[T any](t *testing.T, what string, got, want T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-then +now):\n%s", what, diff)
	}
}

// publishesAgain has the app of then come back, on another port: it was approved
// and is live at once.
func (h *house) publishesAgain(t *testing.T) {
	t.Helper()
	program := agentapi.New(h.running.API())
	pub, err := program.Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: h.port})
	if err != nil || pub.Status != agentapi.StatusLive {
		t.Fatalf("notes came back as %+v, %v", pub, err)
	}
}

func (h *house) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	files := []string{h.running.RootCAPath()}
	if h.plane != nil {
		files = append(files, rig.Authority(h.plane.dir))
	}
	return programs.Got(rig.Roots(files...))(t)
}

// by adds the cookies a browser held then.
func by(cookies map[string]string) func(*http.Request) {
	return func(r *http.Request) {
		for name, value := range cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
}

// visit opens notes with a request to which identify has added who asks.
func (h *house) visit(t *testing.T, identify func(*http.Request)) string {
	t.Helper()
	pub := programs.Got(agentapi.New(h.running.API()).Publication(t.Context(), "notes"))(t)
	req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, pub.URL+"/", nil))(t)
	identify(req)
	resp, err := upgrade.Client(h.roots(t)).Do(req)
	if errors.Is(err, syscall.ECONNRESET) {
		return "cut off" // whose access ended meanwhile
	}
	programs.Must(t, err)
	defer resp.Body.Close()
	if got := resp.Header.Get("Clear-Site-Data"); got != "" {
		t.Errorf("the first visit after the upgrade clears %s", got)
	}
	body := programs.Got(io.ReadAll(resp.Body))(t)
	return string(body)
}

// refreshes has the client of then get its next tokens, once.
func (h *house) refreshes(t *testing.T) {
	t.Helper()
	account := programs.Got(h.owner.Account(t.Context()))(t)
	kept := h.kept
	kept.Account.AuthURL = account.AuthURL
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, upgrade.Client(h.roots(t)))
	config := upgrade.OAuth(kept)
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: kept.RefreshToken}).Token()
	if err != nil || token.RefreshToken == "" || token.Extra("host") != account.Host {
		t.Fatalf("refresh: %+v, %v", token, err)
	}
	_, err = config.TokenSource(ctx, &oauth2.Token{RefreshToken: kept.RefreshToken}).Token()
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); !ok || refusal.ErrorCode != "invalid_grant" {
		t.Errorf("a used refresh token: %v", err)
	}
}

// invitationWorks has carla accept with the mail she got then.
func (h *house) invitationWorks(t *testing.T) {
	t.Helper()
	account, err := h.owner.Account(t.Context())
	programs.Must(t, err)
	var mails []agentapi.Mail
	if h.plane != nil {
		err = h.plane.running.Run(&mails, "outbox")
	} else {
		mails, err = h.owner.Outbox(t.Context())
	}
	programs.Must(t, err)
	i := slices.IndexFunc(mails, func(m agentapi.Mail) bool { return m.To == "carla@example.com" && len(m.Links) > 0 })
	if i < 0 {
		t.Fatal("the invitation's mail is gone")
	}
	browser := visitor.New(h.roots(t))
	defer browser.Close()
	// Local mode's port is part of its addresses, and is another one here.
	link := strings.Replace(mails[i].Links[0], h.kept.Account.AuthURL, account.AuthURL, 1)
	programs.Must(t, browser.Accept(t.Context(), link))
	if page, err := browser.Open(t.Context(), "https://notes."+account.Host+"/"); err != nil || page.Body != "hello carla@example.com" {
		t.Fatalf("carla sees %+v, %v", page, err)
	}
	for i, m := range h.kept.People.Members {
		if m.Email == "carla@example.com" {
			h.kept.People.Members[i].Status = agentapi.PersonActive
		}
	}
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f := programs.Got(os.Open(archive))(t)
	defer f.Close()
	zipped := programs.Got(gzip.NewReader(f))(t)
	for entries := tar.NewReader(zipped); ; {
		head, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		programs.Must(t, err)
		to := filepath.Join(dir, strings.TrimSuffix(head.Name, "/"))
		if head.Typeflag == tar.TypeDir {
			programs.Must(t, os.MkdirAll(to, 0o700))
			continue
		}
		raw := programs.Got(io.ReadAll(entries))(t)
		programs.Must(t, os.WriteFile(to, raw, head.FileInfo().Mode().Perm()))
	}
}
