package engine

import (
	"context"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// twins are who listens on port 8000 of each address; nil for nobody.
type twins struct {
	mu        sync.Mutex
	four, six *agentapi.Listener // guarded by mu
	connected []upstream.Target  // guarded by mu: what was connected to
}

func (w *twins) set(four, six *agentapi.Listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.four, w.six = four, six
}

func (w *twins) at(t upstream.Target) *agentapi.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case t.Port != 8000:
		return nil
	case t.Address == upstream.IPv6:
		return w.six
	}
	return w.four
}

// twinHost is an engine that sees them.
func twinHost(t interface {
	fataler
	Cleanup(func())
}) (*host, *twins) {
	t.Helper()
	h, w := openHost(t), new(twins)
	h.cfg.ListenerUser = func(at upstream.Target) (agentapi.Listener, uint64) {
		if l := w.at(at); l != nil {
			return *l, 0
		}
		return agentapi.Listener{}, 0
	}
	h.cfg.Listener = func(at upstream.Target, _ int) agentapi.Listener {
		l, _ := h.cfg.ListenerUser(at)
		return l
	}
	h.cfg.Answers = func(at upstream.Target) bool {
		w.mu.Lock()
		w.connected = append(w.connected, at)
		w.mu.Unlock()
		return w.at(at) != nil
	}
	return h, w
}

func (h *host) notes(t *testing.T) *App {
	t.Helper()
	app, ok := h.apps.Lookup("notes")
	if !ok {
		t.Fatal("there is no app")
	}
	return &app
}

func askNotes(t *testing.T, h *host) agentapi.Publication {
	t.Helper()
	p, err := h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000})
	programs.Must(t, err)
	return p
}

// The address whose listener is there at the approval is the app's: 127.0.0.1 where both
// are, or nobody is. What was seen when it asked is preferred to what came since.
func TestAddressIsKeptAtTheApproval(t *testing.T) {
	t.Parallel()
	type on struct{ four, six *agentapi.Listener }
	for what, tt := range map[string]struct {
		asked, then on
		want        string
		refused     bool
	}{
		"IPv4":               {on{four: &ada}, on{four: &ada}, "", false},
		"IPv6":               {on{six: &ada}, on{six: &ada}, upstream.IPv6, false},
		"both":               {on{&ada, &ada}, on{&ada, &ada}, "", false},
		"nobody":             {on{}, on{}, "", false},
		"IPv6, came later":   {on{}, on{six: &ada}, upstream.IPv6, false},
		"IPv6, and a twin":   {on{six: &ada}, on{four: &eve, six: &ada}, upstream.IPv6, false},
		"IPv4, and a twin":   {on{four: &ada}, on{four: &ada, six: &eve}, "", false},
		"moved meanwhile":    {on{six: &ada}, on{four: &ada}, "", false},
		"replaced by a twin": {on{six: &ada}, on{four: &eve}, "", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h, w := twinHost(t)
			w.set(tt.asked.four, tt.asked.six)
			askNotes(t, h)
			w.set(tt.then.four, tt.then.six)
			_, err := h.apps.Approve(t.Context(), "notes", agentapi.Approval{})
			if tt.refused != (err != nil) {
				t.Fatalf("%v", err)
			}
			if got := h.notes(t).Address; err == nil && got != tt.want {
				t.Errorf("kept %q, want %q", got, tt.want)
			}
		})
	}
}

// Nothing is sent to a port before its owner said yes, not even an empty connection.
func TestNothingIsSentBeforeTheApproval(t *testing.T) {
	t.Parallel()
	h, w := twinHost(t)
	w.set(&unseen, &unseen) // whom the system's tables do not show
	for range 3 {
		askNotes(t, h)
		h.apps.carryOut(t.Context(), look{name: "notes", port: 8000})
		h.apps.OwnerApps(nil)
	}
	if len(w.connected) != 0 {
		t.Errorf("connected to %+v", w.connected)
	}
	programs.Got(h.apps.Approve(t.Context(), "notes", agentapi.Approval{}))(t)
	if !h.apps.Welcomes("notes", h.notes(t).Target(), agentapi.Listener{}) {
		t.Error("whom nobody sees was approved, and is not let in")
	}
}

// A dead address and a living one are a change of listener.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	node := agentapi.Listener{User: "ada", UserID: "1000"}
	h, w := twinHost(t)
	w.set(&ada, nil)
	h.live(t, "notes", "Notes", 8000)
	first := h.notes(t).Target()
	w.set(nil, nil)
	if h.apps.Elsewhere(t.Context(), "notes", first) {
		t.Error("nobody listens, and it was found")
	}
	w.set(nil, &node)
	if !h.apps.Elsewhere(t.Context(), "notes", first) || h.notes(t).Address != upstream.IPv6 {
		t.Fatalf("the same user's: %+v", h.notes(t))
	}
	if !h.apps.Elsewhere(t.Context(), "notes", first) {
		t.Error("who dialled the first address before it moved is not sent to the second")
	}
	// A look that was begun before it moved changes nothing.
	h.apps.noteListener(t.Context(), "notes", event{Port: 8000, Listener: eve, Listening: true})
	if app := h.notes(t); app.Status != agentapi.StatusLive || app.Address != upstream.IPv6 {
		t.Errorf("an old look: %+v", app)
	}
	w.set(&eve, nil)
	if h.apps.Elsewhere(t.Context(), "notes", h.notes(t).Target()) {
		t.Error("another user's is followed")
	}
	app := h.notes(t)
	if app.Status != agentapi.StatusPending || app.Address != "" || app.kept.Approved.Address != upstream.IPv6 || !app.kept.Approved.OtherUser {
		t.Errorf("another user's: %+v", app.kept)
	}
	w.set(&eve, &node) // its own program is back
	if p := askNotes(t, h); p.Status != agentapi.StatusLive || h.notes(t).Address != upstream.IPv6 {
		t.Errorf("the app itself: %+v on %q", p, h.notes(t).Address)
	}
	// What was approved before users were kept stays where it was.
	old := *h.notes(t).kept
	old.ApprovedFor = nil
	h.put(&old)
	w.set(&ada, nil)
	if h.apps.Elsewhere(t.Context(), "notes", h.notes(t).Target()) {
		t.Error("an approval without a user follows anybody")
	}
}

// Where the owner's programs look, the same is seen without a visitor.
func TestMoveIsSeenWithoutAVisitor(t *testing.T) {
	t.Parallel()
	h, w := twinHost(t)
	h.cfg.Listens = func(at upstream.Target) bool { return w.at(at) != nil }
	w.set(&ada, nil)
	h.live(t, "notes", "Notes", 8000)
	w.set(nil, &ada)
	h.apps.OwnerApps(nil)
	h.apps.carryOut(t.Context(), <-h.apps.looks)
	if got := h.apps.OwnerApps(nil)[0]; got.ListensOn != upstream.IPv6 || got.Status != agentapi.StatusLive {
		t.Errorf("%+v", got)
	}
}

// pinned is notes, live over HTTPS with its key pinned.
func pinned(key string) stored {
	now := approvedOn(ada)
	now.App.Options, now.App.Key = agentapi.AppOptions{Upstream: agentapi.UpstreamHTTPS, Pin: true}, key
	return now
}

// The first key is kept, and for another one the app waits; a yes is for that one, a no
// for the first.
func TestKeys(t *testing.T) {
	t.Parallel()
	if now := after(t, pinned(""), shows("k1")); now.App.Key != "k1" || now.App.Status != agentapi.StatusLive {
		t.Errorf("the first: %+v", now.App)
	}
	other, err := happens(t, pinned("k1"), shows("k2"))
	if err != nil || other.App.Status != agentapi.StatusPending || other.Gone != "id-1" || other.App.Approved.Key != "k1" || !other.App.Approved.OtherKey || other.App.Approved.OtherUser {
		t.Fatalf("another: %+v, %v", other, err)
	}
	again := after(t, left(other), asks("Notes", 8000, ada))
	if again.App.Status != agentapi.StatusPending || !again.App.Approved.OtherKey || again.App.Key != "k2" {
		t.Errorf("published again: %+v", again.App)
	}
	if now := after(t, again, event{Kind: "approve", Own: ownUsers}); now.App.Key != "k2" || now.App.Status != agentapi.StatusLive || now.App.Approved != nil {
		t.Errorf("yes: %+v", now.App)
	}
	if now := after(t, again, on("deny")); now.App.Key != "k1" || now.App.Status != agentapi.StatusStopped {
		t.Errorf("no: %+v", now.App)
	}
	if now := after(t, pinned("k1"), chooses(func(o *agentapi.AppOptions) { o.Pin = false })); now.App.Key != "" {
		t.Errorf("not pinned any more: %+v", now.App)
	}
	choose := func(now stored, pin bool) stored {
		return after(t, now, chooses(func(o *agentapi.AppOptions) { o.Pin = pin }))
	}
	forgot := choose(choose(again, false), true)
	if now := after(t, forgot, on("deny")); now.App.Key != "" || forgot.App.Status != agentapi.StatusPending {
		t.Errorf("pinned anew: %+v, denied %+v", forgot.App, now.App)
	}
	if now := after(t, choose(again, false), asks("Notes", 8000, ada)); now.App.Status != agentapi.StatusLive || now.App.Key != "" {
		t.Errorf("not pinned any more, published again: %+v", now.App)
	}
	if again.App.Approved.Key != "k1" || !again.App.Approved.OtherKey {
		t.Errorf("a step changed the row it was given: %+v", again.App.Approved)
	}
	loose := pinned("")
	loose.App.Options.Pin = false
	if now := after(t, loose, shows("k1")); now.App.Key != "" {
		t.Errorf("kept without being asked to: %+v", now.App)
	}
	moved := after(t, pinned("k1"), comes(8000, eve))
	if now := after(t, moved, event{Kind: "approve", Port: 8000, Listener: eve, Listening: true, Own: ownUsers}); now.App.Key != "" {
		t.Errorf("another user's program was approved, and keeps the key %q", now.App.Key)
	}
}

// At a socket the approved user and the agent's own are welcome, both as its owner and as
// who took the connection.
func TestWhoIsAtASocket(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		approved, owner, peer agentapi.Listener
		welcome               bool
	}{
		{ada, ada, ada, true}, {ada, root, ada, true}, {ada, ada, root, true}, {eve, eve, eve, true}, {eve, ada, eve, true}, {eve, eve, root, true},
		{ada, eve, ada, false}, {ada, ada, eve, false}, {ada, eve, eve, false}, {eve, mallet, eve, false}, {eve, eve, mallet, false},
	} {
		h, w := twinHost(t)
		w.set(&tt.approved, nil)
		h.live(t, "notes", "Notes", 8000)
		programs.Got(h.apps.ChangeOptions(t.Context(), "notes", func(o *agentapi.AppOptions) { o.Upstream = "unix:/home/ada/app.sock" }))(t)
		at := h.notes(t).Target()
		h.cfg.ListenerUser = func(at upstream.Target) (agentapi.Listener, uint64) {
			if at.Socket != "/home/ada/app.sock" {
				t.Errorf("looked at %+v", at)
			}
			return tt.owner, 0
		}
		if got := h.apps.Welcomes("notes", at, tt.peer); got != tt.welcome {
			t.Errorf("%+v: %v", tt, got)
		}
		app := h.notes(t)
		if waits := app.Status == agentapi.StatusPending; waits == tt.welcome || waits && !app.kept.Approved.OtherUser {
			t.Errorf("%+v: %+v", tt, app.kept)
		}
		if tt.welcome && *app.kept.ApprovedFor != (store.ListenerUser{ID: tt.approved.UserID, Name: tt.approved.User}) {
			t.Errorf("%+v: approved for %+v", tt, app.kept.ApprovedFor)
		}
		if h.apps.Elsewhere(t.Context(), "notes", at) {
			t.Error("a socket has no other address")
		}
	}
}

// An app that an earlier version approved, which kept no user, is reached at a socket of
// the owner's alone: a port keeps who is seen first, and a path may be anybody's.
func TestSocketOfAnAppApprovedForNobodyKnown(t *testing.T) {
	t.Parallel()
	for _, owner := range []agentapi.Listener{ada, eve} {
		h, w := twinHost(t)
		w.set(&ada, nil)
		h.live(t, "notes", "Notes", 8000)
		earlier := *h.notes(t).kept
		earlier.ApprovedFor, earlier.Options.Upstream = nil, "unix:/home/ada/app.sock"
		h.put(&earlier)
		h.cfg.ListenerUser = func(upstream.Target) (agentapi.Listener, uint64) { return owner, 0 }
		if got, want := h.apps.Welcomes("notes", h.notes(t).Target(), owner), owner == ada; got != want {
			t.Errorf("%s is welcome: %v", owner.User, got)
		}
		if app := h.notes(t); (app.Status == agentapi.StatusPending) != (owner == eve) {
			t.Errorf("%s: %+v", owner.User, app)
		}
		h.apps.OwnerApps(nil) // an app that waits for its owner is shown with whom it was approved for
	}
}

// However programs of several users come and go on both addresses, show keys, publish
// and are approved: what a visitor is sent to is of the user, and shows the key, that the
// owner said yes to last, and nothing but a yes changes whose that is.
func TestNoTwinIsEverWelcome(t *testing.T) {
	t.Parallel()
	all := []agentapi.Listener{ada, root, eve, mallet}
	rapid.Check(t, func(t *rapid.T) {
		h, w := twinHost(t)
		var keys [2]string // shown on each address
		who := rapid.SampledFrom([]*agentapi.Listener{nil, &all[0], &all[0], &all[1], &all[2], &all[3]})
		key := rapid.SampledFrom([]string{"k1", "k1", "k2"})
		var approved *store.ListenerUser
		var pinned string // the key the owner said yes to, or the first
		ctx := context.Background()
		index := func(at upstream.Target) int {
			if at.Address == upstream.IPv6 {
				return 1
			}
			return 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"listen": func(t *rapid.T) {
				w.set(who.Draw(t, "on IPv4"), who.Draw(t, "on IPv6"))
				keys = [2]string{key.Draw(t, "key of IPv4"), key.Draw(t, "key of IPv6")}
			},
			"publish": func(*rapid.T) {
				h.apps.Publish(ctx, Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000})
			},
			"approve": func(t *rapid.T) {
				before, _ := h.apps.Lookup("notes")
				if _, err := h.apps.Approve(ctx, "notes", agentapi.Approval{}); err != nil || before.Status != agentapi.StatusPending {
					return
				}
				now, _ := h.apps.Lookup("notes")
				approved, pinned = now.kept.ApprovedFor, now.Key
				if l := w.at(now.Target()); l != nil && approved.ID != l.UserID {
					t.Fatalf("approved for %+v, and %+v listens on %q", approved, l, now.Address)
				}
			},
			"deny": func(*rapid.T) { h.apps.Deny(ctx, "notes") },
			"pin": func(t *rapid.T) {
				pin := rapid.Bool().Draw(t, "pin")
				o, err := h.apps.ChangeOptions(ctx, "notes", func(o *agentapi.AppOptions) { o.Upstream, o.Pin = agentapi.UpstreamHTTPS, pin })
				if err == nil && !o.Pin {
					pinned = ""
				}
			},
			"look": func(t *rapid.T) {
				if app, ok := h.apps.Lookup("notes"); ok {
					h.apps.carryOut(ctx, look{name: "notes", port: app.Port, moved: rapid.Bool().Draw(t, "moved") && w.at(app.Target()) == nil})
				}
			},
			"visit": func(t *rapid.T) {
				app, ok := h.apps.Lookup("notes")
				if !ok || app.Status != agentapi.StatusLive {
					return
				}
				at := app.Target()
				if w.at(at) == nil { // the connection is refused
					if !h.apps.Elsewhere(ctx, "notes", at) {
						return
					}
					app, _ = h.apps.Lookup("notes")
					at = app.Target()
				}
				if !h.apps.Welcomes("notes", at, agentapi.Listener{}) {
					return
				}
				shown := keys[index(at)]
				if at.Pin && shown != at.Key && !h.apps.ShowedKey(ctx, "notes", shown) {
					return
				}
				l := w.at(at)
				if l == nil || l.UserID != approved.ID && !(ownUsers(l.UserID) && ownUsers(approved.ID)) {
					t.Fatalf("%+v on %q is served, approved was %+v", l, at.Address, approved)
				}
				if at.Pin && pinned == "" {
					pinned = shown
				}
				if at.Pin && shown != pinned {
					t.Fatalf("it shows %s and is served, the key was %s", shown, pinned)
				}
			},
			"": func(t *rapid.T) {
				app, ok := h.apps.Lookup("notes")
				if ok && app.ID != "" && *app.kept.ApprovedFor != *approved {
					t.Fatalf("approved for %+v, which nobody said yes to", app.kept.ApprovedFor)
				}
			},
		})
	})
}

// A request and an app say that the network opens their port, with what their program
// takes instead; an app at a unix socket does not, and neither does one that listens here.
func TestInNetwork(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	open := map[int]bool{8000: true}
	d.cfg.Network = func() map[int]bool { return open }
	d.publish(t, agentapi.StatusPending)
	d.lookNow()
	for _, how := range []string{"asks", "is on"} {
		app := d.apps.OwnerApps(nil)[0]
		if !app.Network || !strings.Contains(app.NetworkDetail, "open port 8000 directly, without signing in.") || !strings.Contains(app.NetworkDetail, "http.server 8000 --bind 127.0.0.1") {
			t.Errorf("it %s: %+v", how, app.InNetwork)
		}
		programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
	}
	if seen, err := d.apps.PortSeen(t.Context(), 8000); err != nil || !seen.Network {
		t.Errorf("the port: %+v, %v", seen, err)
	}
	open = nil
	programs.Must(t, second(d.apps.Pause(t.Context(), "notes"))) // a change is looked at anew
	if app := d.apps.OwnerApps(nil)[0]; app.Network || app.NetworkDetail != "" {
		t.Errorf("here alone: %+v", app.InNetwork)
	}
	open = map[int]bool{8000: true}
	programs.Must(t, second(d.apps.ChangeOptions(t.Context(), "notes", func(o *agentapi.AppOptions) { o.Upstream = "unix:/run/notes.sock" })))
	if app := d.apps.OwnerApps(nil)[0]; app.Network {
		t.Errorf("at a socket: %+v", app.InNetwork)
	}
}

func TestKeepHere(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"python3.11": "--bind 127.0.0.1", "node": "-H 127.0.0.1 (Next)", "node.exe": "listen(8000, '127.0.0.1')", "php8.2": "php -S 127.0.0.1:8000",
		"ruby3.1": "rails server -b 127.0.0.1", "docker-proxy": "-p 127.0.0.1:8000:PORT", "caddy": "host, bind or listen", "": "host, bind or listen",
	} {
		if got := keepHere("8000", program).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %q", program, got)
		}
	}
}
