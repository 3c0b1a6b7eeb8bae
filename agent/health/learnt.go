package health

import (
	"strconv"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// What the answers to visitors teach that the first page alone does not tell.

// learnt is what visitors' answers have shown of an app since its program started.
type learnt struct {
	unaware bool // it does not know its public address
	vain    bool // nor does it now that it is told
	advised bool // it is told because that was suggested
	local   bool // it is called otherwise than visitors call it
	kinds   map[agentapi.Compared]compared
}

// compared is what became of requests of one kind that an app may have compared with its
// own address.
type compared struct {
	status int  // of one that was refused; 0: none, or one was taken since
	taken  bool // one was taken, and what is refused has other reasons
	vain   bool // one was refused under the public name already, for which the app got another one
}

// options notes what an app's options are now, before which v was told of it. The
// evidence is looked at again after one that was suggested was taken.
func (l *learnt) options(app asked, v verdict) {
	suggested := v.option[optionPublicAddress] != nil
	l.advised = app.toldAddress() && (l.advised || suggested)
	l.unaware, l.vain = l.unaware && !app.toldAddress(), l.vain && app.toldAddress()
	local := app.Options.LocalhostHost || app.Options.HostHeader != ""
	if local == l.local {
		return
	}
	before := l.kinds
	l.local, l.kinds = local, map[agentapi.Compared]compared{}
	for kind, c := range before {
		if local && c.status != 0 {
			l.kinds[kind] = compared{vain: true}
		}
	}
}

// answered notes how a request of a kind was answered, and says whether that is news: of
// an app that is called otherwise from the first, a refusal shows nothing.
func (l *learnt) answered(kind agentapi.Compared, status int) (news bool) {
	c := l.kinds[kind]
	before := c
	switch {
	case status < 400:
		c = compared{taken: true}
	case !unwanted(status) || c.taken || l.local && !c.vain:
		return false
	default:
		c.status = status
	}
	if l.kinds == nil {
		l.kinds = map[agentapi.Compared]compared{}
	}
	l.kinds[kind] = c
	return c.status != before.status
}

// added is what is told of an app, with what was learnt where nothing worse is known.
func (l *learnt) added(v verdict) verdict {
	if v.state != agentapi.HealthAnswers || v.option != nil || v.note {
		return v
	}
	if l.unaware {
		v.detail, v.said, v.option = unaware, words.Text{words.Plain(unaware)}, publicAddress
		return v
	}
	said := words.Sentence{}
	if l.advised && (l.vain || v.vain) {
		said = words.Of("It answers, and telling it its address did not help: it has to be told that it begins with https:// in its own settings.")
	}
	for _, kind := range []agentapi.Compared{agentapi.ComparedForm, agentapi.ComparedWebSocket, agentapi.ComparedCall} {
		c := l.kinds[kind]
		if c.status == 0 || !said.IsZero() {
			continue
		}
		what, status := words.Plain(compares[kind]), strconv.Itoa(c.status)
		if c.vain {
			said = words.Of("It answers, and refuses %[1]s all the same (status %[2]s). To call it by another name did not help: it has to be told its address itself, in its own settings.", what, status)
			continue
		}
		said = words.Of("It answers, and refused %[1]s (status %[2]s). It may compare addresses: the option to call it localhost may help.", what, status)
		v.option = localhostHost
	}
	if !said.IsZero() {
		v.detail, v.said, v.note = said.String(), words.Text{said}, v.option == nil
	}
	return v
}

// compares is what an app refused, in words.
var compares = map[agentapi.Compared]string{
	agentapi.ComparedForm:      "a form that its own page sent",
	agentapi.ComparedWebSocket: "a WebSocket", // with whatever Origin, or none
	agentapi.ComparedCall:      "a call of its own page",
}

// Compared notes how an app answered a visitor's request that it may have compared with
// its own address. A refusal has it asked for its first page, at most every ten minutes:
// by that it may be seen that it refuses that address altogether.
func (h *Health) Compared(id string, kind agentapi.Compared, status int) {
	if status >= 400 && !unwanted(status) {
		return
	}
	app, ok := h.find(id)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entryOf(id)
	e.learnt.options(app, e.shown())
	news := e.learnt.answered(kind, status)
	if now := h.cfg.Now(); unwanted(status) && e.learnt.kinds[kind].status != 0 && now.Sub(e.taught) >= pauseTaught {
		e.taught = now
		h.schedule(e, pause)
	}
	if news {
		h.cfg.Changes.Raise()
	}
}
