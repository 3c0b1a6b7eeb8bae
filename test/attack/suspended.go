//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/visitor"
)

// suspendedTried is how often attackSuspended tries something, and suspendedQuickTried in the quick form.
const suspendedTried, suspendedQuickTried = 185, 122

// suspension is what an operator ends, and what it has to end.
type suspension struct {
	kind, id  string
	guest     bool // its guest signs in nowhere
	owner     bool // and so its owner
	computer  bool // nothing is forwarded to it
	onlyToken bool // only what the client has opens nothing
}

// hostess is a connected computer with an app, a guest of it, and an OAuth client.
type hostess struct {
	*guest
	maya *tenant
}

// attackSuspended has whom an operator suspended go on: by what opened an app before, by what
// is open, by signing in anew, by the interface of agents, and by a tunnel of its own that
// obeys nobody. Resumed, all of it works again.
func attackSuspended(ctx context.Context, s *stage, t *tally) error {
	p, err := s.startPlane(ctx, s.dir+"/plane", "--abuse-contact", "abuse@example.net")
	if err != nil {
		return err
	}
	port, end, err := serveSockets()
	if err != nil {
		return err
	}
	defer end()
	h := &hostess{}
	if h.maya, err = p.newTenant(ctx, "maya"); err != nil {
		return err
	}
	h.guest = &guest{computer: h.maya.computer}
	h.computer.mails = p.mails
	if h.guest.host, err = h.publish(ctx, "chat", "Chat", port); err != nil {
		return err
	}
	var person agentapi.Person
	if h.browser, person, err = h.invite(ctx, memberEmail, "Chat"); err != nil {
		return err
	}
	defer h.browser.Close()
	h.id = person.AccountID
	if h.remote, err = p.newClient(ctx, &tenant{email: memberEmail}); err != nil {
		return err
	}
	defer h.remote.browser.Close()
	acts := []suspension{
		{kind: "computer", id: "maya", computer: true},
		{kind: "account", id: h.maya.email, owner: true, computer: true},
		{kind: "account", id: memberEmail, guest: true},
		{kind: "domain", id: "example.net", guest: true, owner: true, computer: true},
		{kind: "client", id: h.remote.id, onlyToken: true},
	}
	if !s.quick {
		acts = append(acts, suspension{kind: "address", id: memberEmail, guest: true}, suspension{kind: "address", id: h.maya.email, owner: true, computer: true})
	}
	for _, act := range acts {
		if err := h.round(ctx, act, t); err != nil {
			return fmt.Errorf("%s %s: %w", act.kind, act.id, err)
		}
	}
	if err := p.Run(nil, "suspend", "computer", "maya", "--reason", "Complaint 2212"); err != nil {
		return err
	}
	h.Stop()
	if !s.quick { // which takes ten seconds
		if err := h.disobeys(ctx, t); err != nil {
			return err
		}
	}
	return h.connectsAgain(ctx, t)
}

// round suspends one thing, tries everything that opened something before, and resumes it.
func (h *hostess) round(ctx context.Context, act suspension, t *tally) error {
	open, err := h.allOpen(ctx)
	if err != nil {
		return err
	}
	if err := h.maya.plane.Run(nil, "suspend", act.kind, act.id, "--reason", "Complaint 2211"); err != nil {
		return err
	}
	for what, way := range h.ways {
		if act.onlyToken && what != "an access token" {
			continue
		}
		if err := h.closes(ctx, what, way, t); err != nil {
			return err
		}
		conn := open[what]
		conn.SetReadDeadline(time.Now().Add(patience))
		t.try(1)
		if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.got("%s suspended, a WebSocket by %s goes on: %v", act.kind, what, err)
		}
	}
	for _, try := range []func(context.Context, suspension, *tally) error{h.comesAnew, h.asksAsComputer} {
		if err := try(ctx, act, t); err != nil {
			return err
		}
	}
	if err := h.maya.plane.Run(nil, "resume", act.kind, act.id); err != nil {
		return err
	}
	h.refresh = "" // a client that was refused asks its person again
	if !act.guest {
		return nil
	}
	// What their sessions were stays ended.
	h.remote.browser = h.browser
	return arrived(h.browser.SignIn(ctx, h.remote.authURL+"/account", memberEmail, h.mails))
}

// allOpen makes all that opens the app, and leaves a WebSocket open by each.
func (h *hostess) allOpen(ctx context.Context) (open map[string]net.Conn, err error) {
	if err := known(ctx, func() error { return h.prepare(ctx) }); err != nil {
		return nil, fmt.Errorf("before, %w", err)
	}
	open = map[string]net.Conn{}
	for what, way := range h.ways {
		err := known(ctx, func() (err error) { open[what], err = h.socket(ctx, way); return err })
		if err != nil {
			return nil, fmt.Errorf("before, %s gets %w", what, err)
		}
	}
	return open, nil
}

// closes waits until a way opens nothing any more, and goes on trying it. Cut off, nobody
// answers it at all.
func (h *hostess) closes(ctx context.Context, what string, way [2]string, t *tally) error {
	once := func(ask func(context.Context, *guest, [2]string) (int, error)) bool {
		got, err := ask(ctx, h.guest, way)
		return err == nil && lets(got)
	}
	err := known(ctx, func() error {
		if once(datedProtocols["HTTP/1.1"]) {
			return errors.New("it opens the app")
		}
		return ctx.Err()
	})
	if err != nil {
		t.got("%s: %v", what, err)
	}
	for name, ask := range datedProtocols {
		for range 2 {
			if t.try(1); once(ask) {
				t.got("%s over %s opens the app", what, name)
			}
		}
	}
	return ctx.Err()
}

// comesAnew signs in anew, refreshes, and asks the account's pages with a session of before.
func (h *hostess) comesAnew(ctx context.Context, act suspension, t *tally) error {
	status, got, err := h.remote.token(ctx, h.remote.refreshing(h.refresh))
	if err != nil {
		return err
	}
	if t.try(1); status == http.StatusOK || got.Access != "" {
		t.got("%s suspended, a refresh token gets another access token", act.kind)
	}
	verdict := func(who string, ended bool, page *visitor.Page, err error) {
		t.try(1)
		if err == nil && page.Status == http.StatusOK && ended {
			t.got("%s suspended, %s sees %s", act.kind, who, page.URL)
		}
	}
	page, err := h.remote.browser.Open(ctx, h.remote.authURL+"/account/passwords")
	verdict("a session of before", act.guest && !strings.Contains(pathOf(page), "signin"), page, err)
	page, err = h.browser.Open(ctx, "https://"+h.guest.host+"/hello")
	verdict("a browser that comes back", !act.onlyToken, page, err)
	if act.guest {
		browser := visitor.New(h.roots)
		defer browser.Close()
		short, cancel := context.WithTimeout(ctx, time.Second) // no mail comes
		defer cancel()
		page, err := browser.SignIn(short, h.remote.authURL+"/account", memberEmail, h.maya.plane.mails)
		verdict("who signs in anew", !strings.Contains(pathOf(page), "signin"), page, err)
	}
	return ctx.Err()
}

func pathOf(page *visitor.Page) string {
	if page == nil || page.URL == nil {
		return ""
	}
	return page.URL.Path
}

// asksAsComputer uses the credential of the computer, which is only to be told so, and to
// take away.
func (h *hostess) asksAsComputer(ctx context.Context, act suspension, t *tally) error {
	if !act.computer {
		return nil
	}
	for _, ask := range []struct {
		path string
		body any
	}{
		{controlapi.PathPeopleInvite, controlapi.Invite{Email: "carl@elsewhere.example", Apps: []string{"chat"}}},
		{controlapi.PathPeopleInvitations, map[string]any{"people": []controlapi.Invite{{Email: "carl@elsewhere.example", Apps: []string{"chat"}}}}},
		{controlapi.PathVisits, controlapi.Redeem{Code: strings.Repeat("a", 43), CodeVerifier: strings.Repeat("b", 43)}},
	} {
		status, answer, err := h.maya.plane.v1(ctx, http.MethodPost, ask.path, h.maya.credential, ask.body)
		if err != nil {
			return err
		}
		if t.try(1); status < 300 {
			t.got("%s suspended, its computer asks %s: %d %.200s", act.kind, ask.path, status, answer)
		}
	}
	account, err := h.owner.Account(ctx)
	if err != nil {
		return err
	}
	state, err := h.owner.State(ctx)
	if t.try(1); err == nil && !strings.Contains(state.Trouble, "Ended by the server’s operator, ask abuse@example.net.") {
		t.got("%s suspended, the owner of %s reads %q", act.kind, account.Host, state.Trouble)
	}
	return err
}

// disobeys has a suspended computer's credential used by a tunnel that goes on forwarding.
func (h *hostess) disobeys(ctx context.Context, t *tally) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	way, err := tunnel.New(tunnel.Config{
		Open: func() bool { return false }, Opened: new(broadcast.Signal).Subscribe, RootCAs: h.roots,
		Relays:     func() []controlapi.Relay { return nil },
		Last:       controlapi.Relay{Address: h.maya.plane.Listens[0], ServerName: strings.Split(strings.TrimPrefix(h.maya.plane.AuthURL, "https://"), ":")[0]},
		Credential: func() string { return h.maya.credential },
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- way.Run(ctx) }()
	defer func() { stop(); <-ended }()
	go func() {
		for {
			conn, err := way.Listener().Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "not obeyed") // it may have gone
			conn.Close()
		}
	}()
	forwards := func() bool {
		raw, err := net.DialTimeout("tcp", h.maya.plane.Listens[0], patience)
		if err != nil {
			return false
		}
		defer raw.Close()
		heard := &listening{Conn: raw}
		name, _, _ := net.SplitHostPort(h.guest.host)
		_ = tls.Client(heard, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() // it fails in any case
		return strings.Contains(string(heard.got), "not obeyed")
	}
	if err := known(ctx, func() error {
		if way.Connected() {
			return nil
		}
		return errors.New("the tunnel is refused, which would do, too")
	}); err != nil {
		return err
	}
	if err := known(ctx, func() error {
		if forwards() {
			return errors.New("it is still forwarded")
		}
		return nil
	}); err != nil {
		t.got("a tunnel that does not obey: %v", err)
	}
	for range 10 {
		if t.try(1); forwards() {
			t.got("a tunnel that does not obey is forwarded a visit")
		}
	}
	return nil
}

// listening keeps what comes.
type listening struct {
	net.Conn
	got []byte
}

func (l *listening) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.got = append(l.got, b[:n]...)
	return n, err
}

// connectsAgain has the owner remove the suspended computer, who is not suspended, and
// connect another under its name; and somebody else do so.
func (h *hostess) connectsAgain(ctx context.Context, t *tally) error {
	owner := visitor.New(h.roots)
	defer owner.Close()
	p := h.maya.plane
	page, err := owner.SignIn(ctx, p.AuthURL+"/account", h.maya.email, p.mails)
	if err := arrived(page, err); err != nil {
		return err
	}
	if !strings.Contains(page.Body, "Ended by the server’s operator, ask abuse@example.net.") {
		t.got("the account says nothing of the suspension")
	}
	page, err = owner.Open(ctx, p.AuthURL+"/account/computer?computer=maya")
	if err == nil {
		page, err = owner.Submit(ctx, page, "computer", map[string]string{"computer": "maya", "decision": "remove"})
	}
	if err := arrived(page, err); err != nil {
		return fmt.Errorf("removing it: %w", err)
	}
	var left []struct{ Name string }
	if err := p.Run(&left, "computer", "list"); err != nil || len(left) > 0 {
		return fmt.Errorf("it is not removed: %+v, %w", left, err)
	}
	if err := p.Run(nil, "account", "add", strangerEmail); err != nil {
		return err
	}
	stranger := visitor.New(h.roots)
	defer stranger.Close()
	if page, err := stranger.SignIn(ctx, p.AuthURL+"/account", strangerEmail, p.mails); arrived(page, err) != nil {
		return arrived(page, err)
	}
	for who, browser := range map[string]*visitor.Visitor{"the owner": owner, "somebody else": stranger} {
		err := p.connects(ctx, browser, "maya")
		if t.try(1); err == nil {
			t.got("%s connects another computer under the name of the suspended one", who)
		}
	}
	return p.connects(ctx, owner, "another") // the computer was suspended, and not its owner
}
