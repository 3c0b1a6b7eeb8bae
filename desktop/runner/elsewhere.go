package runner

import (
	"context"
	"errors"
	"os"

	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
)

// elsewhere is an agent in another process.
type elsewhere struct{ socket, secret string }

// findElsewhere looks for an agent that serves the data directory in another
// process: one without a screen, whose owner secret is in a file. Another user's, which
// has the place that this one would take, is an error.
func findElsewhere(ctx context.Context, dataDir, api string) (*elsewhere, error) {
	found, err := host.Find(ctx, dataDir, "")
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, host.Theirs(ctx, api)
	case found.PID == os.Getpid():
		return nil, nil
	}
	secret, err := ownersecret.File(dataDir).Get(ctx)
	if errors.Is(err, ownersecret.ErrNotFound) {
		secret, err = ownersecret.Keychain(dataDir).Get(ctx)
	}
	if err != nil {
		return nil, words.Errorf("Porchlight already runs here (%s, pid %d), and the owner secret to attach to it is not to be had. Quit it, and start Porchlight again. (%w)", string(found.Mode), found.PID, err)
	}
	return &elsewhere{socket: found.OwnerSocket, secret: secret}, nil
}
