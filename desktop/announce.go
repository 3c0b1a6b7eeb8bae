package desktop

import (
	"fmt"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

const (
	// maxNotes is how many of a kind are told one by one; more become one note.
	maxNotes = 3

	// maxAMinute bounds how many of a kind are told within a minute, however
	// slowly they come. It is more than a person causes by hand.
	maxAMinute = 6

	// askedAgain is how long a program that withdraws its request and asks again
	// stays without another notification.
	askedAgain = time.Minute

	// lasting is how long something has to keep visitors out before it is announced.
	lasting = time.Minute

	// recount is the shortest time between two counts on the note about many
	// requests.
	recount = 3 * time.Second

	// stale is how old what happened while Porchlight was not running may be.
	stale = 24 * time.Hour
)

// note is one notification.
type note struct {
	// key names it: a later note with the same key replaces it.
	key         string
	kind        kind
	title, body string
	buttons     []button
	urgent      bool
	// life is how long it stays on the screen; 0 leaves that to the system.
	life time.Duration
	// click is what happens when the note itself is clicked.
	click verbs.Action
}

// button of a note.
type button struct {
	text string
	do   verbs.Action
}

const (
	keyRequests = "requests" // the note about many requests
	keyNotices  = "notices"  // the note about many notices
	keyClients  = "clients"  // the note about many connected apps
	keyTrouble  = "trouble"  // what keeps visitors out
	keyKeychain = "keychain" // locked, or not there
	keyEnded    = "ended"    // the access the owner ended
	keyApproved = "approved" // an app that is on now
	keyCopied   = "copied"
	keyKnocks   = "knocks"  // the note about many people who knock
	keyAccount  = "account" // connected, or no longer
	keyStays    = "stays"   // the window was closed for the first time
	keyFailed   = "failed"  // what the owner clicked and could not be done
)

func keyKnock(id string) string     { return "knock-" + id }
func keyRequest(name string) string { return "request-" + name }
func keyNotice(id uint64) string    { return fmt.Sprintf("notice-%d", id) }

// announcer decides what the owner is notified of: it compares each snapshot
// with what it told before. One goroutine uses it.
type announcer struct {
	now func() time.Time
	told

	requested map[string]toldRequest // by app name
	grouped   int                    // how many requests the note about many speaks of; 0: not shown
	groupedAt time.Time
	flood     bool // that note says that requests come and go

	knocked    map[string]bool // the people who knock, by id: whether they have a note of their own
	manyKnocks bool            // there is a note about many
	knocksAt   time.Time       // when that was shown

	since        time.Time // when trouble began; zero while there is none
	troubleShown bool

	oneByOne map[kind][]time.Time // when notes were told one by one, within a minute
}

// told is what has to be known at the next start, or it would be told twice.
type told struct {
	notice uint64    // id of the newest notice
	grant  time.Time // when the newest grant was made
	server string    // the one this computer is connected to, or its own
}

type toldRequest struct {
	seen    verbs.Seen
	at      time.Time
	waiting bool // still asked for in the last snapshot
	shown   bool // has a note of its own
}

func newAnnouncer(before told, now func() time.Time) *announcer {
	return &announcer{now: now, told: before, requested: map[string]toldRequest{}, knocked: map[string]bool{}, oneByOne: map[kind][]time.Time{}}
}

// changes are what has to happen to the notifications on the screen.
type changes struct {
	show []note
	drop []string // keys of those that are out of date
	// again is when to look at the same snapshot again; 0: not before the next.
	again time.Duration
}

func (c *changes) lookAgain(in time.Duration) {
	if c.again == 0 || in < c.again {
		c.again = in
	}
}

// next looks at a snapshot. What is of a quiet kind counts as told; q is asked
// only where there is something to tell.
func (a *announcer) next(s agentapi.OwnerState, q func() quiet) changes {
	var c changes
	a.requests(&c, s)
	a.knocks(&c, s)
	a.account(&c, s)
	a.notices(&c, s, q)
	a.grants(&c, s)
	a.trouble(&c, s)
	c.show = slices.DeleteFunc(c.show, func(n note) bool { return q()[n.kind] })
	slices.Sort(c.drop)
	return c
}

func (a *announcer) notices(c *changes, s agentapi.OwnerState, q func() quiet) {
	var untold []agentapi.Notice
	newest := a.told.notice
	for _, n := range s.Notices {
		if n.ID <= a.told.notice {
			continue
		}
		newest = max(newest, n.ID)
		if !q()[kindOf(n)] {
			untold = append(untold, n)
		}
	}
	a.told.notice = newest
	if len(untold) == 0 {
		return
	}
	slices.SortFunc(untold, func(x, y agentapi.Notice) int { return int(int64(x.ID) - int64(y.ID)) })
	last := untold[len(untold)-1]
	k := kindOf(last)
	if !a.mayTell(k, len(untold)) {
		c.show = append(c.show, note{
			key: keyNotices, kind: k, title: manyNotices(untold), body: language.Say("The last one: %s", last.Text),
			buttons: []button{{language.Say("Show"), verbs.Action{Verb: verbs.Show, View: viewOf(k)}}},
			click:   verbs.Action{Verb: verbs.Show, View: viewOf(k)},
		})
		return
	}
	for _, n := range untold {
		shown := note{
			key: keyNotice(n.ID), kind: kindOf(n), title: titleOf(n, s.Apps), body: n.Text,
			click: verbs.Action{Verb: verbs.Show, View: viewOf(kindOf(n))},
		}
		aboutSomebody(&shown, n, a.now())
		if n.Undo {
			shown.buttons = []button{{language.Say("Undo"), verbs.Action{Verb: verbs.Undo, Notice: n.ID, Text: n.Text}}}
		}
		if i := slices.IndexFunc(s.Users, func(u agentapi.LocalUser) bool { return u.ID == n.User && u.Standing == agentapi.UserAsks }); i >= 0 {
			shown.buttons = []button{{language.Say("Allow"), verbs.AllowOf(s.Users[i])}, {language.Say("No"), verbs.DenyOf(s.Users[i])}}
		}
		c.show = append(c.show, shown)
	}
}

func manyNotices(untold []agentapi.Notice) string {
	if len(untold) == 1 {
		return language.Say("Another change")
	}
	return language.Count(len(untold), "%d change", "%d changes")
}

// viewOf is where the window shows what a note is about.
func viewOf(k kind) string {
	switch k {
	case kindInvitation, kindCapability:
		return verbs.ViewPeople
	case kindClient:
		return verbs.ViewClients
	case kindRequest: // of another user
		return verbs.ViewSettings
	}
	return verbs.ViewApps
}

// grants announces clients that somebody let in.
func (a *announcer) grants(c *changes, s agentapi.OwnerState) {
	var untold []agentapi.Grant
	newest := a.told.grant
	for _, g := range s.Grants {
		if !g.CreatedAt.After(a.told.grant) {
			continue
		}
		if g.CreatedAt.After(newest) {
			newest = g.CreatedAt
		}
		if a.now().Sub(g.CreatedAt) < stale {
			untold = append(untold, g)
		}
	}
	a.told.grant = newest
	show := verbs.Action{Verb: verbs.Show, View: verbs.ViewClients}
	if len(untold) > 0 && !a.mayTell(kindClient, len(untold)) {
		var names []string
		for _, g := range untold[:min(len(untold), maxNotes)] {
			names = append(names, language.Named(g.ClientName))
		}
		c.show = append(c.show, note{
			key: keyClients, kind: kindClient, title: language.Count(len(untold), "%d connected app was let in", "%d connected apps were let in"),
			body: listed(names, len(untold)), buttons: []button{{language.Say("Show"), show}}, click: show,
		})
		return
	}
	for _, g := range untold {
		name := language.Named(g.ClientName)
		body := language.Say("You allowed it to open your apps, as you. Connected apps lists it.")
		if g.Email != s.Account.Email {
			body = language.Say("%s allowed it to open, in their name, every app they may open. Connected apps lists it.", language.Named(g.Email))
		}
		c.show = append(c.show, note{
			key: "grant-" + g.ID, kind: kindClient, title: language.Say("%s was let in", name), body: body,
			click: show, buttons: []button{{language.Say("Show"), show}, {language.Say("Revoke"), verbs.Action{Verb: verbs.RevokeGrant, Name: g.ID, Label: g.ClientName}}},
		})
	}
}

// trouble announces what keeps visitors out once it has lasted, and takes that back
// when it is over.
func (a *announcer) trouble(c *changes, s agentapi.OwnerState) {
	if s.Trouble == "" {
		if a.troubleShown {
			c.drop = append(c.drop, keyTrouble)
		}
		a.since, a.troubleShown = time.Time{}, false
		return
	}
	now := a.now()
	if a.since.IsZero() {
		a.since = now
	}
	switch left := lasting - now.Sub(a.since); {
	case a.troubleShown:
	case left > 0:
		c.lookAgain(left)
	default:
		a.troubleShown = true
		title := language.Say("Your apps may be out of reach")
		if s.AccessUntil != nil {
			title = language.Say("Porchlight cannot reach its server")
		}
		c.show = append(c.show, note{key: keyTrouble, kind: kindConnection, title: title, body: s.Trouble,
			click: verbs.Action{Verb: verbs.Show, View: verbs.ViewHealth}, buttons: []button{{language.Say("Health"), verbs.Action{Verb: verbs.Show, View: verbs.ViewHealth}}}})
	}
}

// mayTell says whether n more of a kind may be announced one by one now. Those that
// come slowly are counted too, so that they make no storm.
func (a *announcer) mayTell(k kind, n int) bool {
	now := a.now()
	lately := slices.DeleteFunc(a.oneByOne[k], func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	ok := n <= maxNotes && len(lately)+n <= maxAMinute
	if ok {
		lately = append(lately, slices.Repeat([]time.Time{now}, n)...)
	}
	a.oneByOne[k] = lately
	return ok
}

// listed is "A, B, C and 4 more.", of all names that there are.
func listed(names []string, all int) string {
	if rest := all - len(names); rest > 0 {
		names = append(names, language.Count(rest, "%d more", "%d more"))
	}
	return language.Spoken().And(names...) + "."
}
