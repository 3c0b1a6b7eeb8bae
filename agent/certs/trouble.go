package certs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/internal/words"
)

// What an ACME remembers of certificates it could not have, for how long it lets
// a name rest, and what it tells the owner of that.

// refusal is a name whose certificate could not be had.
type refusal struct {
	err   error
	rest  time.Duration
	again time.Time
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

// forget drops what is known of names nobody wants any more. Their certificates
// stay in the directory and are renewed no longer: the authority would be refused
// at the handshake, and counts such failures.
func (a *ACME) forget(wanted []string) {
	over := func(name string) bool { return !slices.Contains(wanted, name) && !a.cfg.Allowed(name) }
	var gone []certmagic.SubjectIssuer
	a.mu.Lock()
	for name := range a.managed {
		if over(name) {
			delete(a.managed, name)
			delete(a.unrenewed, name)
			delete(a.since, name)
			gone = append(gone, certmagic.SubjectIssuer{Subject: name})
		}
	}
	maps.DeleteFunc(a.refused, func(name string, _ refusal) bool { return over(name) })
	a.mu.Unlock()
	a.cache.RemoveManaged(gone)
}

// Trouble is a sentence about a name that has no certificate, or will soon have
// none; or empty.
func (a *ACME) Trouble() words.Sentence {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(a.refused) > 0:
		return a.problem(first(a.refused))
	case len(a.unrenewed) > 0:
		return a.problem(first(a.unrenewed))
	}
	return words.Sentence{}
}

// problem is a sentence about the certificate of name, or empty. mu is held.
func (a *ACME) problem(name string) words.Sentence {
	if _, refused := a.refused[name]; refused {
		return words.Of("No certificate could be had for %s, so browsers cannot open it. Porchlight keeps trying.", name)
	}
	ends, failing := a.unrenewed[name]
	if !failing {
		return words.Sentence{}
	}
	if a.cfg.Now().Before(ends) {
		return words.Of("The certificate of %[1]s cannot be renewed, and browsers cannot open it after %[2]s. Porchlight keeps trying.", name, words.Day{Day: ends})
	}
	return words.Of("The certificate of %s has ended and cannot be renewed, so browsers cannot open it. Porchlight keeps trying.", name)
}

// first is the least name of a map that is not empty.
func first[V any](of map[string]V) string { return slices.Min(slices.Collect(maps.Keys(of))) }

// noteEvent says what the library does by itself, which is renewing.
func (a *ACME) noteEvent(_ context.Context, event string, data map[string]any) error {
	name, _ := data["identifier"].(string)
	renewal, _ := data["renewal"].(bool)
	switch {
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
		a.noteEnd(name)
	}
	return nil
}

// noteEnd has the owner told of a certificate that could not be renewed, once
// less than a sixth of its life is left: renewing begins at a third, and an
// authority that is away for a while is nothing to worry about.
func (a *ACME) noteEnd(name string) {
	for _, cert := range a.cache.AllMatchingCertificates(name) {
		ends := cert.Leaf.NotAfter
		if ends.Sub(a.cfg.Now()) < ends.Sub(cert.Leaf.NotBefore)/6 {
			a.mu.Lock()
			a.unrenewed[name] = ends
			a.mu.Unlock()
			a.cfg.OnTrouble()
		}
	}
}
