package desktop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
)

const (
	// maxNotes is how many requests or notices are told one by one; more become
	// one note.
	maxNotes = 3

	// askedAgain is how long a program that withdraws its request and asks again
	// stays without another notification.
	askedAgain = time.Minute
)

// note is one notification.
type note struct {
	// key names it: a later note with the same key replaces it.
	key         string
	title, body string
	buttons     []button
	urgent      bool
	// click is what happens when the note itself is clicked.
	click action
}

// button of a note.
type button struct {
	text string
	do   action
}

const (
	keyRequests = "requests" // the note about many requests
	keyNotices  = "notices"  // the note about many notices
	keyTrouble  = "trouble"  // what is wrong with Porchlight itself
)

func keyRequest(name string) string { return "request-" + name }

// announcer decides what the owner is notified of: it compares each snapshot
// with what it told before. One goroutine uses it.
type announcer struct {
	now func() time.Time
	// lastNotice is the id of the newest notice told, kept across restarts.
	lastNotice uint64
	told       map[string]toldRequest // by app name
	grouped    int                    // how many requests the note about many speaks of; 0: not shown
}

type toldRequest struct {
	seen    seen
	at      time.Time
	waiting bool // still asked for in the last snapshot
	shown   bool // has a note of its own
}

func newAnnouncer(lastNotice uint64, now func() time.Time) *announcer {
	return &announcer{now: now, lastNotice: lastNotice, told: map[string]toldRequest{}}
}

// next returns the notes to show, and the keys of those that are out of date.
func (a *announcer) next(s agentapi.OwnerState) (show []note, drop []string) {
	show, drop = a.requests(s)
	return append(show, a.notices(s)...), drop
}

func (a *announcer) requests(s agentapi.OwnerState) (show []note, drop []string) {
	now := a.now()
	var loud, fresh []agentapi.OwnerApp
	waiting := map[string]bool{}
	for _, app := range s.Apps {
		if app.Status != agentapi.StatusPending || app.Quiet {
			continue
		}
		waiting[app.Name] = true
		loud = append(loud, app)
		was, known := a.told[app.Name]
		changed := known && was.waiting && was.seen != seenOf(app)
		again := known && !was.waiting && now.Sub(was.at) >= askedAgain
		if !known || changed || again {
			fresh = append(fresh, app)
		} else if !was.waiting {
			was.waiting = true // asked again too soon: the menu shows it, no note
			a.told[app.Name] = was
		}
	}
	for name, was := range a.told {
		if waiting[name] {
			continue
		}
		if was.shown {
			drop = append(drop, keyRequest(name))
		}
		was.waiting, was.shown = false, false
		if a.told[name] = was; now.Sub(was.at) >= askedAgain {
			delete(a.told, name)
		}
	}
	inTurn := func(x, y agentapi.OwnerApp) int { return x.RequestedAt.Compare(y.RequestedAt) }
	slices.SortStableFunc(fresh, inTurn)
	slices.SortStableFunc(loud, inTurn)
	many := len(loud) > maxNotes
	for _, app := range fresh {
		a.told[app.Name] = toldRequest{seen: seenOf(app), at: now, waiting: true, shown: !many}
		if !many {
			show = append(show, requestNote(app, s.Account.Host))
		}
	}
	switch {
	case many && (len(fresh) > 0 || a.grouped != 0 && a.grouped != len(loud)):
		for name, was := range a.told {
			if was.shown {
				drop = append(drop, keyRequest(name))
				was.shown = false
				a.told[name] = was
			}
		}
		a.grouped = len(loud)
		show = append(show, manyRequests(loud))
	case !many && a.grouped != 0:
		a.grouped = 0
		drop = append(drop, keyRequests)
	}
	slices.Sort(drop)
	return show, drop
}

func requestNote(app agentapi.OwnerApp, rootHost string) note {
	return note{
		key:   keyRequest(app.Name),
		title: wants(app),
		body:  fmt.Sprintf("%s, %s. Only you could open it.", hostOf(app, rootHost), whoListens(app)),
		buttons: []button{
			{"Approve", action{verb: doApprove, name: app.Name, seen: seenOf(app)}},
			{"Deny", action{verb: doDeny, name: app.Name}},
		},
		click: action{verb: doShow},
	}
}

func manyRequests(apps []agentapi.OwnerApp) note {
	var labels []string
	for _, app := range apps[:maxNotes] {
		labels = append(labels, isolate(shorten(app.Label)))
	}
	return note{
		key:     keyRequests,
		title:   fmt.Sprintf("%d apps want an address", len(apps)),
		body:    fmt.Sprintf("%s and %d more.", strings.Join(labels, ", "), len(apps)-maxNotes),
		buttons: []button{{"Show", action{verb: doShow}}},
		click:   action{verb: doShow},
	}
}

func (a *announcer) notices(s agentapi.OwnerState) []note {
	var fresh []agentapi.Notice
	for _, n := range s.Notices {
		if n.ID > a.lastNotice {
			fresh = append(fresh, n)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	slices.SortFunc(fresh, func(x, y agentapi.Notice) int { return int(int64(x.ID) - int64(y.ID)) })
	a.lastNotice = fresh[len(fresh)-1].ID
	if len(fresh) > maxNotes {
		return []note{{
			key:     keyNotices,
			title:   fmt.Sprintf("%d changes to your apps", len(fresh)),
			body:    "The last one: " + fresh[len(fresh)-1].Text,
			buttons: []button{{"Show", action{verb: doShow}}},
			click:   action{verb: doShow},
		}}
	}
	var notes []note
	for _, n := range fresh {
		title := "Porchlight"
		for _, app := range s.Apps {
			if app.Name == n.App {
				title = isolate(shorten(app.Label))
			}
		}
		notes = append(notes, note{key: fmt.Sprintf("notice-%d", n.ID), title: title, body: n.Text, click: action{verb: doShow}})
	}
	return notes
}
