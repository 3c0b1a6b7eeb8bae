package runner

import (
	"context"
	"errors"
	"time"

	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
)

// answer is what the keychain said.
type answer struct {
	secret string
	err    error
}

// ask reads the owner secret, and makes it at the first start. A locked keychain
// puts the question for its password on the screen.
func (e *Runner) ask(ctx context.Context) <-chan answer {
	answers, secrets := make(chan answer, 1), e.secrets
	go func() {
		secret, err := ownersecret.Ensure(ctx, secrets)
		if err != nil && secretless(err) == nil && ctx.Err() == nil {
			err = words.Errorf("Porchlight has no owner secret: %w", err)
		}
		answers <- answer{secret, err}
	}()
	return answers
}

// secretless is why there is no secret where that may change while the owner
// waits, and nil for every other error.
func secretless(err error) error {
	for _, why := range []error{ownersecret.ErrLocked, ownersecret.ErrUnavailable} {
		if errors.Is(err, why) {
			return why
		}
	}
	return nil
}

// awaitSecret waits until the keychain gives the secret, or the owner chooses to
// keep it in a file. asked is what is under way, nil for nothing. The answer is
// empty when ctx ended first.
func (e *Runner) awaitSecret(ctx context.Context, why error, asked <-chan answer) answer {
	why = secretless(why)
	if asked == nil || e.locked(ctx) {
		e.OnSecretless(why)
	} else {
		why = nil // it is slow, and nobody has to do anything so far
	}
	tick := time.NewTicker(e.unlockEvery)
	defer tick.Stop()
	for {
		var got answer
		select {
		case <-ctx.Done():
			return answer{}
		case got = <-asked:
			asked = nil
		case <-e.ChosenFile:
			e.secrets = e.inFile
			asked = e.ask(ctx)
			continue
		case <-e.Unlock:
			if asked == nil { // else the question is on the screen
				asked = e.ask(ctx)
			}
			continue
		case <-tick.C:
			switch {
			case asked != nil:
				continue
			case e.locked(ctx):
				got.err = ownersecret.ErrLocked
			default:
				asked = e.ask(ctx)
				continue
			}
		}
		if ctx.Err() != nil {
			return answer{}
		}
		now := secretless(got.err)
		if now == nil {
			return got
		}
		if now != why {
			why = now
			e.OnSecretless(why)
		}
	}
}
