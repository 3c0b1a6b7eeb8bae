package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"porchlight/agent/procinfo"
)

const (
	askFor  = 5 * time.Second // for one question, from connecting to the end of the answer
	maxRead = 1 << 20         // bytes of an answer
	maxHead = 16 << 10        // of its head
)

// list asks an engine which containers run.
func list(ctx context.Context, socket string) ([]container, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	pong, err := get(ctx, socket, "/_ping")
	if err == nil && string(pong) != "OK" {
		err = errors.New("what answers there is no container engine")
	}
	if err != nil {
		return nil, err
	}
	body, err := get(ctx, socket, "/containers/json")
	if err != nil {
		return nil, err
	}
	return read(socket, body)
}

// get is one answer of an engine, on a connection of its own that no redirect leaves.
func get(ctx context.Context, socket, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := (&http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) },
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHead,
	}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s is answered with %d", path, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRead+1))
	if err == nil && len(body) > maxRead {
		err = fmt.Errorf("the answer to %s has more than %d bytes", path, maxRead)
	}
	return body, err
}

// dial connects to an engine of this user or of root. Another user's could say what it
// likes of everybody's containers.
func dial(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if owner := peerUser(conn); !procinfo.Own(owner) {
		conn.Close()
		return nil, fmt.Errorf("the engine at %s runs as user %s, and neither as this one nor as root", socket, owner)
	}
	return conn, nil
}
