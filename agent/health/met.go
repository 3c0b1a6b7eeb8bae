package health

import (
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// What visitors met, and what the system says of the ports.

// Failed notes that a visitor's request to an app failed: state and detail are those
// of upstream.Explain. One page that is slow or broken says nothing of the app: its state
// changes when the first page does so, too, for which it is asked.
func (h *Health) Failed(id, state, detail string) {
	app, ok := h.cfg.Find(id)
	if !ok {
		return // it was closed meanwhile, which is no failure of its own
	}
	v := failed(app, agentapi.Health(state), detail)
	v.at = h.cfg.Now()
	h.mu.Lock()
	e := h.entryOf(id)
	told := e.shown()
	news := e.last == nil || e.last.Text != v.detail
	e.last, e.well = &agentapi.AppError{At: v.at.UTC(), Text: v.detail, Words: v.said}, time.Time{}
	if onePage := v.state == agentapi.HealthSilent || v.state == agentapi.HealthWrong; onePage && h.cfg.On() {
		e.suspect = v
		h.schedule(e, pause)
	} else {
		e.met = v
	}
	now := e.shown()
	h.mu.Unlock()
	if news || told.state != now.state || told.detail != now.detail {
		h.cfg.Changes.Raise()
	}
}

// Answered notes that an app answered a visitor after it had failed, or was found
// not to answer.
func (h *Health) Answered(id string) {
	app, ok := h.cfg.Find(id)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[id]
	if e == nil {
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
	case e.probed.note && unwanted(e.probed.status):
		h.schedule(e, pauseTaught)
	case e.probed.note:
		h.schedule(e, pause)
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

// Hint notes that an app's answers show that one of its options should be on, or is and
// does not help.
func (h *Health) Hint(id, option string) {
	app, ok := h.cfg.Find(id)
	if !ok || option != optionPublicAddress {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entryOf(id)
	if app.toldAddress() {
		e.learnt.vain = true
		h.cfg.Changes.Raise()
		return
	}
	if e.learnt.unaware = true; e.probed.state == agentapi.HealthUnknown {
		e.probed = verdict{state: agentapi.HealthAnswers, detail: unaware, said: words.Text{words.Plain(unaware)}, at: h.cfg.Now()}
	}
	h.cfg.Changes.Raise()
}

// Listening notes whether anybody listens for an app. It is called for every look,
// and raises no signal: whoever looks is about to show what is known.
func (h *Health) Listening(id string, listening bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[id]
	dead := e != nil && e.shown().state == agentapi.HealthNothing
	if listening != dead {
		return
	}
	app, ok := h.cfg.Find(id)
	switch {
	case !ok:
	case listening:
		e.probed, e.met = verdict{}, verdict{}
		h.schedule(e, pause)
	default:
		e = h.entryOf(id)
		e.probed, e.met = nothing(app), verdict{}
		e.probed.at = h.cfg.Now()
	}
}
