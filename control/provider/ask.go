package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"porchlight/internal/publicnet"
)

const (
	within    = 10 * time.Second // of one answer, see Provider.slow
	maxBody   = 256 << 10        // bytes
	maxHeader = 16 << 10         // bytes
	atOnce    = 16               // requests; whoever comes later waits
	// sameFor is how long one answer with keys does for everybody: whoever sends tokens that
	// name a made-up key has the provider asked no more often.
	sameFor = 5 * time.Second
)

var (
	errAway       = errors.New("the provider does not answer")
	errNotPublic  = errors.New("it leads to no address of the internet; say \"private\": true if that is meant")
	errTooLarge   = fmt.Errorf("an answer is larger than %d bytes", maxBody)
	errUnsafe     = errors.New("it names an address that is not https://")
	errKey        = errors.New("its keys do not fit")
	errClock      = errors.New("its clock and ours differ")
	errRedirected = errors.New("an answer that leads elsewhere is none")
)

// asker is the way to a provider and nowhere else: an answer is read whole, and small.
type asker struct {
	way    http.RoundTripper
	places chan struct{}
	scheme func(*url.URL) bool
	now    func() time.Time

	mu   sync.Mutex // guards what follows
	same map[string]kept
}

// kept is an answer that does for a while.
type kept struct {
	at   time.Time
	body []byte
	head http.Header
}

// client asks a provider. What its operator did not call private is in the internet, or is
// not asked: a provider names further addresses, and none of them is to lead into the
// server's own network.
func (c Config) client(now func() time.Time) *http.Client {
	allowed := publicnet.Plain
	if c.Private {
		allowed = func(netip.Addr) bool { return true }
	}
	way := publicnet.Way(&http.Transport{
		ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns: atOnce, IdleConnTimeout: 30 * time.Second,
	}, within, allowed, errNotPublic)
	a := &asker{way: way, places: make(chan struct{}, atOnce), scheme: c.scheme, now: now, same: map[string]kept{}}
	return &http.Client{Transport: a, Timeout: within, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected }}
}

// scheme says whether an address is one to go to: by TLS, or on this machine.
func (c Config) scheme(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return u.Scheme == "http" && c.Private && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// RoundTrip implements http.RoundTripper.
func (a *asker) RoundTrip(r *http.Request) (*http.Response, error) {
	if !a.scheme(r.URL) {
		return nil, errUnsafe
	}
	// Only keys are asked for with this field.
	keys := r.Header.Get("Cache-Control") == "no-cache"
	if k, ok := a.again(r.URL.String()); keys && ok {
		return answer(r, k), nil
	}
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "Porchlight")
	res, err := a.way.RoundTrip(r)
	switch {
	case errors.Is(err, errNotPublic):
		return nil, errNotPublic // without the number that was dialled
	case err != nil && r.Context().Err() == context.DeadlineExceeded:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case len(body) > maxBody:
		return nil, errTooLarge
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errAway, err)
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: status %d", errAway, res.StatusCode)
	}
	if keys && res.StatusCode == http.StatusOK {
		a.mu.Lock()
		a.same[r.URL.String()] = kept{a.now(), body, res.Header}
		a.mu.Unlock()
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// again is what an address answered a moment ago.
func (a *asker) again(address string) (kept, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.same[address]
	return k, ok && a.now().Sub(k.at).Abs() < sameFor
}

func answer(r *http.Request, k kept) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: k.head, Body: io.NopCloser(bytes.NewReader(k.body)), ContentLength: int64(len(k.body)),
	}
}
