// Package instance keeps one desktop app per data directory. The first start
// takes a lock and listens on a socket; a later one finds the lock taken, asks
// the holder over that socket to show its window, and is done.
//
// The lock is the operating system's, on DATA/desktop.lock, so it ends with the
// process whatever ends it. The file's content is the path of the socket, or the name of
// a pipe on Windows: data directories may be deeper than the 104 bytes a unix socket's
// path may have.
package instance

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"porchlight/internal/durable"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

// fileName of the lock inside the data directory.
const fileName = "desktop.lock"

// ErrTaken is returned by Acquire when another process holds the lock.
var ErrTaken = errors.New("Porchlight is already running with this data directory")

const (
	// show is the only thing a second start can ask for. Behind it, in a line that earlier
	// versions do not read, comes the token that its desktop gave it, if any.
	show = "show"
	done = "ok"

	// patience bounds one exchange between two starts.
	patience = 3 * time.Second

	// maxAsked bounds what a second start says, in bytes, and maxToken the token in it.
	maxAsked = 1024
	maxToken = 512
)

// Instance is the held lock and its socket.
type Instance struct {
	lock     *os.File
	listener net.Listener
}

// Acquire takes the lock of a data directory, which it creates (0700) when
// needed. It fails with ErrTaken when another process has it.
func Acquire(dataDir string) (*Instance, error) {
	if err := private.Dir(dataDir); err != nil {
		return nil, words.Errorf("Porchlight cannot create its data directory %s: %w", dataDir, durable.Plain(err))
	}
	path := filepath.Join(dataDir, fileName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, words.Errorf("Porchlight cannot write in its data directory %s: %w", dataDir, durable.Plain(err))
	}
	if err := tryLock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errLocked) {
			return nil, ErrTaken
		}
		return nil, words.Errorf("Porchlight cannot lock %s: %w", path, err)
	}
	socket, err := socketPath(dataDir)
	if err == nil {
		// The lock is ours, so whatever lies there is left over.
		_ = os.Remove(socket)
		var l net.Listener
		if l, err = private.Listen(socket); err == nil {
			if err = publish(f, l.Addr().String()); err == nil {
				return &Instance{lock: f, listener: l}, nil
			}
			_ = l.Close()
		}
	}
	_ = f.Close()
	return nil, words.Errorf("Porchlight cannot listen for a second start: %w", err)
}

// Run answers later starts until ctx ends; onShow is called for each of them, with the token
// that its desktop gave it (see session.Token).
func (i *Instance) Run(ctx context.Context, onShow func(token string)) {
	stop := context.AfterFunc(ctx, func() { _ = i.listener.Close() })
	defer stop()
	for {
		conn, err := i.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, say: do not spin.
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
				continue
			}
		}
		// One after the other: an exchange is short and bounded.
		_ = conn.SetDeadline(time.Now().Add(patience))
		said := bufio.NewReader(io.LimitReader(conn, maxAsked))
		asked, err := said.ReadString('\n')
		if err == nil && strings.TrimSpace(asked) == show {
			onShow(tokenOf(said))
			_, _ = io.WriteString(conn, done+"\n")
		}
		_ = conn.Close()
	}
}

// tokenOf is what came with the question: it was one write, and nothing is waited for.
func tokenOf(said *bufio.Reader) string {
	if said.Buffered() == 0 {
		return ""
	}
	line, err := said.ReadString('\n')
	if err != nil || !fit(strings.TrimSuffix(line, "\n")) {
		return ""
	}
	return strings.TrimSuffix(line, "\n")
}

// fit says whether a token is one line of letters that C can read.
func fit(token string) bool {
	return len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Close gives the lock back. The lock file stays: removing it would let two
// later starts lock two different files of the same name.
func (i *Instance) Close() {
	_ = i.listener.Close()
	_ = i.lock.Close()
}

// AskToShow asks the process that holds dataDir's lock to show its window, and hands on
// the token of this start. It waits a little for a holder that is still starting.
func AskToShow(ctx context.Context, dataDir, token string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ask(ctx, dataDir, token)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return words.Errorf("Porchlight is already running here, but does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ask(ctx context.Context, dataDir, token string) error {
	raw, err := os.ReadFile(filepath.Join(dataDir, fileName))
	if err != nil {
		return durable.Plain(err)
	}
	conn, err := private.Dial(ctx, strings.TrimSpace(string(raw)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	asks := show + "\n"
	if token != "" && fit(token) {
		asks += token + "\n"
	}
	if _, err := io.WriteString(conn, asks); err != nil {
		return err
	}
	answer, err := bufio.NewReader(io.LimitReader(conn, 64)).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != done {
		return errors.New("it answered something else")
	}
	return nil
}

// publish writes the socket's path for later starts to read.
func publish(f *os.File, socket string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(socket+"\n"), 0)
	return err
}

// socketPath prefers the data directory; one too deep gets a name of its own in
// the user's runtime directory, or where there is none a new directory for
// temporary files, whose name nobody can take before.
func socketPath(dataDir string) (string, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return "", err
	}
	if p := filepath.Join(abs, "desktop.sock"); len(p) <= 100 {
		return p, nil
	}
	sum := sha256.Sum256([]byte(abs))
	parent := os.Getenv("XDG_RUNTIME_DIR")
	if parent == "" {
		if parent, err = os.UserCacheDir(); err != nil {
			dir, err := os.MkdirTemp("", "porchlight-*") // 0700
			return filepath.Join(dir, "desktop.sock"), durable.Plain(err)
		}
	}
	dir := filepath.Join(parent, "porchlight-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", durable.Plain(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", durable.Plain(err)
	}
	return filepath.Join(dir, "desktop.sock"), nil
}
