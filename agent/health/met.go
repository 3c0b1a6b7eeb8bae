package health

import (
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/upstream"
	"porchlight/internal/words"
)

// What visitors met, and what the system says of the ports.

// Failed notes why a visitor's request to an app failed; down is true where nobody took
// the connection. One page that is slow or broken says nothing of the app: its state
// changes when the first page does so, too, for which it is asked.
func (h *Health) Failed(id string, why upstream.Failure, down bool) {
	app, ok := h.find(id)
	if !ok {
		return // it was closed meanwhile, which is no failure of its own
	}
	v := failed(app, why.State, why.Detail)
	v.at = h.cfg.Now()
	v.unseen = v.unseen || !down // another user's program listens, too
	h.mu.Lock()
	e := h.entryOf(id)
	h.await(e, true)
	before := e.shown()
	news := e.last == nil || e.last.Text != v.detail
	e.last, e.well = &agentapi.AppError{At: v.at.UTC(), Text: v.detail, Words: v.said}, time.Time{}
	if onePage := v.state == agentapi.HealthSilent || v.state == agentapi.HealthWrong; onePage && !down && h.cfg.On() {
		e.suspect = v
		h.schedule(e, pause)
	} else {
		e.met = v
	}
	now := e.shown()
	h.mu.Unlock()
	if news || before.state != now.state || before.detail != now.detail {
		h.cfg.Changes.Raise()
	}
}

// Answered notes that an app answered a visitor. It is called for each answer, and is news
// after one that failed, or where the app was found not to answer.
func (h *Health) Answered(id string) {
	if h.awaited.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[id]
	if e == nil || !e.awaits {
		return
	}
	h.await(e, false)
	app, ok := h.find(id)
	if !ok {
		return
	}
	e.met = verdict{}
	if e.well.IsZero() {
		e.well = h.cfg.Now()
	}
	if e.probed.state == agentapi.HealthUnknown || mayRecover(e.probed) {
		e.probed = answers(app, 0)
		e.probed.at = h.cfg.Now()
	}
	// Whether an error is still its first page, only that page tells.
	switch {
	case e.probed.note && e.probed.status >= 500:
		h.schedule(e, pause)
	case e.probed.note:
		h.schedule(e, pauseTaught)
	}
	h.cfg.Changes.Raise()
}

// mayRecover says whether an answer to a visitor shows that it is otherwise by now.
// What refuses its address, or speaks another protocol, may answer with an error.
func mayRecover(v verdict) bool {
	switch v.state {
	case agentapi.HealthNothing, agentapi.HealthSilent, agentapi.HealthWrong:
		return v.option == nil
	}
	return false
}

// Hint notes that an app's answer shows that it does not know its public address, told it
// or not. It is called for each such answer.
func (h *Health) Hint(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.apps[id]; e != nil && e.hinted {
		return
	}
	app, ok := h.find(id)
	if !ok {
		return
	}
	e := h.entryOf(id)
	e.hinted = true
	switch e.learnt.unaware = e.learnt.unaware || !app.toldAddress(); {
	case app.toldAddress():
		e.learnt.vain = true
	case e.probed.state == agentapi.HealthUnknown:
		e.probed = verdict{state: agentapi.HealthAnswers, detail: unaware, said: words.Text{words.Plain(unaware)}, at: h.cfg.Now()}
	}
	h.cfg.Changes.Raise()
}

// Listening notes whether anybody listens for an app, unless that has changed since it was
// seen. It is called for every look, and raises no signal: whoever looks is about to show
// what is known. What no look shows is kept until the app is asked anew, or answers.
func (h *Health) Listening(seen engine.App, listening bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[seen.ID]
	dead := e != nil && e.shown().state == agentapi.HealthNothing
	unseen := dead && e.shown().unseen
	app, ok := h.on(seen.ID)
	switch {
	case listening != dead && !unseen, !ok, app.Target() != seen.Target():
	case listening:
		if !unseen {
			e.probed, e.met = verdict{}, verdict{}
		}
		h.schedule(e, pause)
	default:
		e = h.entryOf(seen.ID)
		e.probed, e.met = nothing(asked{App: app}), verdict{}
		e.probed.at, e.probed.unseen = h.cfg.Now(), false
	}
}
