package people

import (
	"context"
	"errors"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Knocks are those who ask to be let in, oldest first. It never waits: they are what
// the last snapshot says, less what was answered here since, whose person was removed
// here, and whose app is gone.
func (p *People) Knocks() []agentapi.Knock {
	snapshot := p.cfg.Access.Snapshot()
	away := p.takenAway(unconfirmed)
	labels, _, _ := p.labels()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.answered {
		if !slices.ContainsFunc(snapshot.Knocks, func(k controlapi.Knock) bool { return k.ID == id }) {
			delete(p.answered, id)
		}
	}
	out := []agentapi.Knock{}
	for _, k := range snapshot.Knocks {
		label, there := labels[k.App]
		if p.answered[k.ID] || away[store.DenyRecord{AccountID: k.AccountID}] || k.App != "" && !there || len(out) == controlapi.MaxKnocks {
			continue
		}
		out = append(out, agentapi.Knock{ID: k.ID, AccountID: k.AccountID, Email: k.Email, App: label, Known: k.Known, At: k.At})
	}
	return out
}

// AnswerKnock carries out the owner's answer to a knock.
func (p *People) AnswerKnock(ctx context.Context, id, answer string) (agentapi.KnockAnswered, error) {
	knock, waits := find(p.Knocks(), func(k agentapi.Knock) bool { return k.ID == id })
	if !waits {
		return agentapi.KnockAnswered{}, knockOver()
	}
	out := agentapi.KnockAnswered{OK: true, Email: knock.Email, App: knock.App}
	ask, err := p.answerOf(knock, answer, &out)
	if err != nil {
		return agentapi.KnockAnswered{}, err
	}
	var apps []engine.App
	if ask.Answer == controlapi.KnockYes {
		if apps, err = p.liveApps([]string{knock.App}); err != nil {
			return agentapi.KnockAnswered{}, err
		}
	}
	row, err := p.sendAnswer(ctx, knock, ask, apps)
	if err != nil {
		return agentapi.KnockAnswered{}, err
	}
	if len(apps) > 0 {
		out.Status, out.URL = string(row.Status), p.urlOf(apps)
	}
	return out, nil
}

// answerOf is what the control plane is asked for an answer of the owner's. It notes in
// out when what is given ends.
func (p *People) answerOf(knock agentapi.Knock, answer string, out *agentapi.KnockAnswered) (controlapi.AnswerKnock, error) {
	ask := controlapi.AnswerKnock{ID: knock.ID, Answer: controlapi.KnockYes}
	switch answer {
	case agentapi.KnockNo:
		ask.Answer = controlapi.KnockNo
		return ask, nil
	case agentapi.KnockNever:
		ask.Answer = controlapi.KnockNever
		return ask, nil
	case agentapi.KnockToday:
		end := midnight(p.cfg.Now())
		ask.Until, out.Until = end.UTC().Format(time.RFC3339), &end
	case agentapi.KnockAlways:
		ask.Until = controlapi.UntilNever
	default:
		return ask, agentapi.Errorf(agentapi.CodeInvalid, "A knock is answered by today, always, no or never, and not by %.40q.", answer)
	}
	if knock.App == "" {
		return ask, agentapi.Errorf(agentapi.CodeInvalid, "%s asked at the launcher, for no app in particular. Invite them to the apps you choose.", knock.Email)
	}
	return ask, p.canEnd(&ask.Until)
}

// sendAnswer tells the control plane, after whatever was changed before, and notes
// that the knock is answered. What was taken away of the app here is given with a yes.
func (p *People) sendAnswer(ctx context.Context, knock agentapi.Knock, ask controlapi.AnswerKnock, apps []engine.App) (controlapi.Person, error) {
	ctx, turn, err := p.begin(ctx, Owner, func(c pending) bool {
		return len(apps) > 0 && c.AccountID == knock.AccountID && (c.AppID == "" || c.AppID == apps[0].ID)
	})
	if err != nil {
		return controlapi.Person{}, err
	}
	defer turn.end()
	were := p.asTheyWere()
	row, err := p.cfg.Control.AnswerKnock(ctx, ask)
	if isNotFound(err) {
		p.forgetKnock(ask.ID)
		return controlapi.Person{}, knockOver()
	}
	if err != nil {
		return controlapi.Person{}, refusal(err)
	}
	p.forgetKnock(ask.ID)
	if len(apps) > 0 {
		p.liftGiven(row, []string{apps[0].ID}, turn.upTo)
	}
	p.happenedToKnock(knock, ask, were(knock.AccountID), row, apps)
	return row, nil
}

// happenedToKnock writes down what the owner answered.
func (p *People) happenedToKnock(knock agentapi.Knock, ask controlapi.AnswerKnock, before, after controlapi.Person, apps []engine.App) {
	line := agentapi.Activity{Kind: agentapi.ActivityKnockRefused, Owner: true, Email: knock.Email, AccountID: knock.AccountID, App: knock.App}
	switch ask.Answer {
	case controlapi.KnockYes:
		p.ownerGave(before, after, apps)
		return
	case controlapi.KnockNever:
		line.Kind = agentapi.ActivityKnockMuted
	}
	p.cfg.Activity.Add(line)
}

// forgetKnock leaves a knock out until the snapshot does.
func (p *People) forgetKnock(id string) {
	p.mu.Lock()
	p.answered[id] = true
	p.mu.Unlock()
	p.cfg.Changes.Raise()
}

func knockOver() error {
	return agentapi.Errorf(agentapi.CodeNotFound, "Nobody waits for this answer any more: it was given already, or took too long.")
}

// midnight is the end of the owner's day.
func midnight(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.Local)
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*controlapi.Error](err)
	return ok && e.Code == controlapi.CodeNotFound
}
