// Package senders lets programs of others in that sign what they send: the owner names one
// for a path of an app, with the secret that both know. In comes a request's head, and then
// its body; out goes whose it is, once its signature, its time and that it was not delivered
// before are known to be right, or why not. An app gets nothing of it until then.
//
// It keeps what was delivered, so that nothing is twice. Whether a sender may come in now,
// access decides as for everybody.
package senders

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/internal/broadcast"
	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

// Most is how many senders a computer has.
const Most = 64

// Config of New. Fields without a remark are required.
type Config struct {
	Store    *store.Store
	Access   *access.Access
	Activity *activity.Log
	// Apps finds apps that were approved.
	Apps Apps
	// Note has the owner told of something; its error is logged already.
	Note    func(agentapi.Notice, words.Text) error
	Changes *broadcast.Signal // raised when List may answer something else; nil when nobody follows
	Now     func() time.Time  // time.Now when nil
	Log     *slog.Logger      // discarded when nil
}

// Apps is what is known of apps; *engine.Apps is one.
type Apps interface {
	Lookup(name string) (engine.App, bool)
	ByLabel(label string) (engine.App, bool)
	ByID(id string) (engine.App, bool)
}

// Senders is safe for concurrent use.
type Senders struct {
	cfg    Config
	ledger *ledger

	mu      sync.Mutex // held while senders change
	all     []store.Sender
	revoked map[string]store.Sender // by id: those that the disk has still to forget
}

// New reads who was named, and has access decide by that.
func New(c Config) (*Senders, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	all, err := c.Store.Senders()
	if err != nil {
		return nil, fmt.Errorf("read the senders: %w", err)
	}
	s := &Senders{cfg: c, all: all, revoked: map[string]store.Sender{}}
	if s.ledger, err = newLedger(s, all); err != nil {
		return nil, err
	}
	c.Access.SetSenders(slices.Clone(all))
	return s, nil
}

// List carries out GET /owner/senders: those whose app there is, by app and name.
func (s *Senders) List(context.Context) ([]agentapi.Sender, error) {
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	out := []agentapi.Sender{}
	for _, one := range all {
		if app, here := s.cfg.Apps.ByID(one.AppID); here {
			out = append(out, s.shown(one, app))
		}
	}
	slices.SortFunc(out, func(a, b agentapi.Sender) int {
		return cmp.Or(cmp.Compare(a.AppName, b.AppName), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

func (s *Senders) shown(one store.Sender, app engine.App) agentapi.Sender {
	return agentapi.Sender{
		ID: one.ID, Name: one.Name, App: app.Label, AppName: app.Name, URL: s.url(one, app), Path: one.Target,
		Kind: one.Kind, Header: one.Header, Secrets: len(one.Secrets), Until: one.Until, CreatedAt: one.CreatedAt,
	}
}

// url is where a sender posts to; empty while the computer has no address.
func (s *Senders) url(one store.Sender, app engine.App) string {
	host := s.cfg.Access.Snapshot().Computer.Host
	if host == "" {
		return ""
	}
	return "https://" + app.Name + "." + host + one.Target
}

// Add carries out POST /owner/senders.
func (s *Senders) Add(_ context.Context, req agentapi.SenderRequest) (agentapi.MadeSender, error) {
	app, ok := s.cfg.Apps.Lookup(req.App)
	if !ok || app.ID == "" {
		if app, ok = s.cfg.Apps.ByLabel(req.App); !ok {
			return agentapi.MadeSender{}, agentapi.NoAppCalled(req.App)
		}
	}
	if app.TCP {
		return agentapi.MadeSender{}, agentapi.NotOverTCP(app.Label)
	}
	one, err := s.checked(req)
	if err != nil {
		return agentapi.MadeSender{}, err
	}
	one.AppID = app.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, gone := s.split(func(other store.Sender) bool { _, here := s.cfg.Apps.ByID(other.AppID); return here })
	if err := makesRoom(kept, one); err != nil {
		return agentapi.MadeSender{}, err
	}
	if err := alone(kept, one.Secrets[0]); err != nil {
		return agentapi.MadeSender{}, err
	}
	if err := s.cfg.Store.PutSender(one, slices.AppendSeq(gone, maps.Keys(s.revoked))...); err != nil {
		return agentapi.MadeSender{}, s.notKept(err)
	}
	clear(s.revoked)
	s.set(append(kept, one))
	s.happened(agentapi.ActivitySenderAdded, one, app, 0)
	return agentapi.MadeSender{ID: one.ID, URL: s.url(one, app)}, nil
}

// checked is a new sender as it is asked for; its app is still to be filled in.
func (s *Senders) checked(req agentapi.SenderRequest) (one store.Sender, err error) {
	now := s.cfg.Now()
	one = store.Sender{ID: "sender-" + strings.ToLower(rand.Text()), Target: req.Path, CreatedAt: now.UTC().Truncate(time.Second)}
	if one.Name, err = oneline.Name(req.Name); err != nil {
		return one, agentapi.Errorf(agentapi.CodeInvalid, "%s", err)
	}
	if one.Name == "" {
		return one, agentapi.Errorf(agentapi.CodeInvalid, "A sender needs a name, by which you are told of it.")
	}
	if err := checkTarget(req.Path); err != nil {
		return one, err
	}
	if one.Kind, one.Header, err = checkKind(req.Kind, req.Header); err != nil {
		return one, err
	}
	key, err := checkSecret(one.Kind, req.Secret)
	if err != nil {
		return one, err
	}
	one.Secrets = [][]byte{key}
	clock := s.cfg.Access.ControlTime()
	until, err := agentapi.CheckedUntil(req.Until, clock.Local())
	if err == nil && until != "" && until != agentapi.UntilNever {
		if one.Until, err = time.Parse(time.RFC3339, until); err == nil && !clock.Before(one.Until) {
			err = agentapi.Errorf(agentapi.CodeInvalid, "That end is over already.")
		}
	}
	return one, err
}

// makesRoom refuses one more than there may be, and a second for a target.
func makesRoom(all []store.Sender, one store.Sender) error {
	if len(all) >= Most {
		return agentapi.Errorf(agentapi.CodeConflict, "There are %d senders, which is as many as there can be. Revoke one first.", Most)
	}
	for _, other := range all {
		if other.AppID == one.AppID && other.Target == one.Target {
			return agentapi.Errorf(agentapi.CodeConflict, "%s posts there already. Choose another path, or add a query to it, like ?from=2.", other.Name)
		}
	}
	return nil
}

// alone refuses a secret that another sender has: most kinds sign no path, so that what is
// signed for one would be right for the other. Keys are the same that sign alike.
func alone(others []store.Sender, key []byte) error {
	same := 0
	mine := signedBy(key, nil, nil)
	for _, other := range others {
		for _, theirs := range other.Secrets {
			same |= subtle.ConstantTimeCompare(mine, signedBy(theirs, nil, nil))
		}
	}
	if same != 0 {
		return agentapi.Errorf(agentapi.CodeConflict, "Another sender has this secret, so either could come in as the other. Give each its own.")
	}
	return nil
}

// ChangeSecret carries out POST /owner/senders/{id}/secret.
func (s *Senders) ChangeSecret(_ context.Context, id string, req agentapi.SenderSecret) (agentapi.Sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, one, app, err := s.find(id)
	if err != nil {
		return agentapi.Sender{}, err
	}
	secrets := one.Secrets[:1:1]
	switch {
	case req.Secret == "" && !req.Alone:
		return agentapi.Sender{}, agentapi.Errorf(agentapi.CodeInvalid, "The field %q is missing.", "secret")
	case req.Secret != "":
		key, err := checkSecret(one.Kind, req.Secret)
		if err == nil {
			err = alone(rest, key)
		}
		if err != nil {
			return agentapi.Sender{}, err
		}
		secrets = append([][]byte{key}, secrets...)
		if req.Alone {
			secrets = secrets[:1]
		}
	}
	one.Secrets = secrets
	if req.Alone { // what is taken away ends first
		s.set(append(rest, one))
	}
	if err := s.cfg.Store.PutSender(one); err != nil {
		return agentapi.Sender{}, s.notKept(err)
	}
	s.set(append(rest, one))
	s.happened(agentapi.ActivitySenderChanged, one, app, 0)
	return s.shown(one, app), nil
}

// Revoke carries out POST /owner/senders/{id}/revoke. What it has open is closed first, while
// another change may be at the disk.
func (s *Senders) Revoke(_ context.Context, id string) (agentapi.Closed, error) {
	began := time.Now()
	closed := s.cfg.Access.EndSender(id)
	took := int(time.Since(began).Milliseconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, one, app, err := s.find(id)
	again, is := s.revoked[id]
	switch {
	case is:
		one = again
		app, _ = s.cfg.Apps.ByID(one.AppID)
	case err != nil:
		return agentapi.Closed{}, err
	default:
		closed += s.set(rest)
	}
	if err := s.cfg.Store.ForgetSender(id); err != nil {
		s.revoked[id] = one
		s.cfg.Log.Error("a sender is revoked, but not over a restart", "err", err)
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeInternal,
			"It is revoked, but Porchlight could not write that to its data directory, so it would come in again after a restart. Is the disk full?")
	}
	delete(s.revoked, id)
	s.ledger.forget(id)
	s.happened(agentapi.ActivitySenderRevoked, one, app, closed)
	return agentapi.Closed{OK: true, Closed: closed, Milliseconds: took}, nil
}

// find is a sender, its app, and all others. mu is held.
func (s *Senders) find(id string) (rest []store.Sender, one store.Sender, app engine.App, err error) {
	i := slices.IndexFunc(s.all, func(other store.Sender) bool { return other.ID == id })
	if i >= 0 {
		app, _ = s.cfg.Apps.ByID(s.all[i].AppID)
	}
	if app.ID == "" {
		return nil, one, app, agentapi.Errorf(agentapi.CodeNotFound, "There is no such sender. It may have been revoked already.")
	}
	return slices.Delete(slices.Clone(s.all), i, i+1), s.all[i], app, nil
}

// split parts those to keep from the ids of all others. mu is held.
func (s *Senders) split(keep func(store.Sender) bool) (kept []store.Sender, gone []string) {
	for _, one := range s.all {
		if keep(one) {
			kept = append(kept, one)
		} else {
			gone = append(gone, one.ID)
		}
	}
	return kept, gone
}

// set has these be all. mu is held.
func (s *Senders) set(all []store.Sender) (closed int) {
	s.all = all
	closed = s.cfg.Access.SetSenders(slices.Clone(all))
	s.cfg.Changes.Raise()
	return closed
}

func (s *Senders) notKept(err error) error {
	s.cfg.Log.Error("a sender could not be kept", "err", err)
	return agentapi.Errorf(agentapi.CodeInternal, "Porchlight could not write to its data directory. Is the disk full?")
}

// happened writes down what the owner did with a sender.
func (s *Senders) happened(kind string, one store.Sender, app engine.App, closed int) {
	s.cfg.Activity.Add(agentapi.Activity{
		At: s.cfg.Now().UTC(), Kind: kind, Owner: true, What: one.Name, App: app.Label, Name: app.Name, Closed: closed,
	})
}
