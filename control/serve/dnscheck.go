package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// Finding is what CheckDNS says of one thing: that it is in order, or what to do.
type Finding struct {
	Good bool   `json:"good"`
	Text string `json:"text"`
	Next string `json:"next,omitempty"` // what to type; may be several lines
}

const (
	checkIn    = 3 * time.Second  // one question
	updatedIn  = 20 * time.Second // until resolvers know what another server was told
	askAgainIn = time.Second
)

// CheckDNS looks whether the DNS of the computers' names is as certificates for all of them
// need it. put has a challenge that is nobody's be answered by the nodes of the store.
func CheckDNS(ctx context.Context, c Config, put func(context.Context) (controlapi.DNSRecord, error)) ([]Finding, error) {
	if err := errors.Join(c.completeResolvers(), c.completeDNS()); err != nil {
		return nil, err
	}
	switch {
	case c.DNS != "":
		return c.checkOwn(ctx, put), nil
	case c.DNSUpdate != "":
		return c.checkUpdate(ctx), nil
	}
	return []Finding{{Text: "Nothing publishes challenges, so each app has a certificate of its own, and everybody can read its name in the public logs.",
		Next: "set dns, dns-zone and public-address, or dns-update and dns-update-key (docs/operating.md: Certificates of the computers)"}}, nil
}

func (c *Config) checkOwn(ctx context.Context, put func(context.Context) (controlapi.DNSRecord, error)) (found []Finding) {
	_, port, _ := net.SplitHostPort(c.DNS)
	for _, addr := range c.public {
		for _, network := range []string{"udp", "tcp"} {
			found = append(found, c.answersAt(ctx, network, net.JoinHostPort(addr.String(), port)))
		}
	}
	found = append(found, c.delegated(ctx))
	record, err := put(ctx)
	if err != nil {
		return append(found, Finding{Text: "No challenge could be tried: " + err.Error()})
	}
	return append(found, c.seen(ctx, record, 0, "Look at the firewall: resolvers come by UDP and TCP. If the delegation is right, wait until what they knew before is over."))
}

// checkUpdate tells the other server of a challenge, and has it taken away again.
func (c *Config) checkUpdate(ctx context.Context) []Finding {
	publish, _ := c.publishing()
	record := controlapi.DNSRecord{Type: "TXT", Name: controlapi.ChallengePrefix + control.CheckName + "." + c.Domain, Value: control.NewChallenge()}
	if err := publish(ctx, record.Name, []string{record.Value}); err != nil {
		return []Finding{{Text: err.Error() + "."}}
	}
	found := []Finding{{Good: true, Text: fmt.Sprintf("The DNS server at %s takes challenges.", c.DNSUpdate)},
		c.seen(ctx, record, updatedIn, "Look whether it is the server that "+c.DNSZone+" is delegated to, and tells its secondary ones at once.")}
	if err := publish(context.WithoutCancel(ctx), record.Name, nil); err != nil {
		found = append(found, Finding{Text: err.Error() + "."})
	}
	return found
}

// answersAt asks one address for the zone.
func (c *Config) answersAt(ctx context.Context, network, address string) Finding {
	a, err := asked(ctx, network, address, c.DNSZone, dns.TypeSOA)
	way := strings.ToUpper(network)
	switch {
	case err != nil:
		_, port, _ := net.SplitHostPort(address)
		return Finding{Text: fmt.Sprintf("Nobody answers %s at %s.", way, address), Next: "ufw allow " + port + "/" + network}
	case !a.Authoritative || len(a.Answer) == 0:
		return Finding{Text: fmt.Sprintf("Another program answers %s at %s, and not for %s.", way, address, c.DNSZone), Next: "stop it, or set dns to another address"}
	}
	return Finding{Good: true, Text: fmt.Sprintf("%s at %s is answered.", way, address)}
}

// delegated asks resolvers who answers for the zone, and a name that nobody asked for before:
// who answers that has come to a node.
func (c *Config) delegated(ctx context.Context) Finding {
	var raw [8]byte
	rand.Read(raw[:])
	fresh := "check-" + hex.EncodeToString(raw[:]) + "." + c.Domain
	for _, resolver := range c.asks() {
		servers, err := asked(ctx, "udp", resolver, c.DNSZone, dns.TypeNS)
		if err != nil {
			return Finding{Text: fmt.Sprintf("The resolver %s does not answer.", resolver), Next: "look whether this machine may ask it, or name others with resolver"}
		}
		if !slices.ContainsFunc(servers.Answer, func(rr dns.RR) bool {
			ns, is := rr.(*dns.NS)
			return is && dns.IsSubDomain(dns.CanonicalName(c.DNSZone), dns.CanonicalName(ns.Ns))
		}) {
			return Finding{Text: fmt.Sprintf("%s is not delegated to this server: %s knows no name server of it here.", c.DNSZone, resolver), Next: c.delegation()}
		}
		if a, err := asked(ctx, "udp", resolver, fresh, c.addressType()); err != nil || a.Rcode != dns.RcodeSuccess || len(a.Answer) == 0 {
			return Finding{Text: fmt.Sprintf("%s is delegated here, but %s gets no answer.", c.DNSZone, resolver), Next: "ufw allow 53, and look whether these are right:\n" + c.delegation()}
		}
	}
	return Finding{Good: true, Text: fmt.Sprintf("%s is delegated here, and resolvers get answers.", c.DNSZone)}
}

// delegation are the records that whoever has the zone above enters.
func (c *Config) delegation() string {
	var lines []string
	for i, server := range []string{"ns1.", "ns2."} {
		lines = append(lines, fmt.Sprintf("%s. NS %s%s.", c.DNSZone, server, c.DNSZone))
		addr := c.public[min(i, len(c.public)-1)]
		kind := "A"
		if addr.Is6() {
			kind = "AAAA"
		}
		lines = append(lines, fmt.Sprintf("%s%s. %s %s", server, c.DNSZone, kind, addr))
	}
	return strings.Join(lines, "\n")
}

func (c *Config) addressType() uint16 {
	if c.public[0].Is4() {
		return dns.TypeA
	}
	return dns.TypeAAAA
}

// seen says whether resolvers find a record, which they may learn of within a time.
func (c *Config) seen(ctx context.Context, record controlapi.DNSRecord, within time.Duration, next string) Finding {
	late := time.Now().Add(within)
	for _, resolver := range c.asks() {
		for {
			a, err := asked(ctx, "udp", resolver, record.Name, dns.TypeTXT)
			if err == nil && slices.ContainsFunc(a.Answer, func(rr dns.RR) bool {
				txt, is := rr.(*dns.TXT)
				return is && strings.Join(txt.Txt, "") == record.Value
			}) {
				break
			}
			if !time.Now().Before(late) || ctx.Err() != nil {
				return Finding{Text: fmt.Sprintf("A challenge at %s is not seen by %s.", record.Name, resolver), Next: next}
			}
			time.Sleep(askAgainIn)
		}
	}
	return Finding{Good: true, Text: "Challenges are seen: computers get one certificate for all their names."}
}

// asks are the resolvers to ask: those of own domains, or the usual ones where there are none.
func (c *Config) asks() []string {
	if slices.Equal(c.Resolvers, []string{noResolvers}) {
		return []string{net.JoinHostPort(DefaultResolvers[0], "53")}
	}
	return c.Resolvers
}

// asked is the answer to one question, by TCP where it is too long.
func asked(ctx context.Context, network, server, name string, kind uint16) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, checkIn)
	defer cancel()
	q := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	a, _, err := (&dns.Client{Net: network, Timeout: checkIn}).ExchangeContext(ctx, q, server)
	if err == nil && a.Truncated && network == "udp" {
		a, _, err = (&dns.Client{Net: "tcp", Timeout: checkIn}).ExchangeContext(ctx, q, server)
	}
	return a, err
}
