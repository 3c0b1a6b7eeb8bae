package desktop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/menu"
	"porchlight/internal/broadcast"
)

// lookEvery is the shortest time between two looks at what listens on this computer, but
// for one whenever the menu is opened: whoever reads it then reads what is so. They
// happen by those, never by the clock alone: an idle menu bar sleeps.
const lookEvery = 5 * time.Second

// around is what the menu shows beside the snapshot: the agent is asked for it when the
// snapshot says that it is another. What could not be had is asked for at the next
// change.
type around struct {
	people   []agentapi.Person
	visitors []agentapi.Visitor // in the order they came
	share    menu.Offer
}

// gatherer keeps what around was made from; one goroutine uses it.
type gatherer struct {
	people, visitors string // versions of what is there
	missed           int    // how often in a row the visitors were others than the snapshot's
	looked           time.Time
}

// gathering keeps around up to date until ctx ends.
func (a *app) gathering(ctx context.Context) {
	var g gatherer
	coalesce(ctx, a.newAround, func() { a.gather(ctx, &g) })
}

func (a *app) menuOpened() {
	a.opened.Store(true)
	broadcast.Raise(a.newAround)
}

func (a *app) gather(ctx context.Context, g *gatherer) {
	s, known := a.snapshot()
	c, err := a.agent()
	if !known || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := a.aroundNow()
	changed, looked := false, false
	var listening []agentapi.Listening
	if version := s.PeopleVersion + fmt.Sprint(len(s.Apps)); version != g.people || now.people == nil {
		if got, err := c.People(ctx); err == nil {
			g.people, now.people, changed = version, got.Members, true
		}
	}
	if version := versionOfVisitors(s); version != g.visitors {
		if got, err := c.Visitors(ctx); err == nil {
			g.visitors, now.visitors, changed = version, inTurn(now.visitors, got), true
			a.askAgain(g, sameVisitors(s, got))
		}
	}
	if a.opened.Swap(false) || time.Since(g.looked) >= lookEvery {
		if got, err := c.Listening(ctx); err == nil {
			g.looked, looked, listening = time.Now(), true, got
		}
	}
	// What was had is kept, also where time ran out before the rest: g says that it is there.
	a.mu.Lock()
	a.around.people, a.around.visitors = now.people, now.visitors
	if looked { // the owner may have dismissed a program meanwhile: what is there now counts
		share := a.toShare(listening)
		changed = changed || share != a.around.share
		a.around.share = share
	}
	a.mu.Unlock()
	if changed {
		a.draw()
	}
}

// mostMissed is how often the visitors are asked for anew while they are others than
// those of the snapshot.
const mostMissed = 10

// askAgain has visitors that the snapshot does not know asked for again: somebody left
// and came back between two snapshots, say, which are then one, and nothing would change
// any more.
func (a *app) askAgain(g *gatherer, same bool) {
	if same || g.missed >= mostMissed {
		g.missed = 0
		return
	}
	g.missed++
	g.visitors = ""
	broadcast.Raise(a.newAround)
}

// sameVisitors says whether as many have the same apps open in both.
func sameVisitors(s agentapi.OwnerState, visitors []agentapi.Visitor) bool {
	open := map[string]bool{}
	for _, v := range visitors {
		for _, label := range v.Apps {
			open[label] = true
		}
	}
	return len(visitors) == min(s.Here, agentapi.MaxVisitors) && !slices.ContainsFunc(s.Apps, func(app agentapi.OwnerApp) bool { return open[app.Label] != (len(app.Here) > 0) })
}

// aroundNow is what the menu shows beside the snapshot, as it is by now.
func (a *app) aroundNow() around {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.around
}

// versionOfVisitors changes when others have something open, or have another name: a client
// may come before the agent has heard what it is called.
func versionOfVisitors(s agentapi.OwnerState) string {
	var b strings.Builder
	fmt.Fprint(&b, s.Here)
	for _, g := range s.Grants {
		fmt.Fprintf(&b, " %s", g.ID)
	}
	for _, app := range s.Apps {
		fmt.Fprintf(&b, " %s %d %q", app.Name, app.Connections, app.Here)
	}
	return b.String()
}

// inTurn has those who were there before first, in the order they had: somebody who
// comes moves nobody's line.
func inTurn(before, now []agentapi.Visitor) []agentapi.Visitor {
	turn := func(v agentapi.Visitor) int {
		i := slices.IndexFunc(before, func(was agentapi.Visitor) bool {
			return was.AccountID == v.AccountID && was.GrantID == v.GrantID && was.PasswordID == v.PasswordID
		})
		if i < 0 {
			return len(before)
		}
		return i
	}
	out := slices.Clone(now)
	slices.SortStableFunc(out, func(x, y agentapi.Visitor) int { return turn(x) - turn(y) })
	return out
}

// toShare is the newest program of the owner's own that has listened for a while and has
// no address, and that they have not looked at in the menu already. It is called with mu held.
func (a *app) toShare(all []agentapi.Listening) (newest menu.Offer) {
	var since time.Time
	for _, l := range all {
		if !l.Own || !l.Steady || l.Published || l.App != "" || l.NotOffered != "" || a.dismissed[l.Port].Equal(l.Since) {
			continue
		}
		if newest.Port == 0 || l.Since.After(since) {
			newest, since = menu.Offer{Port: l.Port, Program: l.Program, Since: l.Since}, l.Since
		}
	}
	return newest
}

// dismiss has a program that was looked at not offered again, as long as it runs.
func (a *app) dismiss(port string) {
	a.mu.Lock()
	share := a.around.share
	offered := share.Port != 0 && strconv.Itoa(share.Port) == port
	if offered {
		if len(a.dismissed) >= 100 {
			clear(a.dismissed)
		}
		a.dismissed[share.Port] = share.Since
		a.around.share = menu.Offer{}
	}
	a.mu.Unlock()
	if offered {
		a.draw()
	}
}
