package control

import (
	"context"
	"sync"
	"time"

	"porchlight/control/controlapi"
)

// Whether a computer is on is told to its owner, and to whoever has an app there. When its
// agent was here last is written anyway (writeSeen), so that "off since" costs no row.

// awayAfter is how long after it was seen a computer is taken for connected of which other
// nodes are not sure: seenEvery, a waiting sync, and some.
const awayAfter = 100 * time.Second

// Presence is whether the agent of a computer is there.
type Presence struct {
	On bool
	// Since is when it was here last, to within two minutes; zero where it is on, never was
	// here, or where the owner does not tell.
	Since time.Time
}

// presencesAtOnce bounds the questions to other nodes of one who asks about many computers.
const presencesAtOnce = 64

// atOnce asks about n computers at the same time: a node that does not answer is waited for
// once, and not once a computer.
func atOnce(n int, ask func(i int)) {
	var asking sync.WaitGroup
	free := make(chan struct{}, presencesAtOnce)
	for i := range n {
		free <- struct{}{}
		asking.Go(func() {
			defer func() { <-free }()
			ask(i)
		})
	}
	asking.Wait()
}

// presence asks the other nodes where no sync of the computer waits here, and is for no
// transaction.
func (s *core) presence(ctx context.Context, c computer, seen time.Time) Presence {
	seen = s.Feed.Seen.Last(c.ID, seen)
	if c.CredentialHash != "" && (s.Feed.Watches(c.ID) || s.cfg.SharedStore && s.elsewhere(ctx, c, seen)) {
		return Presence{On: true}
	}
	return Presence{Since: seen}
}

func (s *core) elsewhere(ctx context.Context, c computer, seen time.Time) bool {
	held, sure := false, false
	if s.cfg.Held != nil {
		held, sure = s.cfg.Held(ctx, c.Name+"."+s.cfg.Domain)
	}
	return held || !sure && s.now().Sub(seen) < awayAfter
}

// Presence says whether the computer of a membership is on, and ok where that is known and for
// this person to know: they have an app there.
func (s *People) Presence(ctx context.Context, m Membership) (p Presence, ok bool) {
	if m.Status != controlapi.PersonActive || !m.has {
		return Presence{}, false
	}
	p = s.presence(ctx, m.row, m.seen)
	ok = p.On || !p.Since.IsZero()
	if !m.row.TellOff {
		p.Since = time.Time{}
	}
	return p, ok
}

// Told is what Presence returns.
type Told struct {
	Presence
	OK bool
}

// Presences is Presence of each membership.
func (s *People) Presences(ctx context.Context, all []Membership) []Told {
	presences := make([]Told, len(all))
	atOnce(len(all), func(i int) { presences[i].Presence, presences[i].OK = s.Presence(ctx, all[i]) })
	return presences
}
