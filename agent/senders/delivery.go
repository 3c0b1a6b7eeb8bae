package senders

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

const (
	// Kept is how long a delivery is known that says no signed time.
	Kept = 7 * 24 * time.Hour
	// MostKept is how many deliveries are known of one sender.
	MostKept = 10_000
	// MaxBody is how many bytes a delivery may have.
	MaxBody = 1 << 20

	sweepEvery = time.Minute // at most, of a sender that is full
)

var (
	// ErrDone is of what the app has taken already.
	ErrDone = errors.New("it was delivered already")
	// ErrUnderWay is of what is at the app now.
	ErrUnderWay = errors.New("it is being delivered now")
	// ErrUnknown is of what nobody can tell from a repetition: the disk does not answer.
	ErrUnknown = errors.New("it cannot be looked up whether it was delivered")
	// ErrFull is of a sender of whom no more deliveries can be known.
	ErrFull = errors.New("too many deliveries are known of this sender")
)

// Claim is a request that says by its head that it is a named sender's.
type Claim struct {
	s      *Senders
	sender store.Sender
	signed signed
}

// Claimed finds the claim of a request to an app; nil where it makes none. With an error it
// makes one that is worth nothing, whatever its body is. Nil finds none.
func (s *Senders) Claimed(appID string, r *http.Request) (*Claim, error) {
	if s == nil || r.Method != http.MethodPost {
		return nil, nil
	}
	sender, named := s.cfg.Access.SenderAt(appID, r.RequestURI)
	if !named {
		return nil, nil
	}
	signed, present, err := readSigned(sender.Kind, sender.Header, r.Header)
	switch {
	case !present:
		return nil, nil
	case err != nil:
		return nil, err
	case !signed.timely(s.cfg.Access.ControlTime()):
		return nil, ErrTime
	case len(signed.signatures) == 0:
		return nil, ErrSignature
	}
	return &Claim{s, sender, signed}, nil
}

// Delivery is something that a sender sent, on its way to the app. Release has to be called.
type Delivery struct {
	access.Identity
	ledger *ledger
	key    store.Delivery
	until  time.Time // that it is known, once it is done
	isDone bool
}

// Check says whether the claim is right, now that the body is there. The delivery is then
// the only one of its kind that is under way. One beside an error only says whose it is.
func (c *Claim) Check(body []byte) (*Delivery, error) {
	now := c.s.cfg.Access.ControlTime()
	sender, named := c.s.cfg.Access.SenderAt(c.sender.AppID, c.sender.Target) // as it is by now
	switch {
	case !named || sender.ID != c.sender.ID || !c.signed.by(sender.Secrets, body):
		return nil, ErrSignature
	case !c.signed.timely(now): // it may have come slowly
		return nil, ErrTime
	}
	until := now.Add(Kept)
	if !c.signed.at.IsZero() {
		until = c.signed.at.Add(2 * Skew) // none that is signed so passes any more
	}
	d := &Delivery{c.s.cfg.Access.SenderIdentity(c.sender), c.s.ledger, store.Delivery{SenderID: c.sender.ID, Digest: c.signed.digest(body)}, until, false}
	return d, d.ledger.begin(d.key, now, c.sender)
}

// Done says that the app has taken it: it is refused from now on.
func (d *Delivery) Done() {
	if !d.isDone {
		d.isDone = true
		d.ledger.done(d.key, d.until)
	}
}

// Release says that it is at the app no more.
func (d *Delivery) Release() {
	if !d.isDone {
		d.ledger.release(d.key)
	}
}

// ledger knows what was delivered, and what is under way.
type ledger struct {
	s *Senders

	mu       sync.Mutex
	underWay map[store.Delivery]state // guarded by mu
	kept     map[string]*count        // by id of a sender; guarded by mu
}

type state int

const (
	atApp  state = iota
	isDone       // and on the disk, or it could not be kept there and is never released
)

// count is of the deliveries of one sender.
type count struct {
	kept, underWay int  // guarded by ledger.mu
	during         int  // kept since a sweep began; guarded by ledger.mu
	warned         bool // the owner was told that it is full; guarded by ledger.mu

	sweeping sync.Mutex // held while the disk forgets what is over
	swept    time.Time  // last, because it was full; guarded by sweeping
}

func newLedger(s *Senders, all []store.Sender) (*ledger, error) {
	l := &ledger{s: s, underWay: map[store.Delivery]state{}, kept: map[string]*count{}}
	for _, one := range all {
		left, err := s.cfg.Store.ForgetDeliveries(one.ID, s.cfg.Access.ControlTime())
		if err != nil {
			return nil, err
		}
		l.kept[one.ID] = &count{kept: left}
	}
	return l, nil
}

// begin puts a delivery under way, unless it is, or was done. No other sender waits for the
// disk meanwhile.
func (l *ledger) begin(key store.Delivery, now time.Time, sender store.Sender) error {
	if err := l.claim(key); err != nil {
		return err
	}
	until, known, err := l.s.cfg.Store.Delivered(key) // after the claim: of two at a time one finds the other
	switch {
	case err != nil:
		l.s.cfg.Log.Error("whether something was delivered could not be looked up", "err", err)
		err = ErrUnknown
	case known && now.Before(until):
		err = ErrDone
	case !l.hasRoom(now, sender):
		err = ErrFull
	}
	if err != nil {
		l.release(key)
	}
	return err
}

// claim has a delivery be under way unless it is.
func (l *ledger) claim(key store.Delivery) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, is := l.underWay[key]; is {
		if was == isDone {
			return ErrDone
		}
		return ErrUnderWay
	}
	c := l.kept[key.SenderID]
	if c == nil {
		c = new(count)
		l.kept[key.SenderID] = c
	}
	c.underWay++
	l.underWay[key] = atApp
	return nil
}

// hasRoom says whether a sender has room for what is under way, and has the owner told where
// it has none.
func (l *ledger) hasRoom(now time.Time, sender store.Sender) bool {
	c, full := l.counted(sender.ID)
	if !full {
		return true
	}
	c.sweeping.Lock()
	l.makeRoom(c, now, sender.ID)
	c.sweeping.Unlock()
	l.mu.Lock()
	full = c.kept+c.underWay > MostKept
	tell := full && !c.warned
	c.warned = full
	l.mu.Unlock()
	if tell {
		l.s.tellFull(sender)
	}
	return !full
}

func (l *ledger) counted(id string) (c *count, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c = l.kept[id]
	return c, c != nil && c.kept+c.underWay > MostKept // without one it was revoked meanwhile
}

// makeRoom forgets what is over. c.sweeping is held.
func (l *ledger) makeRoom(c *count, now time.Time, id string) {
	if now.Sub(c.swept).Abs() < sweepEvery {
		return
	}
	c.swept = now
	l.mu.Lock()
	c.during = 0
	l.mu.Unlock()
	left, err := l.s.cfg.Store.ForgetDeliveries(id, now)
	if err != nil {
		l.s.cfg.Log.Error("old deliveries could not be forgotten", "err", err)
		return
	}
	l.mu.Lock()
	c.kept = left + c.during // those counted twice are not by the next sweep
	l.mu.Unlock()
}

// tellFull has the owner told that a sender is kept out.
func (s *Senders) tellFull(sender store.Sender) {
	app, here := s.cfg.Apps.ByID(sender.AppID)
	if !here {
		return
	}
	s.cfg.Note(agentapi.Notice{At: s.cfg.Now().UTC(), Kind: agentapi.NoticeSenderFull}, words.Text{
		words.Of("%[1]s is kept out of %[2]s for now: it delivered %[3]s things that have to be told from repetitions.", sender.Name, app.Label, fmt.Sprint(MostKept)),
	})
}

// done keeps that something was delivered. Where the disk does not take it, it stays under
// way, so that it is refused all the same.
func (l *ledger) done(key store.Delivery, until time.Time) {
	err := l.s.cfg.Store.PutDeliveries([]store.Delivery{key}, until)
	if err != nil {
		l.s.cfg.Log.Error("that something was delivered could not be kept for a restart", "err", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c, is := l.kept[key.SenderID], l.underWay
	if c == nil { // the sender was revoked meanwhile
		delete(is, key)
		return
	}
	if err != nil {
		is[key] = isDone
		return
	}
	c.underWay--
	c.kept++
	c.during++
	delete(is, key)
}

// release ends what was not done.
func (l *ledger) release(key store.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.kept[key.SenderID]; c != nil {
		c.underWay--
	}
	delete(l.underWay, key)
}

// forget forgets a sender.
func (l *ledger) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, id)
}
