package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/dnsupdate"
	"porchlight/control/kv"
	"porchlight/control/provider"
	"porchlight/control/relay"
	"porchlight/internal/durable"
	"porchlight/internal/samesite"
)

// TLS modes of the auth host.
const (
	TLSInternal = "internal" // an authority of its own, in DataDir/ca
	TLSFiles    = "files"    // CertFile and KeyFile, read again when they change
	TLSACME     = "acme"     // issued over ACME, kept in DataDir/acme or, sealed, in the store
)

// StoreFile is the name of the store in a data directory.
const StoreFile = "control.db"

// DefaultPostgresWait is enough for a database that recovers after a crash.
const DefaultPostgresWait = 5 * time.Minute

// DefaultAuditKeep is how long rows of the audit log stay: two years.
const DefaultAuditKeep = 2 * 365 * 24 * time.Hour

// DefaultGrace is how long what is under way may take to finish.
const DefaultGrace = 10 * time.Second

// Config of a Node. Domain, Listen, and one of DataDir and Postgres are
// required.
type Config struct {
	DataDir  string
	Postgres string // URL; holds a password and is never logged
	// PostgresWait is how long Open waits for a database that cannot be reached or
	// is recovering; zero means not at all.
	PostgresWait time.Duration
	control.Naming
	Listen []string // host:port of the relay and the auth host
	// TunnelAddress is host:port at which agents reach this node; empty means
	// the auth host and the public port.
	TunnelAddress string
	TLS           string
	CertFile      string // PEM, with the chain
	KeyFile       string // PEM
	ACMEDirectory string // URL of the authority; empty means Let's Encrypt
	// SealKey is a file with the key that seals what belongs to ACME in the store, for
	// all nodes of that. Empty means that it is this node's alone, in files.
	SealKey string
	Mail    MailConfig
	// OIDC are the files of the OpenID providers people can sign in with (provider.ReadFile).
	OIDC      []string
	providers []provider.Config // the same, read
	// Metrics is host:port of /healthz, /livez, /readyz and /metrics; empty means none.
	// They ask nobody who they are, so an address that is not of the loopback
	// interface is refused unless MetricsExposed.
	Metrics        string
	MetricsExposed bool
	// AdminAddress is host:port of /admin, under the name of the auth host and its certificate;
	// empty for the auth host itself.
	AdminAddress string
	Version      string // of the program, for whoever looks which nodes live
	Node         string // tells this node from others in logs, metrics and to agents
	// PeerAddress is host:port at which the other nodes of one PostgreSQL reach
	// this one, for visitors whose computer is connected here; empty means that
	// it is the only node, or that a visitor must find the right one.
	PeerAddress string
	// NewsAddress is host:port at which the other nodes tell this one news; empty
	// means the host of PeerAddress, and newsAbove its port.
	NewsAddress string
	// PublicAddresses are the IP addresses at which visitors reach this node. DNS, host:port, is
	// where it answers for DNSZone with those of all nodes; empty for nowhere.
	PublicAddresses []string
	public          []netip.Addr // the same, read
	DNS             string
	DNSZone         string
	// DNSUpdate is host:port of the operator's own server of DNSZone, which is told of the
	// challenges of computers' certificates, signed by the key in the file DNSUpdateKey.
	DNSUpdate    string
	DNSUpdateKey string
	dnsKey       dnsupdate.Key // the same, read
	// Limits are the relay's; zero fields take its defaults.
	Limits relay.Limits
	// TrustedProxies are the addresses or networks (CIDR) of load balancers in
	// front, which must send a PROXY header.
	TrustedProxies []string
	proxies        []netip.Prefix // the same, read
	// OpenSignUp and MembersEnrol are those of control.Config.
	OpenSignUp   bool
	MembersEnrol bool
	// Resolvers are asked for the records of own domains, an IP address each, with a port
	// unless that is 53; none where there is only "none".
	Resolvers []string
	// UpdateNotice is where agents are told that a newer version is there; zero for
	// nowhere.
	UpdateNotice controlapi.UpdateNotice
	// SecurityContact is where weaknesses are reported, a mail address or an https:// or
	// mailto: address, for security.txt; empty for none.
	SecurityContact string
	// InstallDir holds the files of a release, which anybody may fetch below /install/; empty
	// for none.
	InstallDir string
	// AuditHead is where the signed end of the audit log is told: "syslog", an https://
	// address or a file; empty for nowhere. AuditKeep is how long its rows stay.
	AuditHead string
	AuditKeep time.Duration
	// AbuseContact is whom people ask about what was suspended, a mail address or an
	// https:// address; empty for the auth host.
	AbuseContact string
	// DrainWait is how long connections are still taken after /livez has turned
	// to 503: what a load balancer needs to notice.
	DrainWait time.Duration
	Grace     time.Duration // for what is under way then
	Log       *slog.Logger
}

// StoreURL is where the rows are, for kv.Open; empty where nothing says it.
func (c *Config) StoreURL() string {
	switch {
	case c.Postgres != "":
		return "postgres:" + c.Postgres
	case c.DataDir != "":
		return "file:" + filepath.Join(c.DataDir, StoreFile)
	}
	return ""
}

// StoreExists says whether kv.Open would find a store, rather than make one. Of a
// database only the server knows that, which is asked later: here it exists.
func (c *Config) StoreExists() bool {
	if kv.Shared(c.StoreURL()) {
		return true
	}
	_, err := os.Stat(filepath.Join(c.DataDir, StoreFile))
	return !errors.Is(err, fs.ErrNotExist) // what it is otherwise, kv.Open says
}

func (c *Config) updateNotice() *controlapi.UpdateNotice {
	if c.UpdateNotice == (controlapi.UpdateNotice{}) {
		return nil
	}
	return &c.UpdateNotice
}

// releaseSums is in every release. A directory without it is another one by mistake, maybe with secrets in it.
const releaseSums = "SHA256SUMS"

// openInstall opens InstallDir, so that no name leads out of it whatever comes of it later.
func (n *Node) openInstall() (err error) {
	if n.cfg.InstallDir == "" {
		return nil
	}
	if n.install, err = os.OpenRoot(n.cfg.InstallDir); err != nil {
		return fmt.Errorf("cannot open the directory with a release %s: %w (--install-dir)", n.cfg.InstallDir, durable.Plain(err))
	}
	if _, err := n.install.Lstat(releaseSums); err != nil {
		return fmt.Errorf("%s holds no release, as it has no %s; nothing in it is given to anybody (--install-dir)", n.cfg.InstallDir, releaseSums)
	}
	return nil
}

// warnOfNeighbours says at the start what computers of different people can do to
// each other by cookies, where the domain is on no list that keeps them apart.
func (n *Node) warnOfNeighbours() {
	const cure = "use a domain of the Public Suffix List for computers, as this program knows the list (docs/security.md: Cookies of neighbours)"
	switch samesite.Of(n.cfg.Domain, n.cfg.AuthHost) {
	case samesite.SignIn:
		n.cfg.Log.Warn("browsers take all computers and the sign-in page for one site: a page of anybody's computer can set cookies for all of them",
			"domain", n.cfg.Domain, "auth_host", n.cfg.AuthHost, "cure", cure+", or at least another domain for the auth host")
	case samesite.Computers:
		n.cfg.Log.Warn("browsers take all computers for one site: a page of one can set cookies for the others", "domain", n.cfg.Domain, "cure", cure)
	}
}

// agentFile is the store of an agent, in the agent's own data directory.
const agentFile = "agent.db"

// notAnAgents refuses the data directory of an agent. A server there would put
// its own certificate authority in the place of the one that the owner's
// browsers trust.
func notAnAgents(dataDir string) error {
	if dataDir == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dataDir, agentFile)); err == nil {
		return fmt.Errorf("%s is the data directory of a Porchlight agent, and a server needs one of its own. Choose another one (--data)", dataDir)
	}
	return nil
}
