//go:build !windows

package private

import (
	"context"
	"errors"
	"net"
	"os"
)

// Dir makes a directory (0700), and those above it, unless it is there.
func Dir(path string) error { return os.MkdirAll(path, 0o700) }

// Listen listens at a unix socket (0600) in a directory that is private, and which its
// Close removes. The listener's address is what Dial takes.
func Listen(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Dial connects to the address of a listener.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", address)
}
