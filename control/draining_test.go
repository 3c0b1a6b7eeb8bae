package control

import (
	"context"
	"sync"
	"testing"

	"porchlight/control/controlapi"
)

// Weakness: a sign-in that is answered while the service ends could lose its
// mail: nobody is left who writes it.
// Checked: every sign-in answered with "look into your mail" has its mail, and
// every other one is told to try again.
func TestNoSignInIsLostWhenTheServiceEnds(t *testing.T) {
	t.Parallel()
	for range 20 {
		b := newBench(t, func(c *Config) { c.OpenSignUp = true })
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()

		var mu sync.Mutex
		answered, refused := 0, 0 // guarded by mu
		var wg sync.WaitGroup
		for n := range 60 {
			wg.Go(func() {
				if n == 30 {
					cancel()
				}
				_, err := b.SignIn.Begin(t.Context(), newID()+"@example.com", Browser{Client: network(n)}, "")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					answered++
				case IsRefusal(err, controlapi.CodeUnavailable):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if n := len(b.mails()); n != answered {
			t.Fatalf("%d sign-ins were answered and %d refused; %d mails were written", answered, refused, n)
		}
		_, err := b.SignIn.Begin(t.Context(), "late@example.com", Browser{Client: home}, "")
		wantRefusal(t, err, controlapi.CodeUnavailable)
	}
}

// Held syncs are told to end before the rest does.
func TestDrainEndsSyncsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	b.run()
	select {
	case <-b.Closing():
		t.Fatal("closing before it was asked to")
	default:
	}
	b.Drain()
	b.Drain()
	<-b.Closing()
	b.begin("maya@example.com", 1) // and has its mail
}
