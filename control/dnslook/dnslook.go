// Package dnslook asks resolvers whether the DNS says what proves an own domain: the
// record TXT with the bits of one domain, computer and app, and the way from the name to
// that app's host. In comes what is wanted, out goes one verdict of all resolvers and what
// is wrong. It knows nothing of accounts and keeps nothing.
//
// A record counts only where it stands itself: one that an alias of _porchlight.NAME leads
// to is another's to write. Where resolvers disagree, or one of them gives no answer, there
// is no verdict. A resolver that checks DNSSEC answers a forged record with a failure,
// which is no answer.
package dnslook

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
	"porchlight/internal/publicnet"
)

const (
	// maxLinks is how many aliases lead from a name to its end.
	maxLinks = 8
	// answerIn bounds one question to one resolver, and lookIn a whole look.
	answerIn = 1500 * time.Millisecond
	lookIn   = 6 * time.Second
	// maxClimb bounds the names that CAA is looked for at.
	maxClimb = 10
)

// Verdict is what resolvers say together.
type Verdict string

const (
	Proven    Verdict = "proven"
	Gone      Verdict = "gone"      // each says that it is not there
	Elsewhere Verdict = "elsewhere" // the same, and the name leads to another computer of this service
	Unsure    Verdict = "unsure"    // one gives no answer, or they disagree
)

// Wanted is what proves an own domain. Names are lower case, in ASCII, without a dot at
// the end.
type Wanted struct {
	Name   string // the own domain
	Text   string // what its record TXT has to say
	Host   string // the app's host, which it has to lead to
	Root   string // the host of the app's computer
	Domain string // under which all computers are
}

// Found is the outcome of a look.
type Found struct {
	Verdict Verdict
	Why     controlapi.DomainWhy
	// CAA are the authorities that may give certificates for the name; nil for all.
	CAA []string
}

// Looker asks some resolvers. It is safe for concurrent use.
type Looker struct {
	resolvers []string // host:port
}

// New asks these resolvers, host:port each.
func New(resolvers []string) *Looker { return &Looker{slices.Clone(resolvers)} }

// Look asks all resolvers, and none of them for long.
func (l *Looker) Look(ctx context.Context, w Wanted) Found {
	ctx, cancel := context.WithTimeout(ctx, lookIn)
	defer cancel()
	said := make([]Found, len(l.resolvers))
	caa := make([][]string, len(l.resolvers))
	var g errgroup.Group
	for i, resolver := range l.resolvers {
		g.Go(func() error { said[i] = asker{resolver}.look(ctx, w); return nil })
		g.Go(func() error { caa[i] = asker{resolver}.authorities(ctx, w.Name); return nil })
	}
	_ = g.Wait() // none has an error
	out := together(said)
	for _, allowed := range caa { // each that forbids some forbids them
		if allowed != nil {
			out.CAA = allowed
		}
	}
	return out
}

// together is what several resolvers say in one verdict.
func together(said []Found) Found {
	out := Found{Verdict: Unsure, Why: controlapi.DomainNoAnswer}
	counts := map[Verdict]int{}
	for _, s := range said {
		counts[s.Verdict]++
	}
	first := func(v Verdict) controlapi.DomainWhy {
		return said[slices.IndexFunc(said, func(s Found) bool { return s.Verdict == v })].Why
	}
	switch n := len(said); {
	case n < 2 || counts[Unsure] > 0: // one alone proves nothing
	case counts[Proven] == n:
		out.Verdict, out.Why = Proven, ""
	case counts[Proven] > 0:
		out.Why = controlapi.DomainDisagree
	case counts[Elsewhere] > 0:
		out.Verdict, out.Why = Elsewhere, first(Elsewhere)
	default: // that it leads astray, all have to say
		out.Verdict, out.Why = Gone, said[max(0, slices.IndexFunc(said, func(s Found) bool { return !s.Why.Astray() }))].Why
	}
	return out
}

// asker asks one resolver.
type asker struct{ resolver string }

func (a asker) look(ctx context.Context, w Wanted) Found {
	missing, err := a.text(ctx, w)
	if err != nil {
		return Found{Verdict: Unsure, Why: controlapi.DomainNoAnswer}
	}
	// Where it leads is asked all the same: to another computer is the end at once.
	verdict, why, err := a.way(ctx, w)
	switch {
	case err != nil:
		return Found{Verdict: Unsure, Why: controlapi.DomainNoAnswer}
	case verdict == Elsewhere, why.Astray():
	case missing != "":
		verdict, why = Gone, missing
	}
	return Found{Verdict: verdict, Why: why}
}

// text says what is wrong with the record TXT; nothing where it is as wanted.
func (a asker) text(ctx context.Context, w Wanted) (controlapi.DomainWhy, error) {
	name := controlapi.DomainPrefix + w.Name
	answer, err := a.ask(ctx, name, dns.TypeTXT)
	if err != nil {
		return "", err
	}
	missing := controlapi.DomainNoText
	for _, rr := range answer {
		txt, ok := rr.(*dns.TXT)
		if !ok || !named(rr, name) {
			continue
		}
		if strings.Join(txt.Txt, "") == w.Text {
			return "", nil
		}
		missing = controlapi.DomainOtherText
	}
	return missing, nil
}

// way follows a name to its end.
func (a asker) way(ctx context.Context, w Wanted) (Verdict, controlapi.DomainWhy, error) {
	name := w.Name
	for range maxLinks + 1 {
		next, err := a.alias(ctx, name)
		switch {
		case err != nil:
			return "", "", err
		case next == "":
			return a.end(ctx, name, w)
		case next == w.Host:
			return Proven, "", nil
		case next == w.Root || strings.HasSuffix(next, "."+w.Root):
			return Gone, controlapi.DomainOtherName, nil
		case strings.HasSuffix(next, "."+w.Domain):
			return Elsewhere, controlapi.DomainOtherOfOurs, nil
		}
		name = next
	}
	return Gone, controlapi.DomainLoop, nil
}

// alias is where a name's record CNAME leads; nowhere without one.
func (a asker) alias(ctx context.Context, name string) (string, error) {
	answer, err := a.ask(ctx, name, dns.TypeCNAME)
	if err != nil {
		return "", err
	}
	for _, rr := range answer {
		if cname, ok := rr.(*dns.CNAME); ok && named(rr, name) {
			return strings.ToLower(strings.TrimSuffix(cname.Target, ".")), nil
		}
	}
	return "", nil
}

// end judges a name that has addresses of its own, as that of a zone must: each has to be
// one of the app's host.
func (a asker) end(ctx context.Context, name string, w Wanted) (Verdict, controlapi.DomainWhy, error) {
	theirs, err := a.addresses(ctx, name)
	if err != nil {
		return "", "", err
	}
	if len(theirs) == 0 {
		return Gone, controlapi.DomainNoName, nil
	}
	if slices.ContainsFunc(theirs, func(addr netip.Addr) bool { return !publicnet.Has(addr) }) {
		return Gone, controlapi.DomainPrivate, nil
	}
	ours, err := a.addresses(ctx, w.Host)
	if err != nil {
		return "", "", err
	}
	for _, addr := range theirs {
		if !slices.Contains(ours, addr) {
			return Gone, controlapi.DomainOtherName, nil
		}
	}
	return Proven, "", nil
}

func (a asker) addresses(ctx context.Context, name string) (out []netip.Addr, err error) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		answer, err := a.ask(ctx, name, kind)
		if err != nil {
			return nil, err
		}
		for _, rr := range answer {
			var ip net.IP
			switch rr := rr.(type) {
			case *dns.A:
				ip = rr.A
			case *dns.AAAA:
				ip = rr.AAAA
			}
			if addr, ok := netip.AddrFromSlice(ip); ok {
				out = append(out, addr.Unmap())
			}
		}
	}
	return out, nil
}

// authorities are those that the nearest record CAA on the way up allows (RFC 8659); nil
// for all, also where nobody answers: the authority asks by itself.
func (a asker) authorities(ctx context.Context, name string) []string {
	for range maxClimb {
		answer, err := a.ask(ctx, name, dns.TypeCAA)
		if err != nil {
			return nil
		}
		if allowed, there := issuers(answer); there {
			return allowed
		}
		_, parent, more := strings.Cut(name, ".")
		if !more {
			return nil
		}
		name = parent
	}
	return nil
}

// issuers reads one set of records CAA, and says whether it is there.
func issuers(answer []dns.RR) (allowed []string, there bool) {
	restricted := false
	out := []string{}
	for _, rr := range answer {
		caa, ok := rr.(*dns.CAA)
		if !ok {
			continue
		}
		there = true
		switch tag := strings.ToLower(caa.Tag); {
		case tag == "issue":
			restricted = true
			value, _, _ := strings.Cut(caa.Value, ";")
			if value = strings.ToLower(strings.TrimSpace(value)); value != "" && len(out) < maxClimb && len(value) <= 253 {
				out = append(out, value)
			}
		case caa.Flag&128 != 0 && tag != "issuewild" && tag != "iodef":
			return []string{}, true // a critical property that nobody here knows
		}
	}
	if !restricted {
		return nil, there
	}
	return out, true
}

var errFailure = errors.New("dnslook: the resolver answers with a failure")

// ask puts one question, by TCP where the answer is long or got lost, and returns what is
// answered; nothing where the name or the record does not exist.
func (a asker) ask(ctx context.Context, name string, kind uint16) ([]dns.RR, error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), kind)
	m.SetEdns0(1232, false)
	r, err := a.exchange(ctx, "udp", m)
	if err != nil || r.Truncated {
		r, err = a.exchange(ctx, "tcp", m)
	}
	switch {
	case err != nil:
		return nil, err
	case r.Truncated, r.Rcode != dns.RcodeSuccess && r.Rcode != dns.RcodeNameError:
		return nil, errFailure
	}
	if r.Rcode == dns.RcodeNameError {
		return nil, nil
	}
	return r.Answer, nil
}

func (a asker) exchange(ctx context.Context, network string, m *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	client := dns.Client{Net: network, Timeout: answerIn}
	r, _, err := client.ExchangeContext(ctx, m, a.resolver)
	switch {
	case err != nil:
		return nil, err
	case !r.Response || r.Id != m.Id || len(r.Question) != 1 || r.Question[0].Qtype != m.Question[0].Qtype ||
		!strings.EqualFold(r.Question[0].Name, m.Question[0].Name):
		return nil, errFailure
	}
	return r, nil
}

// named says whether a record is that of a name.
func named(rr dns.RR, name string) bool {
	return strings.EqualFold(rr.Header().Name, dns.Fqdn(name)) && rr.Header().Class == dns.ClassINET
}
