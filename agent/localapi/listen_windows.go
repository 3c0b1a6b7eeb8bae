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
	l, err := private.Listen(filepath.Join(dir, socketName))
	if err == nil {
		return l, nil
	}
	// The name is taken: by a Porchlight, or by another user who worked it out.
	ctx, cancel := context.WithTimeout(context.Background(), takenIn)
	defer cancel()
	address := private.Address(filepath.Join(dir, socketName))
	if c, dialled := private.Dial(ctx, address); dialled == nil {
		return nil, errors.Join(errTaken, c.Close())
	}
	return nil, err
}

// listenUnforeseen listens at a pipe whose name nobody can take before.
func listenUnforeseen() (net.Listener, error) { return private.Listen(rand.Text()) }
