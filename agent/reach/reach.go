// Package reach is the visitor's side of apps that are reached by TCP: porchlight reach, on a
// computer that need not run an agent.
//
// In comes the address of one app and, connection by connection, a program of the person who
// uses this computer. Out goes a WebSocket for each, with an access token of the client that is
// built into every control plane, which is good for that app alone. The person signs in by
// their browser once; what is kept of it is the refresh token, in their keychain, or in a file
// (0600) where there is none. Nothing here listens where another computer can connect.
package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"porchlight/agent/carry"
	"porchlight/agent/ownersecret"
)

const (
	askFor     = 30 * time.Second // for one answer of a server
	maxSaid    = 16 << 10         // bytes of one
	nearlyOver = 30 * time.Second // an access token is replaced so long before its end
)

// Config of New. Every field is required.
type Config struct {
	Transport *http.Transport // as controlapi.NewTransport makes it
	Keep      []ownersecret.Store
	// Browse opens an address in the person's browser; ctx ends when they are back. Tell is
	// told what they should know, a sentence at a time.
	Browse func(ctx context.Context, address string) error
	Tell   func(sentence string)
}

// App is one app as this person reaches it. It is safe for concurrent use.
type App struct {
	cfg    Config
	client *http.Client
	host   string // with the port unless it is 443
	origin string

	mu     sync.Mutex // protects what follows, and is held to get a token
	server *server    // nil before it was asked for
	access string
	expiry time.Time // when access is worth nothing
}

// Host reads the address of an app as people write it: NAME.HOST, with a port unless it is
// 443, or as it stands in a browser.
func Host(address string) (host string, err error) {
	u, err := url.Parse("https://" + strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(address, "https://"), "/")))
	if err != nil || u.Host == "" || u.Hostname() != strings.Trim(u.Hostname(), ".") || !strings.Contains(u.Hostname(), ".") ||
		u.String() != "https://"+u.Host || strings.HasSuffix(u.Host, ":") || net.ParseIP(u.Hostname()) != nil {
		return "", fmt.Errorf("%q is not the address of an app. It looks like ssh.maya.example", address)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return "", fmt.Errorf("%q has a port that is none", address)
	}
	return strings.TrimSuffix(u.Host, ":443"), nil
}

// New asks nobody anything; host is one that Host returned.
func New(host string, cfg Config) *App {
	client := &http.Client{Transport: cfg.Transport, Timeout: askFor, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // whom a token is sent to is not for a server to say
	}}
	return &App{cfg: cfg, client: client, host: host, origin: "https://" + host}
}

// ErrSignIn is of a connection for which the person has to sign in (again), which nobody asks
// them to on the way of a program.
var ErrSignIn = errors.New("the sign-in is over. Start this anew to sign in again")

// errToken is of an access token that was not taken.
var errToken = errors.New("the access token is not valid at the app")

// Carry carries a program's connection to the app and closes it.
func (a *App) Carry(ctx context.Context, conn carry.Conn) error {
	ws, err := a.dial(ctx)
	if err != nil {
		if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // so that it does not look like an app that says nothing
		}
		_ = conn.Close()
		return err
	}
	err = carry.Join(ctx, ws, conn)
	if err != nil && !errors.Is(err, ErrPage) {
		err = fmt.Errorf("a connection to %s ended before all was said", a.host)
	}
	return err
}

// dial makes a connection with the token that there is, and with a new one where that is not
// taken any more.
func (a *App) dial(ctx context.Context) (*websocket.Conn, error) {
	token, err := a.token(ctx, "")
	if err != nil {
		return nil, err
	}
	ws, err := a.dialWith(ctx, token)
	if !errors.Is(err, errToken) {
		return ws, err
	}
	if token, err = a.token(ctx, token); err != nil {
		return nil, err
	}
	if ws, err = a.dialWith(ctx, token); errors.Is(err, errToken) {
		err = ErrSignIn
	}
	return ws, err
}

func (a *App) dialWith(ctx context.Context, token string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	client := *a.client
	client.Timeout = 0 // which would end the WebSocket, too
	ws, answer, err := websocket.Dial(ctx, a.origin+"/", &websocket.DialOptions{
		HTTPClient: &client, Subprotocols: []string{carry.Subprotocol}, CompressionMode: websocket.CompressionDisabled,
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	switch {
	case err == nil && ws.Subprotocol() != carry.Subprotocol:
		_ = ws.CloseNow()
		return nil, fmt.Errorf("%s is not reached this way. Porchlight there may be too old", a.host)
	case err == nil:
		return ws, nil
	case answer == nil:
		return nil, fmt.Errorf("%s cannot be reached: %w", a.host, err)
	case answer.StatusCode == http.StatusUnauthorized:
		return nil, errToken
	}
	return nil, said(a.host, answer)
}

// said is what a server says is wrong.
func said(host string, answer *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxSaid))
	var body struct {
		Error string `json:"error"`
	}
	if err != nil || json.Unmarshal(raw, &body) != nil || body.Error == "" {
		return fmt.Errorf("%s does not answer as an app that is reached this way (status %d)", host, answer.StatusCode)
	}
	return fmt.Errorf("%s: %s", host, body.Error)
}
