package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"porchlight/control/admin"
	"porchlight/control/controlapi"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
)

// dnsFlags adds what says how names get into the DNS.
func (w *where) dnsFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&w.PublicAddresses, "public-address", nil, "IP address at which visitors reach this node, for --dns of this and the other nodes; may be given several times")
	f.StringVar(&w.DNS, "dns", "", "address to answer DNS at, by UDP and TCP, for --dns-zone: with the addresses of the nodes that are there")
	f.StringVar(&w.DNSZone, "dns-zone", "", "with --dns: the zone that is delegated here, which --domain is in; with --dns-update: that server's (default --domain)")
	f.StringVar(&w.DNSUpdate, "dns-update", "", "host:port of your own DNS server, told of what certificates for all names of a computer need (RFC 2136)")
	f.StringVar(&w.DNSUpdateKey, "dns-update-key", "", "with --dns-update: file with the key that it takes changes by, as tsig-keygen writes it")
	f.StringArrayVar(&w.Resolvers, "resolver", nil, "IP address of a resolver that own domains are looked up by, two to four of them (default "+strings.Join(serve.DefaultResolvers, " and ")+"), or none; may be given several times")
}

// errNotInOrder is what check ends with where something is wrong; it has said what.
var errNotInOrder = errors.New("the DNS is not in order")

// checkCommand is "check": whether the DNS is as certificates need it.
func checkCommand(term terminal) *cobra.Command {
	var w where
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the DNS is as certificates for all names of a computer need it, and what to type",
		Long: `Say whether the DNS is as certificates for all names of a computer need it: that the
zone is delegated here, that this server answers by UDP and TCP, and that resolvers
see a challenge. With --dns-update that server is told of one, which is taken away
again. What is wrong comes with what to type.

Exit codes: 0 all is in order, 1 something is not, 2 the command line is not right.`,
		Example: `  porchlight-control check --config /etc/porchlight/control.yaml`,
		Args:    commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.complete(cmd); err != nil {
				return err
			}
			if w.Domain == "" {
				return commandline.Usagef("say under which domain the computers are: --domain porch.example")
			}
			found, err := serve.CheckDNS(cmd.Context(), w.Config, func(ctx context.Context) (record controlapi.DNSRecord, err error) {
				err = w.with(ctx, func(c *admin.Client) error { record, err = c.CheckChallenge(ctx); return err })
				return record, err
			})
			if err != nil {
				return commandline.Usage(err)
			}
			return term.findings(found, asJSON)
		},
	}
	w.flags(cmd.Flags())
	w.dnsFlags(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

// findings prints what was found; what is not in order is an error, too.
func (t terminal) findings(found []serve.Finding, asJSON bool) error {
	var err error
	if slices.ContainsFunc(found, func(f serve.Finding) bool { return !f.Good }) {
		err = errNotInOrder
	}
	if asJSON {
		return errors.Join(t.json(found), err)
	}
	for _, f := range found {
		mark := "ok"
		if !f.Good {
			mark = "!!"
		}
		fmt.Fprintf(t.out, "%s  %s\n", mark, f.Text)
		for line := range strings.Lines(f.Next) {
			fmt.Fprintf(t.out, "      %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return err
}
