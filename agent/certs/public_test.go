package certs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

// TestPublicSince: a name has a publicly trusted certificate since its first one, over
// renewals and restarts; none has one that was refused one, that is not served, or
// whose authority the owner named.
func TestPublicSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, day = "notes.maya.test", 24 * time.Hour
		dir, authority, began := t.TempDir(), newInMemory(t, 90*day), time.Now()
		run := func(directory string) (a *ACME, stop func()) {
			a = NewACME(ACMEConfig{Dir: dir, Directory: directory, Allowed: func(asked string) bool { return asked != "other.maya.test" }})
			a.issuer = authority
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- a.Run(ctx, func() []string { return []string{name} }, nil) }()
			synctest.Wait()
			return a, func() { cancel(); <-ended }
		}
		a, stop := run("")
		if since, is := a.PublicSince("Notes.Maya.Test."); !is || !since.Equal(began) {
			t.Errorf("at first: %v, %v", since, is)
		}
		authority.away.Store(true)
		if err := shake(t, a, "wiki.maya.test"); err == nil {
			t.Error("a certificate although the authority is away")
		}
		authority.away.Store(false)
		for _, none := range []string{"wiki.maya.test", "other.maya.test", ""} {
			if _, is := a.PublicSince(none); is {
				t.Errorf("%q has one", none)
			}
		}
		time.Sleep(100 * day) // it was renewed
		stop()
		for directory, want := range map[string]bool{
			"": true, certmagic.LetsEncryptProductionCA: true,
			certmagic.LetsEncryptStagingCA: false, "https://ca.home.arpa/acme/acme/directory": false,
		} {
			a, stop := run(directory)
			since, is := a.PublicSince(name)
			if is != want || is && !since.Equal(began.Truncate(time.Second)) {
				t.Errorf("after a restart, at %q: %v, %v", directory, since, is)
			}
			stop()
		}
		// What another authority gave before does not count.
		dir = t.TempDir()
		_, stop = run(certmagic.LetsEncryptStagingCA)
		time.Sleep(40 * day)
		stop()
		a, stop = run("")
		if since, is := a.PublicSince(name); !is || time.Since(since) > time.Minute {
			t.Errorf("after another authority: %v, %v", since, is)
		}
		stop()
	})
}
