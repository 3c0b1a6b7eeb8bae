package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/doctor"
	"porchlight/agent/localapi"
	"porchlight/agent/people"
	"porchlight/agent/trust"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Version of this build, set by the linker.
var Version = "dev"

// Config of an Agent.
type Config struct {
	// DataDir holds everything the agent keeps; it is made 0700 when absent.
	DataDir string
	// Server of the loopback API, which the agent answers until it ends.
	Server *localapi.Server
	// Mode says what kind of process this is; FirstPartyApp is the appId of the
	// app that started the engine, empty for none.
	Mode          agentapi.Mode
	FirstPartyApp string
	// ComputerID is who this computer is at its control plane, empty for
	// nobody. What is kept of people and sessions under another one is forgotten.
	ComputerID string
	// ControlPlane is the one that this computer is connected to; nil for none.
	ControlPlane *ControlPlane
	// NoControlPlane says why there is none, where there should be one.
	NoControlPlane words.Sentence
	// IssueCertificate makes a certificate for one host name.
	IssueCertificate func(name string) (*tls.Certificate, error)
	// ACME has an authority issue them instead; Allowed, OnTrouble and Log are
	// filled in.
	ACME *certs.ACMEConfig
	// Authorities are those that this data directory relies on, and OwnAuthority is the
	// one of the certificates this computer makes itself; both may change while the agent
	// runs. Authorities is nil for those of the system alone.
	Authorities  func() (doctor.Authorities, error)
	OwnAuthority func() (*trust.Authority, error)
	// OwnPorts are further local ports of Porchlight that no app may publish.
	OwnPorts []int
	// Outbox lists the mails kept on this computer, newest first. OutboxSize counts
	// them for each state of the owner, and so without reading them. Both are nil
	// where the control plane is elsewhere.
	Outbox     func(ctx context.Context) ([]agentapi.Mail, error)
	OutboxSize func(ctx context.Context) (int, error)
	// OwnClients are the OAuth clients that the owner makes; nil where the control plane is
	// elsewhere.
	OwnClients *people.OwnClients
	// AllowHosts has clients of these hosts, and of no others, ask for access, as
	// Settings.ClientHosts says; nil where the control plane is elsewhere.
	AllowHosts func(ctx context.Context, hosts []string) error
	// Now is the clock access ends by, also at the control plane of a computer on its
	// own; time.Now when nil.
	Now func() time.Time
	Log *slog.Logger
}

// ControlPlane is how this computer reaches the one that knows it.
type ControlPlane struct {
	AuthURL    string         // https://host[:port], no path
	Credential string         // this computer's device credential
	RootCAs    *x509.CertPool // nil: the system's
	// Local is true where control plane and relay run in this process.
	Local bool
}

// transport makes the connections to the control plane. The proxy of the
// environment is for one elsewhere: it cannot reach what is in this process.
func (c *ControlPlane) transport() *http.Transport {
	t := controlapi.NewTransport(c.RootCAs)
	if c.Local {
		t.Proxy = nil
	}
	return t
}

// DefaultDataDir is where the data directory is unless the owner says
// otherwise: the platform's place for a program's own data.
func DefaultDataDir() string {
	home, _ := os.UserHomeDir()
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "Porchlight")
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "Porchlight")
		}
		return filepath.Join(home, "AppData", "Local", "Porchlight")
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "porchlight")
	}
	return filepath.Join(home, ".local", "share", "porchlight")
}
