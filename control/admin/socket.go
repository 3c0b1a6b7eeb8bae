package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"porchlight/control"
	"porchlight/internal/durable"
	"porchlight/internal/private"
)

const (
	socketName = "admin.sock"
	wordName   = "admin.json"
	// maxSocketPath is the longest path of a unix socket, in bytes: macOS has
	// room for 104, the zero at the end included.
	maxSocketPath = 103
	// maxWord bounds what is read of the word, in bytes.
	maxWord = 16 << 10
	// finishIn is how long requests under way may take when Serve ends.
	finishIn = 10 * time.Second
)

// ErrNotRunning is wrapped by Dial when no control plane serves the directory.
var ErrNotRunning = errors.New("no control plane is running there")

// word is DIR/admin.json: where the socket of the directory is, as long as
// somebody serves, and how the hosts are named, also afterwards.
type word struct {
	Socket string `json:"socket,omitempty"`
	PID    int    `json:"pid,omitempty"`
	control.Naming
}

// Socket is an Admin's open socket.
type Socket struct {
	admin *Admin
	dir   string
	l     *listener
}

// Serve is Listen and Run.
func (a *Admin) Serve(ctx context.Context, dir string) error {
	s, err := a.Listen(dir)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// Listen opens a unix socket for dir and leaves word of it; requests wait until
// Run. dir is made (0700) when it is not there. The socket is in it, or, where
// that path is too long for one, in a directory of its own that DIR/admin.json
// names. The caller must be the only process that uses the store, or share it
// knowingly: a socket nobody answers on is taken for a leftover.
func (a *Admin) Listen(dir string) (*Socket, error) {
	l, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for administration: %w", err)
	}
	s := &Socket{admin: a, dir: dir, l: l}
	if err := writeWord(dir, word{Socket: l.Addr().String(), PID: os.Getpid(), Naming: a.cfg.Naming}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Run answers until ctx is done, lets requests under way finish, and closes the
// socket. It returns nil after ctx has ended.
func (s *Socket) Run(ctx context.Context) error {
	return errors.Join(s.admin.serve(ctx, s.l), s.Close())
}

// Close removes the socket and takes back the word of it.
func (s *Socket) Close() error {
	_ = s.l.Close() // Run has closed it already
	if s.l.own != "" {
		_ = os.Remove(s.l.own) // what is left of it is empty
	}
	return writeWord(s.dir, word{Naming: s.admin.cfg.Naming})
}

func (a *Admin) serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           a.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(a.cfg.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("administration ended: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishIn)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close()
	}
	<-ended
	return nil
}

// listener is the socket, and the directory made for it, if any.
type listener struct {
	net.Listener
	path string
	own  string
}

func listen(dir string) (*listener, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := private.Dir(abs); err != nil {
		return nil, err
	}
	if client, err := Dial(abs); err == nil {
		client.Close()
		return nil, fmt.Errorf("another control plane serves %s already", abs)
	}
	l := &listener{path: filepath.Join(abs, socketName)}
	if len(l.path) > maxSocketPath {
		// The name is random, so nobody else can have made it.
		if l.own, err = os.MkdirTemp("", "porchlight-"); err != nil {
			return nil, err
		}
		l.path = filepath.Join(l.own, socketName)
	}
	if err := l.open(); err != nil {
		if l.own != "" {
			_ = os.Remove(l.own)
		}
		return nil, err
	}
	return l, nil
}

func (l *listener) open() (err error) {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.Listener, err = private.Listen(l.path)
	return err
}

// ReadNaming returns how the hosts of dir's control plane were called when it
// served last; ok is false when it never did.
func ReadNaming(dir string) (n control.Naming, ok bool, err error) {
	w, err := readWord(dir)
	if errors.Is(err, ErrNotRunning) {
		return control.Naming{}, false, nil
	}
	return w.Naming, err == nil, err
}

func readWord(dir string) (word, error) {
	path := filepath.Join(dir, wordName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return word{}, fmt.Errorf("%s: %w", dir, ErrNotRunning)
	}
	if err != nil {
		return word{}, fmt.Errorf("cannot tell whether a control plane is running: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxWord))
	if err != nil {
		return word{}, fmt.Errorf("cannot tell whether a control plane is running: %w", err)
	}
	var w word
	if err := json.Unmarshal(raw, &w); err != nil {
		return word{}, fmt.Errorf("%s is damaged; remove it and start the control plane anew: %w", path, err)
	}
	return w, nil
}

func writeWord(dir string, w word) error {
	raw, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(dir, wordName), append(raw, '\n')); err != nil {
		return fmt.Errorf("cannot write down where administration listens: %w", err)
	}
	return nil
}
