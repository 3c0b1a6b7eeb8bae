package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

// What an ACME remembers of certificates it could not have, for how long it lets
// a name rest, and what it tells the owner of that.

// refusal is a name whose certificate could not be had.
type refusal struct {
	quiet bool // the certificate that it was to follow is good still
	err   error
	rest  time.Duration
	again time.Time
}

// renewal is one that failed: of a certificate that ends then.
type renewal struct {
	ends time.Time
	err  error
}

// Again has names tried whose certificate could not be had, because the owner wants to
// know now: those that were not tried within the last minute, and are not counted
// against by their authority.
func (a *ACME) Again() {
	a.mu.Lock()
	for name, r := range a.refused {
		if soon := r.again.Add(firstRest - r.rest); soon.Before(r.again) && !limited(r.err) {
			r.again = soon
			a.refused[name] = r
		}
	}
	a.mu.Unlock()
	broadcast.Raise(a.sooner)
}

// note keeps how a try ended.
func (a *ACME) note(name string, err error) {
	var since time.Time
	if err == nil && a.public() {
		since = a.firstHad(name)
	}
	a.mu.Lock()
	r, before := a.refused[name]
	// Also where it was refused: one that has to be renewed may be at hand.
	a.managed[name] = struct{}{}
	if err == nil {
		delete(a.refused, name)
		if a.public() {
			a.since[name] = since
		}
	} else {
		r.rest = min(max(2*r.rest, firstRest), lastRest)
		r.err, r.again = err, a.cfg.Now().Add(r.rest)
		a.refused[name] = r
	}
	a.mu.Unlock()
	if err != nil {
		a.cfg.Log.Warn("no certificate could be had", "name", name, "err", err, "again_in", r.rest)
	} else {
		a.cfg.Log.Info("a certificate is at hand", "name", name)
		a.cfg.OnMade()
	}
	if before || err != nil {
		a.cfg.OnTrouble()
	}
}

func (a *ACME) resting(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r, ok := a.refused[name]; ok && a.cfg.Now().Before(r.again) {
		return fmt.Errorf("no certificate of %s could be had a moment ago: %w", name, r.err)
	}
	return nil
}

func (a *ACME) restOf(name string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.refused[name].again.Sub(a.cfg.Now()), time.Second)
}

// forget drops what is known of names nobody wants any more, or that the certificate of all
// names serves. Their certificates
// stay in the directory and are renewed no longer: the authority would be refused
// at the handshake, and counts such failures.
func (a *ACME) forget(wanted []string) {
	common := wildcardName(a.offeredRoot())
	unwanted := func(name string) bool {
		return name != common && (!slices.Contains(wanted, name) && !a.cfg.Allowed(name) || a.spared(name))
	}
	var gone []certmagic.SubjectIssuer
	a.mu.Lock()
	for name := range a.managed {
		if unwanted(name) {
			delete(a.managed, name)
			delete(a.unrenewed, name)
			if a.common(name) == nil {
				delete(a.since, name)
			}
			gone = append(gone, certmagic.SubjectIssuer{Subject: name})
		}
	}
	maps.DeleteFunc(a.refused, func(name string, _ refusal) bool { return unwanted(name) })
	a.mu.Unlock()
	a.cache.RemoveManaged(gone)
}

// Trouble is a sentence about names that have no certificate, or about one that will
// soon have none; or empty.
func (a *ACME) Trouble() words.Sentence {
	a.mu.Lock()
	defer a.mu.Unlock()
	refused := maps.Clone(a.refused)
	maps.DeleteFunc(refused, func(_ string, r refusal) bool { return r.quiet })
	if len(refused) == 0 {
		if len(a.unrenewed) == 0 {
			return words.Sentence{}
		}
		return a.problem(first(a.unrenewed))
	}
	worst := first(refused)
	why := a.cause(worst, refused[worst].err)
	if _, common := rootOf(worst); common {
		return a.problem(worst)
	}
	var alike []string
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if a.cause(name, refused[name].err).Key == why.Key {
			alike = append(alike, name)
		}
	}
	return without(alike, why, refused[worst].again)
}

// problem is a sentence about the certificate of name, or empty. mu is held.
func (a *ACME) problem(name string) words.Sentence {
	r, refused := a.refused[name]
	root, common := rootOf(name)
	switch {
	case refused && !r.quiet && common:
		return words.Of("The one certificate for all names of %[1]s could not be had. %[2]s Apps with a certificate of their own keep it, others cannot be opened. Porchlight tries again at %[3]s.", root, a.cause(name, r.err), r.again.Local().Format("15:04"))
	case refused && !r.quiet:
		return without([]string{name}, a.cause(name, r.err), r.again)
	}
	old, failing := a.unrenewed[name]
	if !failing {
		return words.Sentence{}
	}
	why := a.cause(name, old.err)
	if a.cfg.Now().Before(old.ends) {
		return words.Of("The certificate of %[1]s cannot be renewed, and browsers cannot open it after %[2]s. %[3]s Porchlight keeps trying.", name, words.Day{Day: old.ends}, why)
	}
	return words.Of("The certificate of %[1]s has ended and cannot be renewed, so browsers cannot open it. %[2]s Porchlight keeps trying.", name, why)
}

// without says that names have no certificate, why, and when the first is tried again.
func without(names []string, why words.Sentence, again time.Time) words.Sentence {
	return words.Of("Browsers cannot open %[1]s: no certificate. %[2]s Porchlight tries again at %[3]s.", words.ListOf(names, 3), why, again.Local().Format("15:04"))
}

// first is the least name of a map that is not empty.
func first[V any](of map[string]V) string { return slices.Min(slices.Collect(maps.Keys(of))) }

// noteEvent says what the library does by itself, which is renewing.
func (a *ACME) noteEvent(ctx context.Context, event string, data map[string]any) error {
	name, _ := data["identifier"].(string)
	renewal, _ := data["renewal"].(bool)
	switch {
	case event == "cert_obtaining":
		if a.cfg.Before != nil {
			return a.cfg.Before(ctx, name)
		}
	case event == "cert_obtained":
		a.mu.Lock()
		before := len(a.refused) + len(a.unrenewed)
		delete(a.refused, name)
		delete(a.unrenewed, name)
		cleared := len(a.refused)+len(a.unrenewed) < before
		a.mu.Unlock()
		if renewal {
			a.cfg.Log.Info("a certificate was renewed", "name", name)
		}
		if cleared {
			a.cfg.OnTrouble()
		}
	case event == "cert_failed" && renewal:
		err, _ := data["error"].(error)
		a.cfg.Log.Warn("a certificate could not be renewed; the old one still serves", "name", name, "err", err)
		a.noteEnd(name, err)
	}
	return nil
}

// noteEnd has the owner told of a certificate that could not be renewed, once
// less than a sixth of its life is left: renewing begins at a third, and an
// authority that is away for a while is nothing to worry about.
func (a *ACME) noteEnd(name string, err error) {
	for _, cert := range a.cache.AllMatchingCertificates(name) {
		if a.late(cert.Leaf) {
			a.mu.Lock()
			a.unrenewed[name] = renewal{cert.Leaf.NotAfter, err}
			a.mu.Unlock()
			a.cfg.OnTrouble()
		}
	}
}

// late says whether less than a sixth of a certificate's life is left.
func (a *ACME) late(leaf *x509.Certificate) bool {
	return leaf.NotAfter.Sub(a.cfg.Now()) < leaf.NotAfter.Sub(leaf.NotBefore)/6
}

// Ends is when the first certificate ends that could not be renewed and that the owner is
// told of for it; zero for none. OnTrouble is called when it may be another.
func (a *ACME) Ends() (first time.Time) {
	select {
	case <-a.ready:
	default:
		return first
	}
	a.mu.Lock()
	// Of those that were refused there may be one from before a start.
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.unrenewed)), maps.Keys(a.refused))
	a.mu.Unlock()
	for _, name := range names {
		var last *x509.Certificate
		if root, common := rootOf(name); common {
			if w := a.wild.Load(); w != nil && w.root == root {
				last = w.cert.Leaf
			}
		}
		for _, cert := range a.cache.AllMatchingCertificates(name) {
			if last == nil || cert.Leaf.NotAfter.After(last.NotAfter) {
				last = cert.Leaf
			}
		}
		if last != nil && a.late(last) && (first.IsZero() || last.NotAfter.Before(first)) {
			first = last.NotAfter
		}
	}
	return first
}
