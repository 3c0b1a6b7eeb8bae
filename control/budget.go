package control

import (
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// limit allows n events in any stretch of time of length per.
type limit struct {
	n   int
	per time.Duration
}

// budgetKind is one sort of subject with its limits. Sign-in links and
// invitations spend from the same ones.
type budgetKind struct {
	name   string
	limits []limit
	spent  string // what a person reads when it is
}

var (
	budgetRecipient = budgetKind{"recipient", []limit{{5, 15 * time.Minute}, {20, 24 * time.Hour}},
		"Several mails were asked for at that address. Links already sent still work; another mail can be asked for later."}
	// budgetInvited keeps invitations, which spend from budgetRecipient, too, from leaving
	// nothing for signing in.
	budgetInvited = budgetKind{"recipient-invited", []limit{{3, 15 * time.Minute}, {10, 24 * time.Hour}}, budgetRecipient.spent}
	// budgetPair keeps one wide network (see wideNetwork) from spending all that an address has.
	budgetPair = budgetKind{"recipient-client", []limit{{2, 15 * time.Minute}, {10, 24 * time.Hour}},
		"Several mails were asked for at that address from your network. Links already sent still work; another mail can be asked for later."}
	// budgetKnown is that of a known browser, which no stranger spends.
	budgetKnown = budgetKind{"known", budgetRecipient.limits, budgetRecipient.spent}
	// budgetFamiliar is that of a network that has signed in with the address (see
	// familiar), which nobody elsewhere spends.
	budgetFamiliar = budgetKind{"familiar", budgetRecipient.limits, budgetRecipient.spent}
	budgetOwner    = budgetKind{"owner", []limit{{50, 24 * time.Hour}},
		"You invited many people today. The invitations already sent still work; more can be sent tomorrow."}
	budgetClient = budgetKind{"client", []limit{{30, time.Hour}},
		"Many mails were asked for from your network. Links already sent still work; another mail can be asked for later."}
	// budgetGuesses bounds the wrong codes for mails to one address: everybody may
	// ask for mails to it and type codes, and there are only a million. It has no
	// sentence, as nobody is told.
	budgetGuesses = budgetKind{"guesses", []limit{{20, 24 * time.Hour}}, ""}
	// budgetVisits bounds the codes that the browsers of one account can have written;
	// a knock counts, too.
	budgetVisits = budgetKind{"visits", []limit{{300, time.Minute}},
		"You opened apps very often within a minute. Wait a moment, then open the app again."}
	// budgetKnocks is one person's, over all apps and computers.
	budgetKnocks = budgetKind{"knocks", []limit{{3, 24 * time.Hour}},
		"You asked three times today. You can ask again tomorrow."}
	budgetConsents = budgetKind{"consents", []limit{{30, time.Minute}},
		"You allowed apps very often within a minute. Wait a moment, then try again."}
	// budgetDocuments is of clients that describe themselves and are new to this service.
	budgetDocuments = budgetKind{"documents", []limit{{5, time.Hour}},
		"You came from several apps that are new here within an hour. Try again later."}
	budgetPasswords = budgetKind{"passwords", []limit{{60, time.Minute}, {500, 24 * time.Hour}},
		"You made very many app passwords. Those there are still work; another can be made later."}
	// budgetProviders bounds how often one network has a provider asked.
	budgetProviders = budgetKind{"providers", []limit{{60, 10 * time.Minute}},
		"Your network signed in with providers very often. Wait a few minutes, then try again."}
	// budgetDomains bounds the claims of one computer, and the looks at what is not routed.
	budgetDomains = budgetKind{"domains", []limit{{100, 24 * time.Hour}},
		"This computer had own domains looked up very often today. Those that are proven still work; more can be tried tomorrow."}
	// budgetDomain bounds the looks at one that is routed, so that one whose certificate is
	// refused again and again keeps no other from being renewed.
	budgetDomain = budgetKind{"domain", []limit{{20, time.Hour}},
		"This own domain was looked up very often within an hour. It still works; it can be looked up again later."}
	// budgetChallenges bounds the new challenges of one computer: a certificate has two.
	budgetChallenges = budgetKind{"challenges", []limit{{30, time.Hour}},
		"This computer had very many certificates begun within an hour. Another one can be later."}
	budgetPasskeys = budgetKind{"passkeys", []limit{{20, time.Hour}},
		"You added very many passkeys within an hour. Those there are still work; another can be added later."}
	// budgetTries and budgetTried bound wrong recovery codes, from one network and for one address.
	budgetTries = budgetKind{"recovery-tries", []limit{{10, 15 * time.Minute}, {40, 24 * time.Hour}},
		"Many recovery codes were tried from your network. Passkeys still work; another code can be tried later."}
	budgetTried = budgetKind{"recovery-tried", []limit{{100, 24 * time.Hour}},
		"Many recovery codes were tried for that address. Passkeys still work; another code can be tried later."}
	// budgetNotes bounds what strangers can have kept of an account, of one kind at a node. It
	// has no sentence, as nobody is told.
	budgetNotes    = budgetKind{"notes", []limit{{20, 24 * time.Hour}}, ""}
	budgetWaysBack = budgetKind{"ways-back", []limit{{5, time.Hour}, {10, 24 * time.Hour}},
		"Several links to sign in were made on this computer. Those of the last 15 minutes still work; another can be made later."}
)

// subject is one budget: of one address, owner or client.
type subject struct {
	kind budgetKind
	key  string
}

func (k budgetKind) of(who ...string) subject {
	return subject{k, keyBudget(k.name, hashOf(purposeBudget, append([]string{k.name}, who...)...))}
}

// window is when a budget was spent, oldest first, in unix milliseconds.
type window []int64

// spend adds an event at now when the budget allows it. Otherwise wait says how
// long until it does, and the window is unchanged.
func (w window) spend(now time.Time, kind budgetKind) (after window, wait time.Duration) {
	w = w.past(now)
	for _, l := range kind.limits {
		if len(w) < l.n {
			continue
		}
		// The n-th newest event has to leave the stretch first.
		free := time.UnixMilli(w[len(w)-l.n]).Add(l.per)
		wait = max(wait, free.Sub(now))
	}
	if wait > 0 {
		return w, wait
	}
	start := now.Add(-kind.lifetime()).UnixMilli()
	after = slices.DeleteFunc(slices.Clone(w), func(at int64) bool { return at <= start })
	return append(after, now.UnixMilli()), 0
}

// past leaves out what was spent in the future: by a clock that was wrong and has
// been set back since, and that would otherwise hold people up for as long as it
// was wrong. What the clocks of several nodes differ by still counts.
func (w window) past(now time.Time) window {
	newest := now.Add(clocksDiffer).UnixMilli()
	for len(w) > 0 && w[len(w)-1] > newest {
		w = w[:len(w)-1]
	}
	return w
}

// clocksDiffer is by how much the clocks of nodes that share a store may differ
// before what one writes looks to the other like a clock that was set back.
const clocksDiffer = time.Minute

func (k budgetKind) tooMany(wait time.Duration) error {
	return &controlapi.Error{Code: controlapi.CodeTooMany, Message: k.spent, RetryAfter: wait}
}

// spend takes one from each budget, or refuses with CodeTooMany and
// RetryAfter; then nothing of the transaction must be kept.
func (t *txn) spend(subjects ...subject) error {
	for _, s := range subjects {
		w, _ := get[window](t, s.key)
		w, wait := w.spend(t.now, s.kind)
		if wait > 0 {
			return s.kind.tooMany(wait)
		}
		t.put(s.key, w, s.kind.lifetime())
	}
	return nil
}

// lifetime is how long an event counts: the longest stretch of the limits.
func (k budgetKind) lifetime() time.Duration {
	var d time.Duration
	for _, l := range k.limits {
		d = max(d, l.per)
	}
	return d
}

// affords says whether the stored budgets would allow one more, without
// spending it.
func (t *txn) affords(subjects ...subject) error {
	for _, s := range subjects {
		w, _ := get[window](t, s.key)
		if _, wait := w.spend(t.now, s.kind); wait > 0 {
			return s.kind.tooMany(wait)
		}
	}
	return nil
}

// pace is what this node remembers of the budgets. A sign-in is answered before
// anything is written, so that the answer tells nothing; until its write
// arrives, the stored budgets lag behind, and this one does not. Restarts and
// other nodes are the business of the stored ones.
type pace struct {
	mu      sync.Mutex
	windows map[string]window // guarded by mu
}

// paceSize bounds the subjects remembered; beyond it, the ones whose budget is
// whole again are dropped, then any.
const paceSize = 50_000

func newPace() *pace { return &pace{windows: map[string]window{}} }

func (p *pace) spend(now time.Time, subjects ...subject) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range subjects {
		if _, wait := p.windows[s.key].spend(now, s.kind); wait > 0 {
			return s.kind.tooMany(wait)
		}
	}
	old := now.Add(-24 * time.Hour).UnixMilli()
	for _, s := range subjects {
		bounds.MakeRoom(p.windows, paceSize, func(w window) bool { return w[len(w)-1] <= old })
		p.windows[s.key], _ = p.windows[s.key].spend(now, s.kind)
	}
	return nil
}
