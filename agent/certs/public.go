package certs

import (
	"path"
	"time"

	"github.com/caddyserver/certmagic"
)

// PublicSince is since when a name has had a certificate from an authority that browsers
// everywhere trust, as far as this directory knows; false for one that has none, and for
// each of an authority that the owner named: it may be one of their own.
func (a *ACME) PublicSince(name string) (since time.Time, is bool) {
	name = normal(name)
	w := a.common(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if since, is = a.since[name]; !is && w != nil {
		since, is = a.since[wildcardName(w.root)]
	}
	return since, is
}

// public says whether the certificates are of an authority that browsers trust.
func (a *ACME) public() bool {
	return a.cfg.Directory == "" || a.cfg.Directory == certmagic.LetsEncryptProductionCA
}

// firstHad is when a name first had a public certificate, which the directory remembers
// across renewals: now, where it does not.
func (a *ACME) firstHad(name string) time.Time {
	now := a.cfg.Now()
	key := path.Join("since", certmagic.StorageKeys.Safe(name))
	raw, err := a.magic.Storage.Load(a.life, key)
	if err == nil {
		if since, err := time.Parse(time.RFC3339, string(raw)); err == nil && !since.After(now) {
			return since
		}
	}
	if err := a.magic.Storage.Store(a.life, key, []byte(now.UTC().Format(time.RFC3339))); err != nil {
		a.cfg.Log.Warn("since when a name has a certificate could not be kept", "name", name, "err", err)
	}
	return now
}
