package agent

import (
	"net/http"
	"net/url"
	"testing"
)

// Weakness: with HTTPS_PROXY set, as many an office has it, the agent of local
// mode asks that proxy for the control plane in its own process, gets nowhere,
// and nobody can sign in.
// Checked: the environment's proxy is for a control plane elsewhere only.
func TestLocalControlPlaneNeedsNoProxy(t *testing.T) {
	t.Parallel()
	elsewhere := &ControlPlane{AuthURL: "https://control.example.net"}
	if elsewhere.transport().Proxy == nil {
		t.Error("a control plane elsewhere is never reached through a proxy")
	}
	here := &ControlPlane{AuthURL: "https://control.localhost:8443", Local: true}
	if proxy := here.transport().Proxy; proxy != nil {
		u, err := proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "control.localhost:8443"}})
		t.Errorf("the control plane of this process is reached through a proxy, here %v (%v)", u, err)
	}
}
