package local

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// A matrix: every kind of traffic and everything that ends access, over the
// whole way from the visitor's socket through relay, tunnel and proxy to the
// app. Bob is a member with two apps; what must end is what he has open to
// notes, and what must go on is the rest.

// scene is a house with Bob in it.
type scene struct {
	*house
	ahead   atomic.Int64 // how far the agent's clock is set ahead, nanoseconds
	app     *heldApp
	bobID   string
	notesID string
	bob     *visitor.Visitor
	grantID string // of Bob's remote client

	browser, remote client // Bob at notes, by cookie and by access token
	photos          client // Bob at photos, by cookie
	owner           client // the owner at notes, by cookie

	// held is what is open: Bob's visits to notes by traffic, and what a cause
	// may have to leave alone.
	held map[string]*opened

	crowds int // sockets opened by crowd
}

const bobEmail = "bob@example.com"

// What else is open.
const (
	otherApp    = "another app of the same person"
	otherPerson = "another person at the same app"
)

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{app: startHeldApp(t), held: map[string]*opened{}}
	s.house = startHouseWith(t, func(c *Config) {
		c.Agent.Now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	})
	s.populate(t)
	return s
}

// populate publishes two apps, lets Bob in and signs everybody in.
func (s *scene) populate(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for name, label := range map[string]string{"notes": "Notes", "photos": "Photos"} {
		s.publishHeld(t, name, label)
		programs.Got(s.house.owner.Approve(ctx, name))(t)
	}
	s.await(t, func() bool { return len(s.known(t)) == 2 })
	bob := s.joined(t, bobEmail, "Notes")
	s.bobID, s.notesID = bob.AccountID, bob.Apps[0]
	programs.Got(s.house.owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: s.bobID, App: "Photos", Granted: true}))(t)

	s.bob = s.house.browser(t)
	s.browser = s.signedIn(t, s.bob, "notes", bobEmail)
	s.photos = s.signedIn(t, s.bob, "photos", bobEmail)
	link := programs.Got(s.house.owner.Open(ctx, "notes"))(t)
	owner := s.house.browser(t)
	if page, err := owner.Open(ctx, link.URL); err != nil || page.Status != http.StatusOK {
		t.Fatalf("the owner's link: %+v, %v", page, err)
	}
	s.owner = s.client(owner, "notes")
	s.remote = s.client(s.bob, "notes")
	s.remote.auth = "Authorization: Bearer " + s.accessToken(t)
}

func (s *scene) publishHeld(t *testing.T, name, label string) {
	t.Helper()
	programs.Got(s.open.Publish(t.Context(), agentapi.PublishRequest{Name: name, Label: label, LocalPort: s.app.port}))(t)
}

// client is a browser's session at an app.
func (s *scene) client(v *visitor.Visitor, app string) client {
	host := app + "." + s.account().Host
	c := client{relay: s.listeners[0].Addr().String(), roots: &tls.Config{RootCAs: s.roots()}, host: host}
	c.auth = "Cookie: " + cookieLine(v.Cookies(&url.URL{Scheme: "https", Host: host, Path: "/"}))
	return c
}

// signedIn signs a browser in at an app, by mail the first time.
func (s *scene) signedIn(t *testing.T, v *visitor.Visitor, app, email string) client {
	t.Helper()
	address := "https://" + app + "." + s.account().Host + "/"
	page, err := v.Open(t.Context(), address)
	if err == nil && page.URL.Host != app+"."+s.account().Host {
		page, err = v.SignIn(t.Context(), address, email, s.mails)
	}
	if err != nil || page.Status != http.StatusOK || page.Body != "open to "+email {
		t.Fatalf("signing in at %s: %+v, %v", app, page, err)
	}
	return s.client(v, app)
}

// accessToken is one that Bob allowed a remote client to have.
func (s *scene) accessToken(t *testing.T) (token string) {
	t.Helper()
	token, s.grantID = s.allowClient(t, bobEmail)
	return token
}

// openAll opens one visit of every kind, and what else is to be watched.
func (s *scene) openAll(t *testing.T) {
	t.Helper()
	for i, traffic := range traffics {
		from := s.browser
		if traffic == "bearer request" {
			from = s.remote
		}
		s.held[traffic] = from.hold(t, s.app, traffic, fmt.Sprint("notes-", i))
	}
	s.held[otherApp] = s.photos.hold(t, s.app, "event stream", "photos")
	s.held[otherPerson] = s.owner.hold(t, s.app, "event stream", "owner")
}

// cutOff takes the control plane away: its store answers nothing any more. What
// is open through relay and tunnel is not concerned. A sync that waits already
// may last its whole time.
func (s *scene) cutOff(t *testing.T) {
	t.Helper()
	s.controlPlane.store.Close()
	for began := time.Now(); time.Since(began) < 2*tunnelwire.SilenceAsleep; time.Sleep(5 * time.Millisecond) {
		if state, err := s.house.owner.State(t.Context()); err == nil && state.AccessUntil != nil {
			return
		}
	}
	t.Fatal("the agent does not notice that the control plane is gone")
}

// cause is something that ends access.
type cause struct {
	name string
	// local causes are the owner's own on this computer, and work with the
	// control plane down; downOnly ones are about its being down.
	local, downOnly bool
	act             func(*testing.T, *scene) (agentapi.Closed, error)
	// spares names the traffic and the others that must go on.
	spares []string
	// undo opens again; nil where nothing does without signing in anew.
	undo func(*testing.T, *scene) error
	// upstream undoing is the control plane's to grant.
	upstream bool
	// refused is what a new request of Bob's browser is answered.
	refused int
}

// browserTraffic is all but the bearer request.
var browserTraffic = slices.DeleteFunc(slices.Clone(traffics), func(s string) bool { return s == "bearer request" })

var causes = []cause{
	{
		name: "sign-out of this browser", local: true, refused: http.StatusUnauthorized,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			page, err := s.bob.Open(t.Context(), "https://"+s.browser.host+"/.porchlight/sign-out")
			if err == nil {
				page, err = s.bob.Submit(t.Context(), page, "", nil)
			}
			if err == nil && page.Status != http.StatusOK {
				err = fmt.Errorf("signing out: HTTP %d", page.Status)
			}
			return agentapi.Closed{Closed: len(browserTraffic)}, err
		},
		spares: []string{"bearer request", otherApp, otherPerson},
	},
	{
		name: "the app stopped by itself", local: true, refused: http.StatusNotFound,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			_, err := s.open.Unpublish(t.Context(), "notes")
			return agentapi.Closed{Closed: len(traffics)}, err
		},
		spares: []string{otherApp},
		undo:   func(t *testing.T, s *scene) error { s.publishHeld(t, "notes", "Notes"); return nil },
	},
	{
		name: "the app revoked by the owner", local: true, refused: http.StatusNotFound,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			return s.house.owner.Revoke(t.Context(), "notes")
		},
		spares: []string{otherApp},
	},
	{
		name: "the end of an approval", local: true, refused: http.StatusNotFound,
		act: func(t *testing.T, s *scene) (ended agentapi.Closed, err error) {
			_, err = s.house.owner.ApproveSeen(t.Context(), "notes", agentapi.Approval{Until: "1s"})
			s.await(t, func() bool {
				page := programs.Got(s.house.owner.ActivityPage(t.Context(), agentapi.ActivityQuery{Limit: 100, Group: agentapi.GroupDecisions}))(t)
				i := slices.IndexFunc(page.Lines, func(l agentapi.Activity) bool { return l.Kind == agentapi.ActivityEnded })
				if i >= 0 {
					ended.Closed = page.Lines[i].Closed
				}
				return err != nil || i >= 0
			})
			return ended, err
		},
		spares: []string{otherApp},
	},
	{
		name: "the app paused", local: true, refused: http.StatusServiceUnavailable,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			return s.house.owner.Pause(t.Context(), "notes")
		},
		spares: []string{otherApp},
		undo:   func(t *testing.T, s *scene) error { return s.house.owner.Resume(t.Context(), "notes") },
	},
	{
		name: "everything dark", local: true, refused: http.StatusServiceUnavailable,
		act:  func(t *testing.T, s *scene) (agentapi.Closed, error) { return s.house.owner.GoDark(t.Context()) },
		undo: func(t *testing.T, s *scene) error { return s.house.owner.LightUp(t.Context()) },
	},
	{
		name: "access outlived the control plane", local: true, downOnly: true, refused: http.StatusServiceUnavailable,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			s.ahead.Store(int64(5 * time.Hour))
			for _, o := range s.held { // five hours are within a day
				o.mustBeOpen(t)
			}
			_, err := s.house.owner.ChangeSettings(t.Context(), map[string]any{"failStaticHours": 4})
			return agentapi.Closed{Closed: len(traffics) + 1}, err
		},
		undo: func(t *testing.T, s *scene) error {
			_, err := s.house.owner.ChangeSettings(t.Context(), map[string]any{"failStaticHours": 6})
			return err
		},
	},
	{
		name: "one app withdrawn by the owner", local: true, upstream: true, refused: http.StatusForbidden,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			changed, err := s.house.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: s.bobID, App: "Notes"})
			return agentapi.Closed{Closed: changed.Closed}, err
		},
		spares: []string{otherApp, otherPerson},
		undo: func(t *testing.T, s *scene) error {
			_, err := s.house.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: s.bobID, App: "Notes", Granted: true})
			return err
		},
	},
	{
		name: "the person removed by the owner", local: true, refused: http.StatusForbidden,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			changed, err := s.house.owner.Remove(t.Context(), s.bobID)
			return agentapi.Closed{Closed: changed.Closed}, err
		},
		spares: []string{otherPerson},
	},
	{
		name: "the remote client revoked by the owner", local: true, refused: http.StatusOK,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			return s.house.owner.RevokeGrant(t.Context(), s.grantID)
		},
		spares: append([]string{otherApp, otherPerson}, browserTraffic...),
	},
	{
		name: "sign-out everywhere, on the account page", refused: http.StatusUnauthorized,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			return agentapi.Closed{}, s.controlPlane.Service.Sessions.SignOutEverywhere(t.Context(), s.bobID)
		},
		spares: []string{"bearer request", otherPerson},
	},
	{
		name: "the remote client revoked on the account page", refused: http.StatusOK,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			return agentapi.Closed{}, s.controlPlane.Service.Grants.RevokeForAccount(t.Context(), s.bobID, s.grantID)
		},
		spares: append([]string{otherApp, otherPerson}, browserTraffic...),
	},
	{
		name: "one app withdrawn elsewhere", refused: http.StatusForbidden,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			_, err := s.controlPlane.Service.People.SetAccess(t.Context(), s.computerID(t), controlapi.SetAccess{AccountID: s.bobID, App: s.notesID})
			return agentapi.Closed{}, err
		},
		spares: []string{otherApp, otherPerson},
		undo: func(t *testing.T, s *scene) error {
			_, err := s.controlPlane.Service.People.SetAccess(t.Context(), s.computerID(t), controlapi.SetAccess{AccountID: s.bobID, App: s.notesID, Granted: true})
			return err
		},
	},
	{
		name: "the end of a share", refused: http.StatusForbidden,
		act:    func(t *testing.T, s *scene) (agentapi.Closed, error) { return agentapi.Closed{}, s.endsSoon(t) },
		spares: []string{otherApp, otherPerson},
		undo: func(t *testing.T, s *scene) error {
			_, err := s.house.owner.SetAccess(t.Context(), agentapi.AccessRequest{
				AccountID: s.bobID, App: "Notes", Granted: true, Until: agentapi.UntilNever,
			})
			return err
		},
	},
	{
		name: "the end of a share, control plane stopped before", refused: http.StatusForbidden,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			defer s.controlPlane.store.Close()
			return agentapi.Closed{}, s.endsSoon(t)
		},
		spares: []string{otherApp, otherPerson},
	},
	{
		name: "the person revoked elsewhere", refused: http.StatusForbidden,
		act: func(t *testing.T, s *scene) (agentapi.Closed, error) {
			_, err := s.controlPlane.Service.People.Remove(t.Context(), s.computerID(t), controlapi.Remove{AccountID: s.bobID})
			return agentapi.Closed{}, err
		},
		spares: []string{otherPerson},
	},
}

// endsSoon gives notes, which is open to Bob, an end that comes in a moment: a later one
// where a busy machine lets it come before it is given, which is refused.
func (s *scene) endsSoon(t *testing.T) error {
	t.Helper()
	for away := 3 * time.Second; ; away *= 2 {
		_, err := s.house.owner.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: s.bobID, App: "Notes", Granted: true, Until: away.String()})
		if agentapi.CodeOf(err) != agentapi.CodeInvalid || away > time.Minute {
			return err
		}
	}
}

// TestAccessEnds is the matrix. Its subtests are named by cause and traffic.
func TestAccessEnds(t *testing.T) {
	t.Parallel()
	for _, c := range causes {
		if !c.downOnly {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.check(t, false)
			})
		}
		if c.local {
			t.Run(c.name+", control plane down", func(t *testing.T) {
				t.Parallel()
				c.check(t, true)
			})
		}
	}
}

func (c cause) check(t *testing.T, down bool) {
	s := newScene(t)
	if down {
		s.cutOff(t)
	}
	s.openAll(t)
	closed, err := c.act(t, s)
	programs.Must(t, err)
	ended := 0
	spared := func(name string) bool { return slices.Contains(c.spares, name) }
	for _, traffic := range slices.Concat(traffics, []string{otherApp, otherPerson}) {
		if spared(traffic) {
			continue
		}
		if traffic != otherPerson { // the owner, who is nobody's visitor
			ended++
		}
		t.Run(traffic, func(t *testing.T) { s.held[traffic].awaitClosed(t) })
	}
	// Looked at last, when whatever was going to be closed is.
	for _, traffic := range c.spares {
		t.Run(traffic+" goes on", func(t *testing.T) { s.held[traffic].mustBeOpen(t) })
	}
	if c.local && closed.Closed != ended {
		t.Errorf("%d connections were said to be closed, and %d were", closed.Closed, ended)
	}
	if got := s.browser.status(t); got != c.refused {
		t.Errorf("a new request is answered %d, want %d", got, c.refused)
	}
	if c.undo == nil {
		return
	}
	err = c.undo(t, s)
	if down && c.upstream {
		if agentapi.CodeOf(err) != agentapi.CodeUnavailable || s.browser.status(t) != c.refused {
			t.Errorf("opening again without the control plane: %v", err)
		}
		return
	}
	programs.Must(t, err)
	s.await(t, func() bool { return s.browser.status(t) == http.StatusOK })
	s.browser.hold(t, s.app, "event stream", "again").mustBeOpen(t)
}
