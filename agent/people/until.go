package people

import (
	"cmp"
	"context"
	"slices"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Shares that end. The control plane keeps the ends, and access ends what is over; this
// is how the owner gives an end, and is told that it came.

// canEnd reads an end as the owner gave it, and refuses one that nobody would keep. A time
// from now is one by the control plane's clock.
func (p *People) canEnd(until *string) (err error) {
	if *until, err = agentapi.CheckedUntil(*until, p.cfg.Access.ControlTime().Local()); err != nil {
		return err
	}
	if *until == "" || *until == agentapi.UntilNever {
		return nil
	}
	return p.connected()
}

// appsToGive finds the app of a request, which has to be live; but the owner can change
// the end of one that the person has, or had until lately, while it is off.
func (p *People) appsToGive(by Actor, req agentapi.AccessRequest) ([]engine.App, error) {
	app, ok := p.cfg.Apps.ByLabel(req.App)
	row, known := p.inSnapshot(req.AccountID)
	if by.Owner && ok && known && req.Until != "" && (slices.Contains(row.Apps, app.ID) || !row.Ended[app.ID].IsZero()) {
		return []engine.App{app}, nil
	}
	return p.liveApps([]string{req.App})
}

// endKnownIn is how long an end that was just given is waited for to be in a snapshot.
const endKnownIn = 2 * time.Second

// endKnown waits until an end that was given is this computer's, too: it then comes also
// if the control plane is never heard of again.
func (p *People) endKnown(ctx context.Context, until string, after controlapi.Person) {
	if until == "" || until == agentapi.UntilNever {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endKnownIn)
	defer cancel()
	p.cfg.Access.AwaitEnds(ctx, after)
}

// tellEnds tells the owner what has ended: all of one person's together.
func (p *People) tellEnds() {
	p.tellClock()
	p.tellGroupEnds()
	p.cfg.Access.TakeEnded(func(fresh []access.Ended) {
		away := p.takenAway(unconfirmed)
		fresh = slices.DeleteFunc(fresh, func(e access.Ended) bool {
			row, _ := p.inSnapshot(e.AccountID)
			return away[store.DenyRecord{AccountID: e.AccountID}] || away[store.DenyRecord{AccountID: e.AccountID, AppID: e.AppID}] ||
				slices.Contains(p.cfg.Access.AsNow(row).Apps, e.AppID) // a group opens it still
		})
		together := func(x, y access.Ended) int {
			return cmp.Or(x.Until.Compare(y.Until), cmp.Compare(x.Email, y.Email), cmp.Compare(x.AccountID, y.AccountID))
		}
		slices.SortFunc(fresh, together)
		for len(fresh) > 0 {
			n := 1
			for n < len(fresh) && together(fresh[0], fresh[n]) == 0 {
				n++
			}
			p.tellEnd(fresh[:n])
			fresh = fresh[n:]
		}
	})
}

// tellEnd tells the owner of apps of one person that ended together.
func (p *People) tellEnd(all []access.Ended) {
	labels, _, _ := p.labels()
	at := p.cfg.Now().UTC()
	ended := agentapi.EndedShare{AccountID: all[0].AccountID, Email: all[0].Email, Until: all[0].Until}
	for _, e := range all {
		label, ok := labels[e.AppID]
		if !ok {
			continue
		}
		ended.Apps = append(ended.Apps, label)
		ended.Closed += e.Closed
		ended.Doubtful = ended.Doubtful || e.Doubtful
		p.cfg.Activity.Add(agentapi.Activity{
			At: at, Kind: agentapi.ActivityEnded, Email: e.Email, AccountID: e.AccountID, App: label, Until: e.Until, Closed: e.Closed,
		})
	}
	if len(ended.Apps) == 0 {
		return
	}
	slices.Sort(ended.Apps)
	p.cfg.Apps.Note(agentapi.Notice{At: at, Kind: agentapi.NoticeEnded, Ended: &ended}, endedText(ended, at))
}

func endedText(e agentapi.EndedShare, now time.Time) words.Text {
	apps, day := words.ListOf(e.Apps, maxNamed), agentapi.LastDay(e.Until, now)
	if e.Doubtful {
		return words.Text{words.Of("By the clock, %[1]s ended for %[2]s: it was until %[3]s. If this computer's clock is wrong, set it right, and they can open it again.", apps, e.Email, day)}
	}
	text := words.Text{words.Of("%[1]s ended for %[2]s. It was until %[3]s.", apps, e.Email, day)}
	if e.Closed > 0 {
		text = append(text, words.Counted(e.Closed, "%d connection closed.", "%d connections closed."))
	}
	return text
}

// tellClock tells the owner once that this computer's clock is ahead, by which shares
// would end too early while the control plane is away.
func (p *People) tellClock() {
	ahead := p.cfg.Access.ClockAhead()
	if ahead <= controlapi.ClockSkew {
		p.clockTold = false
		return
	}
	if p.clockTold {
		return
	}
	p.clockTold = true
	at := p.cfg.Now().UTC()
	text := words.Of("This computer's clock is %s ahead of the server's. What you share until a date ends by the server's; while the server is away it would end too early. Set the clock right.", roughly(ahead))
	p.cfg.Apps.Note(agentapi.Notice{At: at, Kind: agentapi.NoticeClock}, words.Text{text})
	p.cfg.Activity.Add(agentapi.Activity{At: at, Kind: agentapi.ActivityClockAhead})
}

// roughly is a duration in words, in its largest unit.
func roughly(d time.Duration) words.Sentence {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return words.Counted(int(d/day), "%d day", "%d days")
	case d >= 2*time.Hour:
		return words.Counted(int(d/time.Hour), "%d hour", "%d hours")
	}
	return words.Counted(int(max(d/time.Minute, 1)), "%d minute", "%d minutes")
}
