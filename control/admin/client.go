package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/private"
	"porchlight/internal/socket"
)

// maxAnswer bounds an answer that is read whole, in bytes.
const maxAnswer = 256 << 20

// Client asks an Admin. It is safe for concurrent use; Close ends it.
type Client struct {
	http  *http.Client
	close func()
}

// Dial finds the control plane that serves dir. The error wraps ErrNotRunning
// when there is none.
func Dial(dir string) (*Client, error) {
	w, err := readWord(dir)
	if err != nil {
		return nil, err
	}
	if w.Socket == "" {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotRunning)
	}
	if filepath.Dir(w.Socket) != filepath.Clean(dir) {
		if err := checkDirectory(filepath.Dir(w.Socket), dir); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := private.Dial(ctx, w.Socket)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s: %w", dir, err) // somebody else's
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotRunning) // it was killed, and left its word
	}
	_ = conn.Close()
	return newClient(func(ctx context.Context) (net.Conn, error) {
		return private.Dial(ctx, w.Socket)
	}, func() {}), nil
}

func newClient(dial func(context.Context) (net.Conn, error), closed func()) *Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	return &Client{
		http:  &http.Client{Transport: transport},
		close: func() { transport.CloseIdleConnections(); closed() },
	}
}

// Close lets go of the connections.
func (c *Client) Close() { c.close() }

// Direct returns a client of a within this process. Its Close, which must be
// called, waits for what it started.
func (a *Admin) Direct() *Client {
	l := socket.NewHanded()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.serve(ctx, l) // it ends when it is told to
	}()
	dial := func(ctx context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		if !l.Give(ctx, theirs) {
			return nil, cmp.Or(ctx.Err(), net.ErrClosed)
		}
		return ours, nil
	}
	return newClient(dial, func() { cancel(); <-ended })
}

// do sends in, unless nil, as JSON and decodes the answer into out, unless nil.
// A refusal is a *controlapi.Error.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	b, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err != nil {
		return brokenOff(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("the control plane's answer is not understood; is it of the same version? %w", err)
	}
	return nil
}

// asked is do for an answer of one kind.
func asked[T any](ctx context.Context, c *Client, method, path string, in any) (out T, err error) {
	err = c.do(ctx, method, path, in, &out)
	return out, err
}

func (c *Client) open(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, brokenOff(ctx, err)
	}
	if resp.StatusCode < 300 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	refusal := &controlapi.Error{HTTPStatus: resp.StatusCode}
	b, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
	if err == nil {
		err = json.Unmarshal(b, refusal)
	}
	if err != nil || refusal.Message == "" {
		return nil, fmt.Errorf("the control plane answered with status %d; is it of the same version?", resp.StatusCode)
	}
	return nil, refusal
}

func brokenOff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the control plane broke off: %w", err)
}

// AddAccount makes an account, or finds it.
func (c *Client) AddAccount(ctx context.Context, ask AddAccount) (Added, error) {
	return asked[Added](ctx, c, "POST", "/accounts", ask)
}

// Accounts are all accounts.
func (c *Client) Accounts(ctx context.Context) ([]control.Account, error) {
	return asked[[]control.Account](ctx, c, "GET", "/accounts", nil)
}

// Computers are all computers.
func (c *Client) Computers(ctx context.Context) ([]control.OwnedComputer, error) {
	return asked[[]control.OwnedComputer](ctx, c, "GET", "/computers", nil)
}

// RootPEM is the certificate of the internal authority.
func (c *Client) RootPEM(ctx context.Context) ([]byte, error) {
	answer, err := c.open(ctx, "GET", "/ca", nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return io.ReadAll(io.LimitReader(answer, bodyLimit))
}

// Backup writes an archive of everything to w; rows alone leaves out the files
// of the certificate authority. The archive is whole only if its end is right
// (archive.Check), which the caller has to look at.
func (c *Client) Backup(ctx context.Context, w io.Writer, rows bool) error {
	path := "/backup"
	if rows {
		path += "?" + rowsOnly
	}
	answer, err := c.open(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	if _, err := io.Copy(w, answer); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the control plane could not finish the backup; its log says why")
		}
		return fmt.Errorf("the backup was not finished: %w", err)
	}
	return nil
}

// CheckChallenge has the nodes answer a challenge that is nobody's for two minutes.
func (c *Client) CheckChallenge(ctx context.Context) (controlapi.DNSRecord, error) {
	return asked[controlapi.DNSRecord](ctx, c, http.MethodPost, "/challenge", nil)
}
