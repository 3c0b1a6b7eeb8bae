package controlapi

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

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers a Client with a handler.
func serve(t testing.TB, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(HeaderProtocol, Protocol)
		handler(w, r)
	}))
	transport := NewTransport(nil)
	transport.Proxy = nil
	t.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
	return &Client{BaseURL: server.URL + "/", Credential: "the-credential", HTTP: &http.Client{Transport: transport}}
}

// What costs a control plane nothing says whether it is there.
func TestAnswers(t *testing.T) {
	t.Parallel()
	there := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != PathPublicKey {
			t.Errorf("the request is %s %s", r.Method, r.URL)
		}
		io.WriteString(w, `{"publicKey": "x"}`)
	})
	if err := there.Answers(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	var e *Error
	if err := silent.Answers(ctx); !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status     int
		body       string
		code       string
		retryAfter time.Duration
	}{
		"a refusal":          {429, `{"error": "too_many", "message": "Too many."}`, CodeTooMany, 7 * time.Second},
		"a proxy's page":     {502, `<html>Bad gateway</html>`, CodeUnavailable, 7 * time.Second},
		"an error of others": {400, `{"error": "invalid_request"}`, CodeUnavailable, 7 * time.Second},
		"a redirect":         {307, ``, CodeUnavailable, 7 * time.Second},
		"no JSON":            {200, `hello`, CodeUnavailable, 0},
		"cut off":            {200, `{"accountId": "x`, CodeUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			_, err := c.RedeemVisit(t.Context(), Redeem{Code: "x"})
			var e *Error
			if !errors.As(err, &e) || e.Code != tt.code || e.Message == "" || e.RetryAfter != tt.retryAfter {
				t.Errorf("got %v (%+v)", err, e)
			}
			if asked.Load() != 1 {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

func TestDialContextKnowsLocalhost(t *testing.T) {
	t.Parallel()
	accept := func(address string) (port string) {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			return ""
		}
		t.Cleanup(func() { ln.Close() })
		_, port, _ = net.SplitHostPort(ln.Addr().String())
		return port
	}
	ports := []string{accept("127.0.0.1:0"), accept("[::1]:0")}
	if ports[0] == "" {
		t.Fatal("nothing can listen on 127.0.0.1")
	}
	for _, port := range ports {
		if port == "" {
			continue // no IPv6 here
		}
		for _, host := range []string{"localhost", "control.localhost", "Notes.Maya.LOCALHOST", "control.localhost."} {
			conn, err := DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			if ip := conn.RemoteAddr().(*net.TCPAddr).IP; !ip.IsLoopback() {
				t.Errorf("%s leads to %v", host, ip)
			}
			conn.Close()
		}
	}
	if _, err := DialContext(t.Context(), "tcp", "no port"); err == nil {
		t.Error("an address without a port was dialled")
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add(429, "7", `{"error": "too_many", "message": "Too many."}`)
	f.Add(502, "soon", "<html>")
	f.Add(400, "-1", `{"error": 1}`)
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Request: httptest.NewRequest("GET", "http://x/", nil)}
		var e *Error
		if err := refusal(resp, strings.NewReader(body)); !errors.As(err, &e) || e.Code == "" || e.Message == "" || e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour {
			t.Fatalf("got %+v", err)
		}
	})
}
