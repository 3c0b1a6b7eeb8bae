package clientdoc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/internal/publicnet"
)

const (
	within    = 5 * time.Second
	maxBody   = 64 << 10 // bytes
	maxHeader = 16 << 10 // bytes
	atOnce    = 16       // a server; whoever comes later waits

	// MinFresh and MaxFresh are how long what was fetched counts at least and at most,
	// whatever its own headers say.
	MinFresh = 5 * time.Minute
	MaxFresh = 24 * time.Hour
)

// ErrAway is of a host that cannot be reached, or cannot answer now.
var ErrAway = errors.New("the host does not answer")

var errNotPublic = errors.New("the host leads to no address of the internet")

// Fetcher fetches documents, and the keys they name.
type Fetcher struct {
	client *http.Client
	places chan struct{}
}

// NewFetcher starts nothing.
func NewFetcher() *Fetcher {
	way := publicnet.Way(&http.Transport{
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true, // the address is looked up and judged each time
		DisableCompression:     true, // what is read is what was sent
		MaxResponseHeaderBytes: maxHeader,
	}, within, publicnet.Plain, errNotPublic)
	return &Fetcher{places: make(chan struct{}, atOnce), client: &http.Client{
		Transport: way,
		// An answer that leads elsewhere is none.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get fetches the JSON at an address for which HostOf has a host, and says how long it
// counts, by its own headers. It takes 5 seconds at most. The error is ErrAway, perhaps
// wrapped, where what was fetched last may go on counting.
func (f *Fetcher) Get(ctx context.Context, address string) (body []byte, fresh time.Duration, err error) {
	if HostOf(address) == "" {
		return nil, 0, errors.New("that is no address of a document")
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("%w: others are being asked", ErrAway)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("User-Agent", "Porchlight")
	r.Header.Set("Accept", "application/json")
	res, err := f.client.Do(r)
	switch {
	case errors.Is(err, errNotPublic):
		return nil, 0, errNotPublic // without the number that was dialled
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer res.Body.Close()
	if err := answered(res); err != nil {
		return nil, 0, err
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case len(body) > maxBody:
		return nil, 0, fmt.Errorf("what is there is larger than %d bytes", maxBody)
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrAway, err)
	}
	return body, freshFor(res.Header, time.Now()), nil
}

// answered says what is wrong with an answer before its body is read.
func answered(res *http.Response) error {
	switch status := res.StatusCode; {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return fmt.Errorf("%w: status %d", ErrAway, status)
	case status != http.StatusOK:
		return fmt.Errorf("its address answers with status %d", status)
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return errors.New("its Content-Type is not application/json")
	}
	return nil
}

// freshFor is how long an answer counts (RFC 9111, section 4.2), within our bounds.
func freshFor(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	if expires, err := http.ParseTime(h.Get("Expires")); err == nil {
		d = expires.Sub(now)
	}
	for _, directive := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return MinFresh
		case "max-age":
			d = seconds(strings.Trim(value, `"`))
		}
	}
	return min(max(d-seconds(h.Get("Age")), MinFresh), MaxFresh)
}

// seconds reads a number of seconds; what is none, or absurd, is 0.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
