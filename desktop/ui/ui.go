// Package ui is what the window can call: one struct for each area, bound into
// its page as window.go.ui.NAME.METHOD. The methods are thin: each asks the agent
// or the desktop and returns its answer. An error reaches the page as its text,
// so every error here is a sentence for the owner.
package ui

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"porchlight/agent/agentapi"
)

// patience bounds a call: a page that waits for ever looks broken.
const patience = 15 * time.Second

// ErrNotReady is returned while there is no agent to ask.
var ErrNotReady = errors.New("Porchlight is still starting.")

// Agent is the owner tier, as the window needs it.
type Agent interface {
	State(ctx context.Context) (agentapi.OwnerState, error)
	ApproveSeen(ctx context.Context, name string, seen agentapi.Seen) (agentapi.Publication, error)
	ApproveAlone(ctx context.Context, name string, seen agentapi.Seen) (agentapi.Publication, error)
	Deny(ctx context.Context, name string) error
	Revoke(ctx context.Context, name string) (agentapi.Closed, error)
	Unmute(ctx context.Context, name string) error
	Pause(ctx context.Context, name string) (agentapi.Closed, error)
	Resume(ctx context.Context, name string) error
	ChangeOptions(ctx context.Context, name string, change map[string]any) (agentapi.AppOptions, error)
	GoDark(ctx context.Context) (agentapi.Closed, error)
	LightUp(ctx context.Context) error
	Outbox(ctx context.Context) ([]agentapi.Mail, error)

	People(ctx context.Context) (agentapi.People, error)
	Invite(ctx context.Context, req agentapi.InviteRequest) (agentapi.Invitation, error)
	Grant(ctx context.Context, req agentapi.GrantRequest) (agentapi.PersonChanged, error)
	RemoveHeld(ctx context.Context, req agentapi.RevokeRequest) (agentapi.PersonChanged, error)
	UndoHeld(ctx context.Context, h agentapi.HeldChange) (agentapi.PersonChanged, error)
	SettleHeld(ctx context.Context, h agentapi.HeldChange) error
	Visitors(ctx context.Context) ([]agentapi.Visitor, error)
	DisconnectVisitor(ctx context.Context, d agentapi.DisconnectRequest) (agentapi.Closed, error)
	UndoNotice(ctx context.Context, id uint64) error
	SeeNotices(ctx context.Context, id uint64) error

	RevokeGrant(ctx context.Context, id string) (agentapi.Closed, error)
	Activity(ctx context.Context, limit int) ([]agentapi.Activity, error)
	ClearActivity(ctx context.Context) error

	Settings(ctx context.Context) (agentapi.Settings, error)
	SetSettings(ctx context.Context, s agentapi.Settings) (agentapi.Settings, error)
	AllowUser(ctx context.Context, id string) (agentapi.LocalUser, error)
	DenyUser(ctx context.Context, id string) (agentapi.LocalUser, error)
	ForgetUser(ctx context.Context, id string) error
	Connect(ctx context.Context, req agentapi.ConnectRequest) (agentapi.Connecting, error)
	CancelConnect(ctx context.Context) error
	Disconnect(ctx context.Context) error
}

// Source returns the agent to ask, or a sentence why there is none.
type Source func() (Agent, error)

// Apps is the area of the published apps and the requests.
type Apps struct {
	agent Source
	open  func(ctx context.Context, name string) error
}

// NewApps makes the area. open opens an app in the owner's browser.
func NewApps(agent Source, open func(ctx context.Context, name string) error) *Apps {
	return &Apps{agent: agent, open: open}
}

// State is the snapshot everything is drawn from; later ones come as the event
// "state".
func (a *Apps) State() (agentapi.OwnerState, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.OwnerState, error) { return g.State(ctx) })
}

// Approve gives a waiting app its address, if it still asks for what the page
// showed: this label, this port of this computer, this program there and its user.
func (a *Apps) Approve(name string, seen agentapi.Seen) (agentapi.Publication, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.Publication, error) {
		return g.ApproveSeen(ctx, name, seen)
	})
}

// ApproveAlone is Approve that takes the app from everybody else.
func (a *Apps) ApproveAlone(name string, seen agentapi.Seen) (agentapi.Publication, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.Publication, error) {
		return g.ApproveAlone(ctx, name, seen)
	})
}

// Deny refuses a waiting app.
func (a *Apps) Deny(name string) error {
	return tell(a.agent, func(ctx context.Context, g Agent) error { return g.Deny(ctx, name) })
}

// Revoke takes an app's address and approval away.
func (a *Apps) Revoke(name string) (agentapi.Closed, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.Closed, error) { return g.Revoke(ctx, name) })
}

// Unmute lets a twice denied app ask again.
func (a *Apps) Unmute(name string) error {
	return tell(a.agent, func(ctx context.Context, g Agent) error { return g.Unmute(ctx, name) })
}

// Open opens an app in the owner's browser, signed in.
func (a *Apps) Open(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return a.open(ctx, name)
}

// Outbox lists the mails of local mode, newest first.
func (a *Apps) Outbox() ([]agentapi.Mail, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) ([]agentapi.Mail, error) { return g.Outbox(ctx) })
}

// Pause keeps everybody out of a live app until Resume.
func (a *Apps) Pause(name string) (agentapi.Closed, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.Closed, error) { return g.Pause(ctx, name) })
}

// Resume lets people into a paused app again.
func (a *Apps) Resume(name string) error {
	return tell(a.agent, func(ctx context.Context, g Agent) error { return g.Resume(ctx, name) })
}

// ChangeOptions changes those of an app's options that are named.
func (a *Apps) ChangeOptions(name string, change map[string]any) (agentapi.AppOptions, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.AppOptions, error) {
		return g.ChangeOptions(ctx, name, change)
	})
}

// GoDark closes everything at once; LightUp takes it back.
func (a *Apps) GoDark() (agentapi.Closed, error) {
	return ask(a.agent, func(ctx context.Context, g Agent) (agentapi.Closed, error) { return g.GoDark(ctx) })
}

// LightUp takes a GoDark back.
func (a *Apps) LightUp() error {
	return tell(a.agent, func(ctx context.Context, g Agent) error { return g.LightUp(ctx) })
}

func ask[T any](from Source, call func(context.Context, Agent) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := from()
	if err != nil {
		var none T
		return none, err
	}
	return call(ctx, g)
}

func tell(from Source, call func(context.Context, Agent) error) error {
	_, err := ask(from, func(ctx context.Context, g Agent) (struct{}, error) { return struct{}{}, call(ctx, g) })
	return err
}

// Shell is what the page asks of the program around it.
type Shell struct {
	version string
	copy    func(text string) error
	browse  func(ctx context.Context, url string) error
	state   func() agentapi.OwnerState
	wanted  func() string
}

// NewShell makes the area. copy puts a text on the clipboard, browse opens an
// address in the owner's browser, state tells which addresses are ours, wanted
// which view the owner asked for outside the window.
func NewShell(version string, copy func(string) error, browse func(context.Context, string) error, state func() agentapi.OwnerState, wanted func() string) *Shell {
	return &Shell{version: version, copy: copy, browse: browse, state: state, wanted: wanted}
}

// Wanted is the view the owner asked for in the menu or on a notification since
// the last call, by the page's own name for it; empty for none. The page asks
// when it has loaded and at each event "show": an event alone would be lost on a
// page that is not there yet.
func (s *Shell) Wanted() string { return s.wanted() }

// Version of this build.
func (s *Shell) Version() string { return s.version }

// Copy puts text on the clipboard.
func (s *Shell) Copy(text string) error { return s.copy(text) }

// OpenURL opens one of Porchlight's own addresses in the owner's browser: this
// computer's, one of its apps', its control plane's, or that of the one it is
// being connected to. Nothing else: the page shows names that other programs
// chose.
func (s *Shell) OpenURL(address string) error {
	if !ours(address, s.state()) {
		return errors.New("This is not one of Porchlight's addresses.")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.browse(ctx, address)
}

func ours(address string, s agentapi.OwnerState) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Host == "" {
		return false
	}
	planes := []string{s.Account.AuthURL}
	if s.Connecting != nil && s.Connecting.State == agentapi.ConnectWaiting {
		planes = append(planes, s.Connecting.AuthURL)
	}
	for _, plane := range planes {
		if auth, err := url.Parse(plane); err == nil && auth.Host != "" && strings.EqualFold(u.Host, auth.Host) {
			return true
		}
	}
	host, a := strings.ToLower(u.Host), s.Account
	return a.Host != "" && (host == a.Host || strings.HasSuffix(host, "."+a.Host))
}
