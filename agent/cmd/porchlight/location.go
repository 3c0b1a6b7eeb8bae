package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/internal/commandline"
)

// location says which agent a command speaks to.
type location struct {
	data string // --data
	api  string // --api
}

// dataDir is --data, else PORCHLIGHT_DATA, else the usual place; absolute.
func (l *location) dataDir() (string, error) {
	dir := l.data
	if dir == "" {
		dir = os.Getenv("PORCHLIGHT_DATA")
	}
	if dir == "" {
		dir = agent.DefaultDataDir()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot make %s an absolute path: %w", dir, err)
	}
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s is a file, and the data directory has to be a directory. Name another one with --data", abs)
	}
	return abs, nil
}

// given is --api, else PORCHLIGHT_API, else empty.
func (l *location) given() string {
	if l.api != "" {
		return l.api
	}
	return os.Getenv("PORCHLIGHT_API")
}

// open returns a client of the open tier.
func (l *location) open() (*agentapi.Client, error) {
	if addr := l.given(); addr != "" {
		host, port, err := net.SplitHostPort(addr)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			return nil, commandline.Usagef("%q is no address of the loopback API. It looks like %s", addr, agentapi.DefaultAddress)
		}
		return agentapi.New(addr), nil
	}
	dir, err := l.dataDir()
	if err != nil {
		return nil, err
	}
	running, err := agentapi.ReadRunning(dir)
	switch {
	case err == nil:
		return agentapi.New(running.API), nil
	case errors.Is(err, agentapi.ErrNotRunning) && !l.chosen():
		return agentapi.New(agentapi.DefaultAddress), nil
	}
	return nil, err
}

// asksItsOwn says whether open's client is of the agent that serves the data directory,
// which one that was named by its address need not be.
func (l *location) asksItsOwn() bool {
	addr := l.given()
	if addr == "" {
		return true
	}
	dir, err := l.dataDir()
	if err != nil {
		return false
	}
	running, err := agentapi.ReadRunning(dir)
	return err == nil && running.API == addr
}

// chosen says whether somebody named a data directory. What answers at the usual
// address then belongs to another one, and is not asked in its place.
func (l *location) chosen() bool { return l.data != "" || os.Getenv("PORCHLIGHT_DATA") != "" }

// owner returns a client of the owner tier, with the secret from wherever the
// running agent keeps it: the keychain for the desktop, a file for the headless
// agent. Where both have served the data directory there are two secrets, and
// the agent says which one is its own.
func (l *location) owner(ctx context.Context) (*agentapi.Client, error) {
	dir, err := l.dataDir()
	if err != nil {
		return nil, err
	}
	running, err := agentapi.ReadRunning(dir)
	if err != nil {
		return nil, l.orTheirs(ctx, err)
	}
	// The file first: it exists only where an owner chose it or where an agent
	// ran without a screen, and reading it cannot block.
	secret, err := ownersecret.File(dir).Get(ctx)
	if err == nil {
		client := agentapi.NewOwner(running.OwnerSocket, secret)
		if _, err := client.Account(ctx); errors.Is(err, agentapi.ErrNotRunning) {
			return nil, l.orTheirs(ctx, err)
		} else if agentapi.CodeOf(err) != agentapi.CodeForbidden {
			return client, nil
		}
	} else if !errors.Is(err, ownersecret.ErrNotFound) {
		return nil, err
	}
	if secret, err = keychainSecret(ctx, dir); err != nil {
		return nil, err
	}
	return agentapi.NewOwner(running.OwnerSocket, secret), nil
}

// orTheirs is err, of an agent that does not run, or where another user's runs, that it
// does: two of them would only take the place from each other.
func (l *location) orTheirs(ctx context.Context, err error) error {
	if whose := l.theirs(ctx); whose != nil && errors.Is(err, agentapi.ErrNotRunning) {
		return whose
	}
	return err
}

// theirs tells of an agent at the usual address that another user of this computer runs;
// nil where there is none.
func (l *location) theirs(ctx context.Context) error {
	if l.chosen() {
		return nil
	}
	return host.Theirs(ctx, cmp.Or(l.given(), agentapi.DefaultAddress))
}

func keychainSecret(ctx context.Context, dataDir string) (string, error) {
	secret, err := ownersecret.Keychain(dataDir).Get(ctx)
	switch {
	case err == nil:
		return secret, nil
	case errors.Is(err, ownersecret.ErrLocked):
		return "", fmt.Errorf("Unlock your keychain first: it keeps the secret that proves that you are the owner (%w)", ownersecret.ErrLocked)
	}
	return "", fmt.Errorf("the owner secret of %s is not to be had, so only the menu bar can do this: %w", dataDir, err)
}
