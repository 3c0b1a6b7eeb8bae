package localapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"time"

	"porchlight/internal/private"
)

// takenIn bounds the look whether a pipe's name is a Porchlight's.
const takenIn = 2 * time.Second

// socketDirs is the data directory alone: a pipe is called after it, and is in none.
func socketDirs(abs string) []string { return []string{abs} }

func listenOwner(dir string) (net.Listener, error) {
	path := filepath.Join(dir, socketName)
	ctx, cancel := context.WithTimeout(context.Background(), takenIn)
	defer cancel()
	if c, err := private.Dial(ctx, private.Address(path)); err == nil {
		return nil, errors.Join(errTaken, c.Close())
	}
	return private.Listen(path) // which refuses a name that another user worked out
}

// listenUnforeseen listens at a pipe whose name nobody can take before.
func listenUnforeseen() (net.Listener, error) { return private.Listen(rand.Text()) }
