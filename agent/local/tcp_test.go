package local

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/agent/reach"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// pocket keeps a sign-in for as long as a test runs; several processes share one.
type pocket struct {
	mu   sync.Mutex
	kept string
	sets int
}

func (p *pocket) Get(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == "" {
		return "", ownersecret.ErrNotFound
	}
	return p.kept, nil
}

func (p *pocket) Set(_ context.Context, secret string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept, p.sets = secret, p.sets+1
	return nil
}

func (p *pocket) Delete(context.Context) error { p.kept = ""; return nil }
func (p *pocket) Kind() string                 { return "file" }

// reacher is porchlight reach of whoever a browser is signed in as; consent is what they press.
func (h *house) reacher(t *testing.T, address string, by *visitor.Visitor, keep *pocket, consent string) *reach.App {
	return reach.New(strings.TrimPrefix(address, "https://"), reach.Config{
		Transport: controlapi.NewTransport(h.roots()), Keep: []ownersecret.Store{keep}, Tell: func(string) {},
		Browse: func(ctx context.Context, address string) error {
			page, err := by.Open(ctx, address)
			if err == nil && page.URL.Hostname() != "127.0.0.1" { // else it was refused
				page, err = by.Submit(ctx, page, "account", map[string]string{"decision": consent})
			}
			if err != nil || page.URL.Hostname() != "127.0.0.1" || page.Status != http.StatusOK {
				t.Errorf("the browser ends at %+v, %v", page, err)
			}
			return err
		},
	})
}

// repeating is an app that is no web app: it says back what it is told.
func repeating(t *testing.T) (port int) {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(programs.ServeConns(t, ln, func(conn net.Conn) {
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}))
	return ln.Addr().(*net.TCPAddr).Port
}

// The whole way of an app that is no web app: only its owner can ask for it, who has to
// approve it; a guest reaches it with nothing but a browser, and no longer than they may.
func TestAppsAreReachedByTCP(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	ctx, cancel := context.WithTimeout(t.Context(), programs.Patience)
	defer cancel()
	notes, port := h.publish(t), repeating(t)
	pub := programs.Got(h.owner.PublishTCP(ctx, "db", agentapi.PublishTCP{Label: "Database", LocalPort: port}))(t)
	if pub.Status != agentapi.StatusPending {
		t.Fatalf("it is %s before its owner said yes", pub.Status)
	}
	for _, web := range []int{port, h.port} {
		if _, err := h.open.Publish(ctx, agentapi.PublishRequest{Name: "db", Label: "Database", LocalPort: web}); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("a program makes it a web app: %v", err)
		}
	}
	if _, err := h.owner.PublishTCP(ctx, "notes", agentapi.PublishTCP{Label: "Notes", LocalPort: port}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("a web app becomes one that is none: %v", err)
	}
	if _, err := h.open.PublishTCP(ctx, "theirs", agentapi.PublishTCP{Label: "Theirs", LocalPort: port}); err == nil {
		t.Error("any program asks for one")
	}
	stays := func(when string, status agentapi.Status) {
		t.Helper()
		_, err := h.open.Unpublish(ctx, "db")
		if pub := programs.Got(h.open.Publication(ctx, "db"))(t); agentapi.CodeOf(err) != agentapi.CodeConflict || pub.Status != status {
			t.Errorf("%s, any program takes it off: %v, and it is %s", when, err, pub.Status)
		}
	}
	stays("while it waits", agentapi.StatusPending)
	state := programs.Got(h.owner.State(ctx))(t)
	if app := state.Apps[0]; app.Name != "db" || !app.TCP || app.MeansTCP().IsZero() {
		t.Errorf("the owner is shown %+v", app)
	}
	seen := agentapi.SeenOf(state.Apps[0])
	seen.TCP = false
	if _, err := h.owner.ApproveSeen(ctx, "db", agentapi.Approval{Seen: &seen}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("approved as a web app: %v", err)
	}
	seen.TCP = true
	db := programs.Got(h.owner.ApproveSeen(ctx, "db", agentapi.Approval{Seen: &seen}))(t).URL
	stays("approved", agentapi.StatusLive)
	if _, err := h.owner.ChangeOptions(ctx, "db", map[string]any{"forwarded": true}); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("an option of web apps: %v", err)
	}
	if _, err := h.owner.MakePassword(ctx, agentapi.PasswordRequest{App: "db", Name: "mine"}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("a password: %v", err)
	}
	programs.Got(h.owner.ChangeOptions(ctx, "db", map[string]any{"onlyPasskey": true, "besidesPasskey": "tokens"}))(t)

	programs.Got(h.owner.Invite(ctx, agentapi.InviteRequest{Email: bobEmail, Apps: []string{"Notes"}}))(t)
	bob, keep := h.browser(t), &pocket{}
	programs.Must(t, bob.Accept(ctx, programs.Got(h.mails.Link(ctx, bobEmail))(t)))
	programs.Got(bob.SignIn(ctx, h.account().AuthURL+"/account", bobEmail, h.mails))(t)
	if err := h.reacher(t, db, bob, keep, "allow").SignIn(ctx); err == nil || !strings.Contains(err.Error(), "no app that you can reach") {
		t.Errorf("before it is given: %v", err)
	}
	people := programs.Got(h.owner.People(ctx))(t)
	id := people.Members[slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.Email == bobEmail })].AccountID
	programs.Got(h.owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: id, App: "Database", Granted: true}))(t)
	if err := h.reacher(t, notes, bob, keep, "allow").SignIn(ctx); err == nil || !strings.Contains(err.Error(), "it is a web app") {
		t.Errorf("a web app: %v", err)
	}
	if err := h.reacher(t, db, bob, keep, "deny").SignIn(ctx); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("they said no: %v", err)
	}
	app := h.reacher(t, db, bob, keep, "allow")
	programs.Must(t, app.SignIn(ctx))

	page := programs.Got(bob.Open(ctx, db+"/any/page"))(t)
	if page.Status != http.StatusForbidden && !strings.Contains(page.Body, "passkey") { // who signed in by a mail
		t.Errorf("a browser sees HTTP %d\n%s", page.Status, page.Body)
	}

	// Another process uses what the first one kept, and each its own connection.
	said := func(app *reach.App) (conn *net.TCPConn, ended chan error) {
		t.Helper()
		conn, carried := programs.Connected(t)
		ended = make(chan error, 1)
		go func() { ended <- app.Carry(ctx, carried) }()
		_, err := conn.Write([]byte("SELECT 1"))
		programs.Must(t, err)
		if answer := make([]byte, 8); programs.Got(io.ReadFull(conn, answer))(t) != 8 || string(answer) != "SELECT 1" {
			t.Errorf("it answers %q", answer)
		}
		return conn, ended
	}
	first, firstEnded := said(app)
	programs.Must(t, first.CloseWrite())
	if rest, err := io.ReadAll(first); len(rest) > 0 || err != nil || <-firstEnded != nil {
		t.Errorf("after its end it says %q, %v", rest, err)
	}
	second, secondEnded := said(h.reacher(t, db, bob, keep, "nobody is asked"))
	var several sync.WaitGroup
	for range 4 { // at once: the refresh token works once
		several.Go(func() {
			if err := h.reacher(t, db, bob, keep, "nobody is asked").SignIn(ctx); err != nil {
				t.Errorf("one of several: %v", err)
			}
		})
	}
	several.Wait()

	state = programs.Got(h.owner.State(ctx))(t)
	if app := state.Apps[0]; app.Connections != 1 || len(app.Here) != 1 || len(state.Grants) != 1 || len(state.Grants[0].Apps) != 1 {
		t.Errorf("the owner sees %d connections of %q, by %+v", app.Connections, app.Here, state.Grants)
	}
	programs.Got(h.owner.RevokeGrant(ctx, state.Grants[0].ID))(t)
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the grant was revoked it reads %v", err)
	}
	<-secondEnded
	refused, carried := programs.Connected(t)
	if err := app.Carry(ctx, carried); !errors.Is(err, reach.ErrSignIn) {
		t.Errorf("and a new connection ends with %v", err)
	}
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it reads %v", err)
	}
}
