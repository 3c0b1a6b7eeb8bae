package agentapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"porchlight/internal/private"
	"porchlight/internal/words"
)

// ErrNotRunning is wrapped when nothing listens where the agent should be.
var ErrNotRunning = words.Errorf("Porchlight is not running")

const (
	// dialIn is how long a connection on this computer may take.
	dialIn = 2 * time.Second

	// answerIn is how long the agent may take for one call. It is long enough
	// for a disk that is busy, and keeps an agent that was stopped in a debugger
	// or by SIGSTOP from holding its callers for ever.
	answerIn = 20 * time.Second

	// maxAnswer bounds what is read of one answer, in bytes.
	maxAnswer = 16 << 20

	// ownerHost is what a client on the owner tier's socket says as Host; there
	// is no port to name.
	ownerHost = "localhost"
)

// Client speaks to a running agent. It is safe for concurrent use and holds no
// connection between calls, so that it needs no closing and never meets one the
// agent closed meanwhile.
//
// The errors of its methods are an *Error with the agent's own sentence, or wrap
// ErrNotRunning, or the context's error.
type Client struct {
	base   string // scheme and host
	where  string // for sentences
	secret string // owner secret, or empty
	// capability of the last Register, nil before it.
	capability atomic.Pointer[string]
	http       *http.Client
	// patience is answerIn, and giveUpAfter how long a stream of events may be
	// quiet; shorter in the tests.
	patience, giveUpAfter time.Duration
}

// New makes a client of the open tier at addr, host:port.
func New(addr string) *Client {
	return newClient("http://"+addr, addr, func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: dialIn}
		return d.DialContext(ctx, "tcp", addr)
	})
}

// NewOwner makes a client of all tiers on the owner tier's socket. The secret is
// shown only to a socket in a directory that nobody else could have made, or, on
// Windows, to a pipe of a program of this user's: the path may have been left behind by
// an agent that is long gone.
func NewOwner(socketPath, secret string) *Client {
	c := newClient("http://"+ownerHost, socketPath, func(ctx context.Context) (net.Conn, error) {
		if err := checkSocket(socketPath); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, dialIn)
		defer cancel()
		return private.Dial(ctx, socketPath)
	})
	c.secret = secret
	return c
}

func newClient(base, where string, dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{
		base:        base,
		where:       where,
		patience:    answerIn,
		giveUpAfter: 3 * Heartbeat,
		http: &http.Client{
			// Proxy stays nil: what is on this computer is not reached through
			// whatever HTTP_PROXY names.
			Transport: &http.Transport{
				DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
				DisableKeepAlives:  true,
				DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Call sends any request of a JSON body, nil for none, and returns the answer as it
// came.
func (c *Client) Call(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	return call[json.RawMessage](ctx, c, method, path, body)
}

// call sends body, unless it is nil, and decodes the answer.
func call[Answer any](ctx context.Context, c *Client, method, path string, body any) (Answer, error) {
	var answer Answer
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, errSilent)
	defer cancel()
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return answer, c.failed(ctx, err)
	}
	if len(raw) > maxAnswer || !isJSON(resp) || json.Unmarshal(raw, &answer) != nil {
		var none Answer
		return none, c.strange()
	}
	return answer, nil
}

// do is call of what answers with Done.
func (c *Client) do(ctx context.Context, method, path string, body any) error {
	_, err := call[Done](ctx, c, method, path, body)
	return err
}

// send returns a response that is 2xx; its body is the caller's to close.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address of a Porchlight: %w", c.where, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			req.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	if c.secret != "" {
		req.Header.Set(HeaderOwnerSecret, c.secret)
	}
	if capability := c.capability.Load(); capability != nil {
		req.Header.Set(HeaderCapability, *capability)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if err := decode(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// errSilent is the cause of a context that ended because the agent said nothing
// for too long.
var errSilent = errors.New("no answer in time")

// failed makes an error of the connection one of this package's.
func (c *Client) failed(ctx context.Context, err error) error {
	silent := errors.Is(context.Cause(ctx), errSilent)
	if ctxErr := ctx.Err(); ctxErr != nil && !silent {
		return ctxErr
	}
	var timeout net.Error
	if silent || errors.As(err, &timeout) && timeout.Timeout() {
		return Errorf(CodeUnavailable, "Porchlight at %s does not answer. It may be stopped or busy; try again, or quit it and start it anew.", c.where)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	op, ok := errors.AsType[*net.OpError](err)
	dialing := ok && op.Op == "dial"
	if dialing && errors.Is(err, fs.ErrPermission) {
		return Errorf(CodeForbidden, "The Porchlight at %s belongs to another user of this computer.", c.where)
	}
	if dialing || errors.Is(err, ErrNotRunning) {
		return fmt.Errorf("%w: nothing listens at %s", ErrNotRunning, c.where)
	}
	return Errorf(CodeUnavailable, "The connection to Porchlight at %s broke before it answered; it may have been stopped.", c.where)
}

func (c *Client) strange() error {
	return Errorf(CodeUpstream, "What listens at %s does not answer like Porchlight. Another program may have taken its address.", c.where)
}
