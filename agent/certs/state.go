package certs

import (
	"crypto/x509"
	"time"

	"porchlight/internal/words"
)

// Reporter is a Source that can say how its certificates are.
type Reporter interface {
	Source
	// State is what the owner is told about the certificate of a name; false while
	// nothing is known about it.
	State(name string) (s State, known bool)
}

// State is how it stands with the certificate of one name, for the owner.
type State struct {
	NotAfter    time.Time // zero where there is no certificate
	RenewsAfter time.Time // when its successor is made, about; zero with NotAfter
	Common      bool      // it is one of all names of the computer
	// Problem is about a certificate that cannot be had, or will soon
	// have ended; or zero.
	Problem words.Sentence
}

// State of a name (see normal); false while nothing is known: no visitor came
// yet, and nobody was asked for a certificate.
func (k *Keeper) State(name string) (State, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.kept[normal(name)]
	if e == nil || !k.cfg.Now().Before(e.cert.Leaf.NotAfter) {
		return State{}, false // the next visitor has a new one made
	}
	return stateOf(e.cert.Leaf), true
}

// State of a name (see normal); false while nothing is known, because its
// certificate has not been asked for yet.
func (a *ACME) State(name string) (s State, known bool) {
	name = normal(name)
	select {
	case <-a.ready:
	default:
		return State{}, false
	}
	for _, cert := range a.cache.AllMatchingCertificates(name) {
		if cert.Leaf != nil && cert.Leaf.NotAfter.After(s.NotAfter) {
			s, known = stateOf(cert.Leaf), true
		}
	}
	common := a.serving(name)
	if common != nil {
		s, known = State{NotAfter: common.cert.Leaf.NotAfter, RenewsAfter: common.renew, Common: true}, true
	}
	root := a.offeredRoot()
	a.mu.Lock()
	if s.Problem = a.problem(name); s.Problem.IsZero() && covers(root, name) && (common != nil || !known) {
		s.Problem = a.problem(wildcardName(root))
	}
	a.mu.Unlock()
	if known && s.Problem.IsZero() && !a.cfg.Now().Before(s.NotAfter) {
		// The computer slept past the end, say, and the next look will renew it.
		s.Problem = words.Of("The certificate of %s has ended, so browsers cannot open it. Porchlight is having it renewed.", name)
	}
	return s, known || !s.Problem.IsZero()
}

func stateOf(leaf *x509.Certificate) State {
	return State{NotAfter: leaf.NotAfter, RenewsAfter: renewAt(leaf)}
}

// renewAt is when a third of a certificate's life is left.
func renewAt(leaf *x509.Certificate) time.Time {
	return leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 3)
}
