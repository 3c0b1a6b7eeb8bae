package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/provider"
)

// Config of a Service. Store, Naming and Mail are required.
type Config struct {
	Store kv.Store
	Naming
	// Mail takes the mails this service writes, within the transaction that
	// caused them, and delivers them when Run is called.
	Mail mail.Queue
	// Relays are handed to every agent.
	Relays []controlapi.Relay
	// RelaysFor takes the place of Relays where it is given and answers with any:
	// the relays for the agent of one computer, of several nodes'. Feed.WakeAll is called
	// where it answers something else from now on.
	RelaysFor func(computerID string) []controlapi.Relay
	// OpenSignUp lets any address make an account by signing in. Without it an
	// address that has no account gets the same answer as one that has, and no
	// mail.
	OpenSignUp bool
	// MembersEnrol lets accounts that exist only because they were invited
	// connect computers of their own.
	MembersEnrol bool
	// OnCredentialEnded, if set, is called after a device credential has ended,
	// by this node or, on a shared store, by another: the tunnel it opened is to
	// end. It may be called from several goroutines, and once too often.
	OnCredentialEnded func(computerID string)
	// OnSuspended, if set, is called when the operator has suspended a computer, and since
	// when, or resumed it (the zero time): by this node or, on a shared store, by another,
	// and once too often. What goes there is to be cut off. It may be called from several
	// goroutines.
	OnSuspended func(computerID string, since time.Time)
	// Node is what this node is called in its rows, "" where there is one.
	Node string
	// Nodes and Limits say what an Overview shows of the service; nil for nothing.
	Nodes  func(ctx context.Context) ([]Node, error)
	Limits func() []Limit
	// CertificateOf is what a computer shows a visitor to its root host; nil where none answers.
	CertificateOf func(ctx context.Context, host string) *Certificate
	// Audit takes what is to be kept of the security of accounts; nil for nothing.
	Audit *audit.Log
	// AbuseContact is whom people ask about what the operator has ended, a mail address or
	// an https:// address; "" for the auth host.
	AbuseContact string
	// Held says whether a node has the tunnel of a root host, and whether that is sure; nil
	// for nobody knows. It is asked on a shared store.
	Held func(ctx context.Context, host string) (held, sure bool)
	// UpdateNotice is where agents are told that a newer version is there; nil for
	// nowhere.
	UpdateNotice *controlapi.UpdateNotice
	// Tell, if set, tells the other nodes, for their Agents.Heard, that computers changed
	// or a mail was put. Missed says whether what others told may have been missed since
	// it was last asked. Neither may block.
	Tell   func(computers []string)
	Missed func() bool
	// SharedStore says that other nodes write to the same store, so that waiting
	// syncs have to look for their changes, and other nodes for those of this
	// process where it has no Tell: it leaves word of each in one row.
	SharedStore bool
	// Providers are the OpenID providers people can sign in with; none is fine.
	Providers []*provider.Provider
	// Fetch asks for what a client says of itself at its id, see clientdoc.Fetcher, which it
	// is unless given.
	Fetch func(ctx context.Context, address string) (body []byte, fresh time.Duration, err error)
	// Resolvers are asked for the records of own domains, host:port; with fewer than two of
	// them there are none.
	Resolvers []string
	// Challenges says that this service's DNS publishes what Challenges.Of answers, or that
	// PublishDNS, if set, does: it has a name have these values TXT and no others.
	Challenges bool
	PublishDNS func(ctx context.Context, name string, values []string) error
	Now        func() time.Time
	Log        *slog.Logger
}

// core is what the parts share: the store, and what this process remembers.
type core struct {
	cfg     Config
	store   kv.Store
	now     func() time.Time
	log     *slog.Logger
	keyRing atomic.Pointer[keyRing]
	line    atomic.Pointer[string] // see keyLine; follows the row while this runs
	// Feed tells the agents of computers what concerns them.
	Feed *feed.Feed
	// endedHere are the endings of credentials this node told of itself, on a
	// shared store: endedEvent, true.
	endedHere sync.Map
	pace      *pace         // what one node remembers of the budgets
	endsWake  chan struct{} // there is an end to look at
	endedWake chan struct{} // another node may have ended a credential
}

// Now is the time that everything here goes by.
func (s *core) Now() time.Time { return s.now() }

// computer as agents know it.
func (s *core) computer(c computer) controlapi.Computer {
	host := s.cfg.withPort(c.Name + "." + s.cfg.Domain)
	return controlapi.Computer{ID: c.ID, Name: c.Name, Host: host, URL: "https://" + host, Former: c.Former, AppGrants: c.AppGrants, Suspended: c.Suspended}
}

func (s *core) credentialEnded(computerID string) {
	if s.cfg.OnCredentialEnded != nil {
		s.cfg.OnCredentialEnded(computerID)
	}
}

// refuse makes an error a person may read.
func refuse(code, sentence string) error {
	return &controlapi.Error{Code: code, Message: sentence}
}

// IsRefusal says whether err is a refusal with the given code of controlapi.
func IsRefusal(err error, code string) bool {
	var e *controlapi.Error
	return errors.As(err, &e) && e.Code == code
}

// busySentence is for whoever the store has no room for.
const busySentence = "The service has more to do than it can just now. Nothing was changed. Try again in a moment."

// awayFor is when to ask again after the answer that the store is away.
const awayFor = 5 * time.Second

// Away says whether err is of a store that passes: it does not answer, has no room, too many
// wait for it, or it is being closed. The refusal tells a person so.
func Away(err error) (refusal *controlapi.Error, away bool) {
	if busy, ok := errors.AsType[*kv.BusyError](err); ok {
		return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: busySentence, RetryAfter: busy.RetryAfter}, true
	}
	sentence := "The service cannot get at its data just now. Nothing was changed. Try again in a moment."
	switch {
	case errors.Is(err, kv.ErrFull):
		sentence = "The service has no room to keep anything just now. Nothing was changed. Try again in a moment."
	case errors.Is(err, kv.ErrOutcomeUnknown):
		sentence = "The service lost its data store while it kept this. Look whether it was done before you try again."
	case !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrContended) && !errors.Is(err, kv.ErrClosed):
		return nil, false
	}
	return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: sentence, RetryAfter: awayFor}, true
}

// repeat calls do every so often until ctx ends.
func repeat(ctx context.Context, every time.Duration, do func(context.Context)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			do(ctx)
		}
	}
}
