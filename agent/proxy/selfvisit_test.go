package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"porchlight/test/programs"
)

// towards is a transport that finds every address at one place.
func (r *rig) towards(t *testing.T, addr string) *http.Transport {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// TestOwnVisit: a visit of this computer to itself works where the connection ends here,
// and where anybody has it in their hands it does not, whatever they answer. No app and
// nobody's identity has a part in it.
func TestOwnVisit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var reached atomic.Int64
	r.app("notes", func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	direct := r.towards(t, r.addr)
	for _, name := range []string{"notes", ""} {
		if took, err := r.proxy.Visit(t.Context(), name, direct); err != nil || took <= 0 {
			t.Errorf("%q: %v, %v", name, took, err)
		}
	}

	between := func(handler http.Handler) string {
		srv := httptest.NewUnstartedServer(handler)
		srv.TLS = &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12} // one that is trusted
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().String()
	}
	back, _ := url.Parse(origin)
	for what, addr := range map[string]string{
		"another program":     between(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })),
		"somebody in between": between(&httputil.ReverseProxy{Transport: direct, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(back) }}),
		"a page of ours":      between(http.NotFoundHandler()),
	} {
		if _, err := r.proxy.Visit(t.Context(), "notes", r.towards(t, addr)); err == nil || !strings.Contains(err.Error(), "answers at notes.maya.porch.test is not this computer") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.proxy.Visit(t.Context(), "nothing", direct); err == nil {
		t.Error("an address without an app works")
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the app was asked %d times", n)
	}
}

// TestOwnVisitIsNobodyElses: for a stranger there is nothing at the path, with whatever
// number.
func TestOwnVisitIsNobodyElses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := &http.Client{Transport: r.towards(t, r.addr)}
	for _, numbers := range [][]string{nil, {""}, {"AAAAAAAAAAAAAAAAAAAAAAAAAA"}, {"A", "B"}} {
		req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/.porchlight/visit", nil))(t)
		req.Header["Porchlight-Visit"] = numbers
		resp := programs.Got(client.Do(req))(t)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %d", numbers, resp.StatusCode)
		}
	}
}
