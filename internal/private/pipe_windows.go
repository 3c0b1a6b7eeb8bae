package private

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

const (
	pipePrefix = `\\.\pipe\`
	// maxPiece is the most that is given to the system at once, and what a pipe holds, in
	// bytes.
	maxPiece = 64 << 10
	// askAgainIn is how soon a pipe is tried again whose end for the next program is made.
	askAgainIn = 5 * time.Millisecond
)

// address of a pipe.
type address string

func (a address) Network() string { return "pipe" }
func (a address) String() string  { return string(a) }

// pipeOf is the name of the pipe that stands for a path. Names of pipes are everybody's:
// Listen and Dial look at whose one is.
func pipeOf(path string) address {
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return address(pipePrefix + "porchlight-" + hex.EncodeToString(sum[:16]))
}

// Address is what Listen's listener has for a path.
func Address(path string) string { return pipeOf(path).String() }

// Listen listens at the named pipe that stands for a path, where nothing need be. Only
// programs of this computer and of the user who runs this are accepted. The listener's
// address is what Dial takes; a name that is taken is an error.
func Listen(path string) (net.Listener, error) {
	l := &listener{address: pipeOf(path)}
	first, err := l.instance(windows.FILE_FLAG_FIRST_PIPE_INSTANCE)
	if err != nil {
		return nil, l.failed("listen", err)
	}
	l.next = first
	return l, nil
}

type listener struct {
	address address
	turn    sync.Mutex // held by who accepts

	mu   sync.Mutex
	next *conn // the end that nobody has connected to yet; nil once closed
}

// instance makes an end of the pipe for one more program. There is always one, so that
// nobody else can take the name.
func (l *listener) instance(flags uint32) (*conn, error) {
	only, err := forUser("", "GA")
	if err != nil {
		return nil, err
	}
	name, err := windows.UTF16PtrFromString(string(l.address))
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED|flags,
		windows.PIPE_TYPE_BYTE|windows.PIPE_READMODE_BYTE|windows.PIPE_WAIT|windows.PIPE_REJECT_REMOTE_CLIENTS,
		windows.PIPE_UNLIMITED_INSTANCES, maxPiece, maxPiece, 0, only)
	if err != nil {
		return nil, err
	}
	return newConn(h, l.address)
}

// Accept returns the next program of this user. Others, who cannot have come as far as
// this, are turned away.
func (l *listener) Accept() (net.Conn, error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	for {
		c := l.waiting()
		if c == nil {
			return nil, l.failed("accept", net.ErrClosed)
		}
		err := c.connect()
		if err != nil && !isEnd(err) {
			return nil, l.failed("accept", err)
		}
		ours, err := l.taken(c, err)
		if err != nil {
			return nil, l.failed("accept", err)
		}
		if ours {
			return c, nil
		}
	}
}

// taken says whether a program of this user has connected to c, where connecting ended with
// err: c is no longer the listener's then. Else c is for the next program. The error is that of
// a closed listener: Close waits meanwhile, so that the handle is still c's.
func (l *listener) taken(c *conn, err error) (ours bool, closed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return false, net.ErrClosed
	}
	var next *conn
	if err == nil {
		if c.pid, err = peer(c.handle, windows.GetNamedPipeClientProcessId); err == nil {
			next, err = l.instance(0)
		}
	}
	if err != nil { // of this one program
		_ = windows.DisconnectNamedPipe(c.handle)
		return false, nil
	}
	l.next = next
	return true, nil
}

func (l *listener) waiting() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

func (l *listener) Close() error {
	l.mu.Lock()
	c := l.next
	l.next = nil
	l.mu.Unlock()
	if c == nil {
		return l.failed("close", net.ErrClosed)
	}
	return c.Close()
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: l.address.Network(), Addr: l.address, Err: err}
}

// Dial connects to the address of a listener. One of another user's is not spoken to: its
// error is fs.ErrPermission.
func Dial(ctx context.Context, at string) (net.Conn, error) {
	failed := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: address(at), Err: err}
	}
	if !strings.HasPrefix(at, pipePrefix) { // a path of a server elsewhere, say: \\elsewhere\pipe\x
		return failed(windows.ERROR_INVALID_NAME)
	}
	name, err := windows.UTF16PtrFromString(at)
	if err != nil {
		return failed(err)
	}
	for {
		// Whoever listens may not act in our name before we know who it is.
		h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING,
			windows.FILE_FLAG_OVERLAPPED|windows.SECURITY_SQOS_PRESENT|windows.SECURITY_ANONYMOUS, 0)
		if err == nil {
			return dialed(h, address(at), failed)
		}
		if !errors.Is(err, windows.ERROR_PIPE_BUSY) {
			return failed(err)
		}
		select {
		case <-ctx.Done():
			return failed(ctx.Err())
		case <-time.After(askAgainIn):
		}
	}
}

// dialed makes the connection of a pipe whose listener is this user's.
func dialed(h windows.Handle, at address, failed func(error) (net.Conn, error)) (net.Conn, error) {
	pid, err := peer(h, windows.GetNamedPipeServerProcessId)
	if err == nil {
		err = belongsToUs(h)
	}
	if err != nil {
		windows.CloseHandle(h)
		return failed(err)
	}
	c, err := newConn(h, at)
	if err != nil {
		return failed(err)
	}
	c.pid = pid
	return c, nil
}

// peer is the process at the other end, where it is one of the user who runs this;
// anybody else's, and one that ended, is fs.ErrPermission.
func peer(h windows.Handle, ask func(windows.Handle, *uint32) error) (pid int, err error) {
	var id uint32
	if err := ask(h, &id); err != nil {
		return 0, err
	}
	me, err := ownSID()
	if err != nil {
		return 0, err
	}
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, id)
	if err != nil {
		return 0, errors.Join(fs.ErrPermission, err)
	}
	defer windows.CloseHandle(process)
	var token windows.Token
	if err := windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token); err != nil {
		return 0, errors.Join(fs.ErrPermission, err)
	}
	defer token.Close()
	u, err := token.GetTokenUser()
	if err != nil || !u.User.Sid.Equals(me) {
		return 0, errors.Join(fs.ErrPermission, err)
	}
	return int(id), nil
}

// belongsToUs wants a pipe to be of the user who runs this: whoever made one may have ended, and
// its number be another process's.
func belongsToUs(h windows.Handle) error {
	sd, err := windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return errors.Join(fs.ErrPermission, err)
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return errors.Join(fs.ErrPermission, err)
	}
	me, err := ownSID()
	if err == nil && !owner.Equals(me) {
		err = fs.ErrPermission
	}
	return err
}
