package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"porchlight/agent/ownersecret"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

const (
	// Ending a credential at a control plane that is away is tried again after a random
	// time below a bound that doubles from leastAgain to mostAgain, and given up
	// after endFor: the owner finds the computer on the dashboard.
	leastAgain = 2 * time.Second
	mostAgain  = 10 * time.Minute
	endFor     = 30 * 24 * time.Hour
)

// endConnections ends the credentials of connections that are over, until ctx ends.
func (h *Host) endConnections(ctx context.Context) {
	bound := leastAgain
	for ctx.Err() == nil {
		var again <-chan time.Time
		if h.endAll(ctx) {
			bound = leastAgain
		} else {
			again = time.After(rand.N(bound))
			bound = min(2*bound, mostAgain)
		}
		select {
		case <-ctx.Done():
		case <-h.toEnd:
		case <-again:
		}
	}
}

// endAll tries every one of them once and says whether none is left.
func (h *Host) endAll(ctx context.Context) (done bool) {
	done = true
	for _, c := range h.kept.get().Ending {
		h.mu.Lock()
		wanted := h.adopting == c.ID
		h.mu.Unlock()
		if wanted || ctx.Err() != nil {
			continue // and adopt raises toEnd
		}
		trying, cancel := context.WithTimeout(ctx, askIn)
		err := h.endOne(trying, c)
		cancel()
		if err != nil && time.Since(c.At) > endFor {
			h.log.Warn("the control plane was never told that this computer has left; take it off at the dashboard", "control", c.AuthURL, "name", c.Name)
			err = h.forget(ctx, c)
		}
		if err != nil {
			h.log.Debug("the control plane could not be told yet that this computer has left", "control", c.AuthURL, "err", err)
			done = false
		}
	}
	return done
}

// endOne ends the credential of a connection that is over, at its control plane
// and here.
func (h *Host) endOne(ctx context.Context, c connection) error {
	err := endCredential(ctx, c, h.credentials(c))
	if err != nil && !errors.Is(err, ownersecret.ErrNotFound) { // ended before, or never kept
		return err
	}
	return h.forget(ctx, c)
}

// endCredential ends the credential of a connection at its control plane; where none is kept
// here its error is ownersecret.ErrNotFound.
func endCredential(ctx context.Context, c connection, kept ownersecret.Store) error {
	credential, err := kept.Get(ctx)
	if err != nil {
		return err
	}
	roots, err := rootsOf(c.CA)
	if err != nil {
		return err
	}
	client := controlClient(c.AuthURL, roots, credential)
	defer client.HTTP.CloseIdleConnections()
	err = client.EndCredential(ctx)
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok && refusal.Code == controlapi.CodeUnauthorized {
		return nil // it was ended there
	}
	if err != nil {
		return words.Errorf("end the credential at %s: %w", c.AuthURL, err)
	}
	return nil
}

// forget drops the credential, and then the last word of it.
func (h *Host) forget(ctx context.Context, c connection) error {
	if err := h.credentials(c).Delete(ctx); err != nil && !errors.Is(err, ownersecret.ErrNotFound) {
		return err
	}
	return h.kept.update(func(k *connections) { k.forget(c.ID) })
}
