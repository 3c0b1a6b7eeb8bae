package notes

import (
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
)

// What happened is told by one note of a kind and minute. What belongs to it and comes
// within gatherFor joins it where it stands; what comes later waits for the next minute.
// A friend who comes is one note, however many steps that takes them.

const (
	gatherFor = 10 * time.Second
	// maxGathered bounds what is known of what one note tells; its count goes on.
	maxGathered = 100
)

// news is what the note of a kind tells now, and what waits to be told.
type news struct {
	shown   []agentapi.Notice // the last of them
	waiting []agentapi.Notice
	count   int       // of all told
	waits   int       // of all waiting
	first   uint64    // names the note
	since   time.Time // when the note was first shown, and
	last    time.Time // last
}

// newsOf is the kind of news that a notice belongs to: somebody accepts, and opens an app.
func newsOf(n agentapi.Notice) string {
	if k := kindOf(n); k != agentapi.KindVisit {
		return k
	}
	return agentapi.KindInvitation
}

// gather has a notice wait to be told, but for the first visit of somebody of whom the
// owner was told a moment ago.
func (a *Announcer) gather(n agentapi.Notice) {
	b := a.news[newsOf(n)]
	if b == nil {
		b = &news{}
		a.news[newsOf(n)] = b
	}
	if n.Visitor != nil {
		joins := a.now().Sub(b.since) <= gatherFor && slices.ContainsFunc(b.shown, sameVisitor(n)) || slices.ContainsFunc(b.waiting, sameVisitor(n))
		if a.hasMet(n.Visitor.AccountID) && !joins {
			return
		}
		a.meet(n.Visitor.AccountID)
	}
	b.waiting = append(b.waiting, n)
	b.waiting = b.waiting[max(0, len(b.waiting)-maxGathered):]
	b.waits++
}

func sameVisitor(n agentapi.Notice) func(agentapi.Notice) bool {
	return func(o agentapi.Notice) bool { return o.Visitor != nil && o.Visitor.AccountID == n.Visitor.AccountID }
}

func (a *Announcer) hasMet(account string) bool {
	at, known := a.met[account]
	return known && a.now().Sub(at) < atOnce
}

func (a *Announcer) meet(account string) {
	for id := range a.met {
		if !a.hasMet(id) {
			delete(a.met, id)
		}
	}
	a.met[account] = a.now()
}

// tellGathered shows the notes of what waits, or says when that may be.
func (a *Announcer) tellGathered(c *Changes, s agentapi.OwnerState) {
	now := a.now()
	for _, b := range a.inOrder() {
		switch stood := now.Sub(b.since); {
		case stood >= time.Minute:
			b.shown, b.count, b.first, b.since = nil, 0, b.waiting[0].ID, now
		case stood > gatherFor:
			c.lookAgain(time.Minute - stood)
			continue
		case now.Sub(b.last) < recount:
			c.lookAgain(recount - now.Sub(b.last))
			continue
		}
		stood := len(arrivals(b.shown))
		b.shown = append(b.shown, b.waiting...)
		b.shown = b.shown[max(0, len(b.shown)-maxGathered):]
		b.count += b.waits
		b.waiting, b.waits, b.last = nil, 0, now
		n := a.newsNote(b, s)
		n.InPlace = len(arrivals(b.shown)) == stood // no more than who came goes on
		c.Show = append(c.Show, n)
	}
}

// inOrder are those of which something waits, by what waits longest.
func (a *Announcer) inOrder() (all []*news) {
	for _, b := range a.news {
		if len(b.waiting) > 0 {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(x, y *news) int { return int(int64(x.waiting[0].ID) - int64(y.waiting[0].ID)) })
	return all
}

// newsNote is one note of all that is told.
func (a *Announcer) newsNote(b *news, s agentapi.OwnerState) Note {
	folded := arrivals(b.shown)
	last := folded[len(folded)-1]
	if len(folded) == 1 && b.count <= len(b.shown) {
		n := a.noticeNote(last, s)
		n.Key = KeyNotice(b.first)
		return n
	}
	n := thatShows(viewOf(kindOf(last)), Note{Key: KeyNotice(b.first), Kind: kindOf(last), Body: language.Say("The last one: %s", last.Text)})
	switch count := b.count - len(b.shown) + len(folded); {
	case newsOf(last) == agentapi.KindInvitation && last.Visitor != nil:
		n.Title = language.Count(count, "%d person is here for the first time", "%d people are here for the first time")
	case kindOf(last) == agentapi.KindApproved:
		n.Title = language.Count(count, "%d app was approved at a terminal", "%d apps were approved at a terminal")
	default:
		n.Title = language.Count(count, "%d change", "%d changes")
	}
	return n
}

// arrivals folds what is about one person who comes: that they accepted goes with their
// first visit, and what they opened is one visit.
func arrivals(notices []agentapi.Notice) (folded []agentapi.Notice) {
	for _, n := range notices {
		if n.Visitor != nil {
			if i := slices.IndexFunc(folded, sameVisitor(n)); i >= 0 {
				if folded[i].Visitor.App != "" {
					both := *n.Visitor
					both.App = language.Spoken().And(folded[i].Visitor.App, both.App)
					n.Visitor = &both
				}
				folded = slices.Delete(folded, i, i+1)
			}
		}
		folded = append(folded, n)
	}
	return folded
}
