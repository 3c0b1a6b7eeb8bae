package certs

import (
	"context"
	"time"

	"github.com/caddyserver/certmagic"
)

// When the certificate of all names is renewed is for the authority to say, too (RFC 9773),
// as it is of each other one, which the library sees to: sooner than is planned here, never
// later. So one that is about to be revoked with many others is renewed before that.

const (
	askIn = 20 * time.Second
	// askAgain is when an authority is asked again that does not say; what it says is kept
	// within askSoonest and askLatest (section 4.3.3).
	askAgain   = 6 * time.Hour
	askSoonest = time.Minute
	askLatest  = 24 * time.Hour
	// mostRenewals bounds how many certificates an authority has ordered in the life of one.
	mostRenewals = 90
)

// askWhenToRenew asks about the certificate of all names, if it is time to.
func (a *ACME) askWhenToRenew(ctx context.Context) {
	w := a.wild.Load()
	now := a.cfg.Now()
	if w == nil || w.root != normal(a.cfg.ByDNS.Root()) || now.Before(w.ask) {
		return
	}
	next := *w
	next.ask = now.Add(askAgain)
	if authority, ok := a.byDNS.(certmagic.RenewalInfoGetter); ok {
		ctx, cancel := context.WithTimeout(ctx, askIn)
		defer cancel()
		said, err := authority.GetRenewalInfo(ctx, certmagic.Certificate{Certificate: *w.cert})
		if err != nil {
			a.cfg.Log.Debug("the authority does not say when a certificate is to be renewed", "name", wildcardName(w.root), "err", err)
		} else {
			next.renew = w.soonerBy(said.SelectedTime)
			if said.RetryAfter != nil {
				next.ask = now.Add(min(max(said.RetryAfter.Sub(now), askSoonest), askLatest))
			}
		}
	}
	a.wild.CompareAndSwap(w, &next) // unless another one is there meanwhile
}

// soonerBy is when a certificate is renewed whose authority suggests a time.
func (w *wildcard) soonerBy(suggested time.Time) time.Time {
	leaf := w.cert.Leaf
	if first := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / mostRenewals); suggested.Before(first) {
		suggested = first
	}
	if planned := renewAt(leaf); planned.Before(suggested) {
		return planned
	}
	return suggested
}
