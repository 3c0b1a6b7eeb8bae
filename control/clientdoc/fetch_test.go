package clientdoc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/test/programs"
)

// reaching is a Fetcher that finds every host at one server.
func reaching(t *testing.T, h http.HandlerFunc) *Fetcher {
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	f := NewFetcher()
	way := f.client.Transport.(*http.Transport)
	way.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	way.TLSClientConfig.ServerName = "example.com"
	way.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	return f
}

func TestFetch(t *testing.T) {
	t.Parallel()
	asJSON := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		io.WriteString(w, body)
	}
	f := reaching(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "editor.example" || r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("asked %s with %v", r.Host, r.Header)
		}
		switch r.URL.Path {
		case "/good", "/there":
			w.Header().Set("Cache-Control", "max-age=600")
			asJSON(w, "{}")
		case "/largest":
			asJSON(w, strings.Repeat(" ", maxBody))
		case "/larger":
			asJSON(w, strings.Repeat(" ", maxBody+1))
		case "/endless":
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				io.WriteString(w, strings.Repeat(" ", 1<<20))
			}
		case "/head":
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
			asJSON(w, "{}")
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/off":
			http.Redirect(w, r, "https://elsewhere.example/there", http.StatusPermanentRedirect)
		case "/page":
			io.WriteString(w, "<html>")
		case "/keys":
			w.Header().Set("Content-Type", "application/jwk-set+json")
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			asJSON(w, "{")
		}
	})
	for path, want := range map[string]struct {
		why  string // "" for none
		away bool
	}{
		"/good": {}, "/keys": {}, "/largest": {},
		"/larger": {"larger than 65536", false}, "/endless": {"larger than 65536", false}, "/head": {"", true},
		"/moved": {"status 302", false}, "/off": {"status 308", false}, "/page": {"Content-Type", false},
		"/busy": {"status 503", true}, "/gone": {"status 410", false}, "/cut": {"", true},
	} {
		_, fresh, err := f.Get(t.Context(), "https://editor.example"+path)
		if (err == nil) != (want.why == "" && !want.away) || errors.Is(err, ErrAway) != want.away || err != nil && !strings.Contains(err.Error(), want.why) {
			t.Errorf("%s: %v", path, err)
		}
		if path == "/good" && fresh != 10*time.Minute {
			t.Errorf("%s counts %s", path, fresh)
		}
	}
	for _, address := range []string{"http://editor.example/good", "https://127.0.0.1/good", "https://editor.example:8443/good"} {
		if _, _, err := f.Get(t.Context(), address); err == nil {
			t.Errorf("%s was asked", address)
		}
	}
}

// Weakness: a host that answers by drops holds a person, and a place, for as long as it
// likes. Checked: the whole of it has five seconds.
func TestSlowHostIsLeft(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	f := reaching(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	if _, _, err := f.Get(t.Context(), id); !errors.Is(err, ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a host that never ends: %v", err)
	}
	<-ended
}

// A name of the internet that leads to this computer is not asked, whatever the
// environment says of proxies.
func TestThisComputerIsNotAsked(t *testing.T) {
	var reached atomic.Int32
	listener := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://"+listener.Addr().String())
	}
	way := NewFetcher().client.Transport.(*http.Transport)
	if way.Proxy != nil {
		t.Error("a proxy is asked")
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, address := range []string{"127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port, "localhost:" + port, "0.0.0.0:" + port} {
		if _, err := way.DialContext(t.Context(), "tcp", address); !errors.Is(err, errNotPublic) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

func TestFresh(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		control, expires, age string
		want                  time.Duration
	}{
		{"", "", "", MinFresh},
		{"max-age=3600", "", "", time.Hour},
		{"public, Max-Age=\"3600\"", "", "", time.Hour},
		{"max-age=3600", "", "1800", 30 * time.Minute},
		{"max-age=3600", "", "99999999999999999999", time.Hour},
		{"max-age=1", "", "", MinFresh},
		{"max-age=-1", "", "", MinFresh},
		{"max-age=2000000000", "", "", MaxFresh},
		{"max-age=99999999999999999999", "", "", MinFresh},
		{"no-store, max-age=3600", "", "", MinFresh},
		{"max-age=3600, no-cache", "", "", MinFresh},
		{"", now.Add(2 * time.Hour).Format(http.TimeFormat), "", 2 * time.Hour},
		{"max-age=3600", now.Add(2 * time.Hour).Format(http.TimeFormat), "", time.Hour},
		{"", "0", "", MinFresh},
		{"", now.Add(-time.Hour).Format(http.TimeFormat), "", MinFresh},
	} {
		h := http.Header{"Cache-Control": {tt.control}, "Expires": {tt.expires}, "Age": {tt.age}}
		if got := freshFor(h, now); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
