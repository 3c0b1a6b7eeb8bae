package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"porchlight/control/serve"
	"porchlight/internal/commandline"
)

// configurable are the settings that the environment and a configuration file
// may hold: all that serve takes, because one file serves every command.
func configurable() (names []string) {
	serveCommand(terminal{}).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != flagFile {
			names = append(names, f.Name)
		}
	})
	return names
}

// where is which control plane a command is about.
type where struct {
	file string
	serve.Config
}

// flags adds what every command takes.
func (w *where) flags(f *pflag.FlagSet) {
	f.StringVar(&w.file, flagFile, "", "YAML file with settings named like these flags")
	f.StringVar(&w.DataDir, "data", "", "data directory")
	f.StringVar(&w.Postgres, "postgres", "", "keep the rows in this PostgreSQL database (better in PORCHLIGHT_CONTROL_POSTGRES: it holds a password)")
	f.StringVar(&w.Domain, "domain", "", "domain under which the computers are")
	f.StringVar(&w.AuthHost, "auth-host", "", "host of sign-in and agents (default control.DOMAIN)")
	f.IntVar(&w.PublicPort, "public-port", 0, "port visitors use (default that of the first --listen)")
}

// complete reads what was not given as flags.
func (w *where) complete(cmd *cobra.Command) error {
	return complete(cmd.Flags(), configurable(), os.LookupEnv)
}

// collectOften has garbage take at most half of what the rest takes, and not as much, unless
// the operator chose: nearly all that a node keeps is of computers that sleep, who leave
// little, and who all come at once leave the less room behind.
func collectOften(getenv func(string) (string, bool)) {
	if _, chosen := getenv("GOGC"); !chosen {
		debug.SetGCPercent(50)
	}
}

func serveCommand(term terminal) *cobra.Command {
	var w where
	var level, passwordFile string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run control plane and relay until SIGTERM",
		Long: `Run control plane and relay until SIGTERM, then finish what is under way.

Every flag may also be set in the environment (--auth-host as
PORCHLIGHT_CONTROL_AUTH_HOST) or in the YAML file of --config (auth-host: ...);
flags count more than the environment, and the environment more than the file.`,
		Example: `  porchlight-control serve --data /var/lib/porchlight --domain porch.example --listen :443 \
      --tls files --cert /etc/porchlight/cert.pem --key /etc/porchlight/key.pem
  porchlight-control serve --config /etc/porchlight/control.yaml`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			exposed := w.passwordsInArgv()
			if err := w.complete(cmd); err != nil {
				return err
			}
			if err := w.handedOver(&passwordFile); err != nil {
				return err
			}
			var err error
			if w.Mail.SMTPPassword, err = smtpPassword(passwordFile, os.LookupEnv); err != nil {
				return err
			}
			var slogLevel slog.Level
			if err := slogLevel.UnmarshalText([]byte(level)); err != nil {
				return commandline.Usagef("--log-level is debug, info, warn or error, not %q", level)
			}
			w.Log = slog.New(slog.NewJSONHandler(term.err, &slog.HandlerOptions{Level: slogLevel}))
			if w.Node != "" {
				w.Log = w.Log.With("node", w.Node)
			}
			if err := w.Complete(); err != nil {
				return commandline.Usage(err)
			}
			for _, name := range exposed {
				w.Log.Warn("a password is in the command line, where every user of this machine can read it; set it in the environment or in the file of --config", "flag", "--"+name)
			}
			w.Version = version()
			collectOften(os.LookupEnv)
			node, err := serve.Open(cmd.Context(), w.Config)
			if err != nil {
				return err
			}
			relay, metrics := node.Addrs()
			w.Log.Info("serving", "auth_url", node.AuthURL(), "listen", strings.Join(relay, " "), "metrics", metrics, "version", version())
			// For people, and for scripts that asked for a free port.
			fmt.Fprintf(term.out, "Porchlight control plane at %s, listening on %s\n", node.AuthURL(), strings.Join(relay, " "))
			if w.AdminAddress != "" {
				fmt.Fprintf(term.out, "Operators find /admin at %s\n", node.AdminURL())
			}
			if address := node.DNSAddr(); address != "" {
				fmt.Fprintf(term.out, "DNS for %s at %s\n", w.DNSZone, address)
			}
			if metrics != "" {
				fmt.Fprintf(term.out, "Metrics and health at http://%s\n", metrics)
			}
			err = node.Run(cmd.Context())
			if err == nil {
				w.Log.Info("stopped")
			}
			return err
		},
	}
	f := cmd.Flags()
	w.flags(f)
	f.DurationVar(&w.PostgresWait, "postgres-wait", serve.DefaultPostgresWait, "how long to wait at the start for a database that does not answer yet")
	f.StringArrayVar(&w.Listen, "listen", nil, "address visitors, agents and the auth host connect to; may be given several times")
	f.StringVar(&w.TunnelAddress, "tunnel-address", "", "host:port at which agents reach this node (default the auth host and public port)")
	f.StringVar(&w.TLS, "tls", serve.TLSInternal, "certificate of the auth host: internal (an authority of its own), acme (Let's Encrypt) or files")
	f.StringVar(&w.ACMEDirectory, "acme-directory", "", "with --tls acme: URL of another authority's directory")
	f.StringVar(&w.SealKey, "seal-key", "", "with --tls acme: file with the key that seals account and certificates in the store, the same for all nodes (porchlight-control seal-key make FILE)")
	f.StringVar(&w.CertFile, "cert", "", "with --tls files: certificate and chain (PEM)")
	f.StringVar(&w.KeyFile, "key", "", "with --tls files: key (PEM)")
	f.StringVar(&w.Mail.SMTP, "smtp", "", "mail server, smtp://user@host:587 (STARTTLS) or smtps://user@host:465; without one mails are kept for the outbox command")
	f.StringVar(&passwordFile, "smtp-password-file", "", "file with the password of the user in --smtp (or set PORCHLIGHT_CONTROL_SMTP_PASSWORD)")
	f.StringVar(&w.Mail.MailFrom, "mail-from", "", "sender of the mails (default porchlight@ the auth host)")
	f.StringVar(&w.Mail.OutboxDir, "outbox", "", "without --smtp: also write the mails to files in this directory")
	f.StringArrayVar(&w.OIDC, "oidc", nil, "JSON file of an OpenID provider people can sign in with; may be given several times")
	f.StringVar(&w.Metrics, "metrics", "", "address of /healthz, /livez, /readyz and /metrics, on the loopback interface")
	f.BoolVar(&w.MetricsExposed, "metrics-exposed", false, "let --metrics be an address that others can reach")
	f.StringVar(&w.AdminAddress, "admin-address", "", "other address for /admin, under the auth host's name and certificate; the auth host has none then")
	f.StringVar(&w.Node, "node", "", "name of this node, for logs and agents")
	f.StringVar(&w.PeerAddress, "peer-address", "", "private host:port at which the other nodes of one PostgreSQL reach this one")
	f.StringVar(&w.NewsAddress, "news-address", "", "private host:port at which the other nodes tell this one what changed; empty means the host of --peer-address and a port 100 above")
	f.StringArrayVar(&w.TrustedProxies, "trusted-proxies", nil, "address or network of the load balancers in front, which must send a PROXY header (version 1 or 2); may be given several times")
	w.dnsFlags(f)
	for _, s := range serve.LimitSettings {
		f.IntVar(s.Field(&w.Limits), s.Name, 0, s.About)
	}
	f.BoolVar(&w.OpenSignUp, "open-sign-up", false, "let any address make an account by signing in")
	f.BoolVar(&w.MembersEnrol, "members-enrol", false, "let people who were only invited connect computers of their own")
	f.StringVar(&w.UpdateNotice.Address, "update-address", "", "https:// address where computers look once a day whether there is a newer version, unless their owner says otherwise")
	f.StringVar(&w.UpdateNotice.Key, "update-key", "", "public key that signs there, in base64; named together with the address")
	f.StringVar(&w.SecurityContact, "security-contact", "", "mail address or https:// address where weaknesses of this server are reported, told at /.well-known/security.txt")
	f.StringVar(&w.InstallDir, "install-dir", "", "directory with the files of a release, which anybody may then fetch at /install/ of the auth host")
	f.StringVar(&w.AuditHead, "audit-head", "", "where the signed end of the audit log is told every five minutes, and at start and stop: syslog, an https:// address it is posted to, or a file")
	f.DurationVar(&w.AuditKeep, "audit-keep", serve.DefaultAuditKeep, "how long rows of the audit log stay; 0 for ever")
	f.StringVar(&w.AbuseContact, "abuse-contact", "", "mail address or https:// address that people are told to ask where you have suspended something (default the auth host)")
	f.DurationVar(&w.DrainWait, "drain-wait", 0, "how long connections are still taken after SIGTERM, while /livez and /readyz say no already")
	f.DurationVar(&w.Grace, "grace", serve.DefaultGrace, "how long what is under way may take after SIGTERM")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}
