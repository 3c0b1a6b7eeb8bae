package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: relays that a control plane names were dialled wherever they are, so that an
// operator could have a computer connect to what listens in its owner's network.
// Attack: a control plane on the internet names one at an own address.
// Checked: nothing connects there; it does where the control plane is in such a network
// itself, by its certificate and not by what names lead to, and in local mode.
func TestRelaysInTheOwnNetwork(t *testing.T) {
	t.Parallel()
	control := httptest.NewTLSServer(http.NotFoundHandler()) // at 127.0.0.1
	t.Cleanup(control.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(control.Certificate())
	// 127.0.0.2 and up are not of the internet here, and 127.0.0.1 is where said.
	internet := func(at netip.Addr) bool { return at == netip.MustParseAddr("127.0.0.1") }
	nowhere := func(netip.Addr) bool { return false }
	// of are those of a control plane that is trusted by these authorities.
	of := func(roots *x509.CertPool, url string, public func(netip.Addr) bool) *relayAddresses {
		return &relayAddresses{control: &ControlPlane{RootCAs: roots}, auth: programs.Got(authRelay(url))(t), public: public}
	}
	for what, c := range map[string]struct {
		relays *relayAddresses
		want   error
	}{
		"of a control plane on the internet":   {of(trusted, control.URL, internet), errRelayNear},
		"of one in the same network":           {of(trusted, control.URL, nowhere), nil},
		"of one that only says to be":          {of(x509.NewCertPool(), control.URL, nowhere), errRelayNear},
		"of one that cannot be reached":        {of(trusted, "https://127.0.0.1:1", nowhere), errRelayNear},
		"of the control plane of this process": {&relayAddresses{control: &ControlPlane{Local: true}, public: nowhere}, nil},
	} {
		err := c.relays.allowed(t.Context(), netip.MustParseAddr("127.0.0.2"))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if err := c.relays.allowed(t.Context(), netip.MustParseAddr("127.0.0.1")); c.relays.public(netip.MustParseAddr("127.0.0.1")) && err != nil {
			t.Errorf("%s: a relay on the internet: %v", what, err)
		}
	}
}

// What is refused is not connected to, whatever a name leads to.
func TestTunnelAsksBeforeItConnects(t *testing.T) {
	t.Parallel()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	asked := make(chan netip.Addr, 100)
	way := programs.Got(tunnel.New(tunnel.Config{
		Relays: func() []controlapi.Relay {
			return []controlapi.Relay{{Address: "router.localhost:" + port, ServerName: "control.example"}}
		},
		Credential: func() string { return "x" },
		Open:       func() bool { return false },
		Opened:     func() (<-chan struct{}, func()) { return nil, func() {} },
		Allowed: func(_ context.Context, at netip.Addr) error {
			select {
			case asked <- at:
			default:
			}
			return errRelayNear
		},
		Log: slog.New(slog.DiscardHandler),
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = way.Run(ctx) }()
	for range 3 {
		if at := <-asked; !at.IsLoopback() {
			t.Errorf("asked about %v", at)
		}
	}
	cancel()
	<-ended
	_ = l.(*net.TCPListener).SetDeadline(time.Now())
	if conn, err := l.Accept(); err == nil {
		_ = conn.Close()
		t.Error("it connected all the same")
	}
}
