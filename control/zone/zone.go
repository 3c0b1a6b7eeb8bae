// Package zone answers for the names below which the computers of a control plane are, where
// their operator delegates these to it: a small authoritative name server (RFC 1034, 1035)
// that knows which nodes are there. It asks nobody (no recursion), keeps nothing of who asks
// but how often, and has no transfers.
package zone

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"porchlight/internal/bounds"
)

const (
	// ttl is how long resolvers may keep an answer, in seconds: so long after a node went
	// away a visitor may still be sent there.
	ttl = 30
	// nsTTL is for the names of the servers, which change when the operator says so.
	nsTTL = 3600

	// recordTTL is for what changes within a certificate's order; nobody keeps it.
	recordTTL       = 0
	challengePrefix = "_acme-challenge."

	maxUDP      = 512 // bytes of an answer over UDP, whatever the question allows (RFC 1035, section 4.2.1)
	maxGrowth   = 4   // times the question that an answer over UDP may be: who forges a sender gains little
	maxAnswered = 4   // addresses of a kind in one answer
	maxDepth    = 2   // labels below the domain that stand for something: APP.COMPUTER

	// One network gets so many answers a second over UDP. Who asks more often gets nothing, or
	// each second time the word to come by TCP, where nobody can forge a sender.
	answersASecond = 50
	networks       = 16 << 10 // that are remembered
)

// Config of a Zone. Name, Domain and Addresses are required.
type Config struct {
	Name     string // the zone, without a dot at its end; Domain is it, or below it
	Domain   string // the computers are below it
	AuthHost string // answered, too, where it is in the zone
	// Addresses are those of the nodes that take visitors now, of either kind, in no order. It
	// is asked for each question.
	Addresses func() []netip.Addr
	// Records are what there is of a computer beside them; asked for each question about them,
	// and waited for.
	Records func(ctx context.Context, computer string) (Records, error)
	Now     func() time.Time
}

// Records of a computer.
type Records struct {
	Challenges []string // TXT of _acme-challenge.COMPUTER, at most a few
	CAA        string   // of COMPUTER, a property "issue" (RFC 8659); empty for none
}

// Zone answers questions. It is safe for concurrent use.
type Zone struct {
	cfg                Config
	name, domain, auth string // with a dot at the end, in small letters
	askers             *bounds.Buckets[netip.Prefix]
	slips              *bounds.Buckets[netip.Prefix]
	servers            []string
	soa                *dns.SOA
}

// New makes a Zone.
func New(cfg Config) *Zone {
	z := &Zone{
		cfg: cfg, name: dns.CanonicalName(cfg.Name), domain: dns.CanonicalName(cfg.Domain), auth: dns.CanonicalName(cfg.AuthHost),
		askers: bounds.NewBuckets[netip.Prefix](bounds.Bucket{Size: answersASecond, Refill: time.Second / answersASecond}, networks),
		slips:  bounds.NewBuckets[netip.Prefix](bounds.Bucket{Size: answersASecond, Refill: time.Second / answersASecond}, networks),
	}
	z.servers = []string{"ns1." + z.name, "ns2." + z.name}
	z.soa = &dns.SOA{
		Hdr: dns.RR_Header{Name: z.name, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns:  z.servers[0], Mbox: "hostmaster." + z.name,
		Serial: uint32(cfg.Now().Unix()), Refresh: 3600, Retry: 600, Expire: 86400, Minttl: ttl, //nolint:gosec // a serial number wraps around (RFC 1982)
	}
	return z
}

// transport is the way a question came.
type transport int

const (
	overUDP transport = iota
	overTCP
)

// question is a packet that deserves more than a refusal.
type question struct {
	msg  *dns.Msg
	size int // bytes
	way  transport
}

// read is the question of a packet from, or what it is answered by at once; neither for nothing
// at all.
func (z *Zone) read(packet []byte, from netip.Addr, way transport) (q *question, out []byte) {
	msg := new(dns.Msg)
	if err := msg.Unpack(packet); err != nil || msg.Response || len(packet) < 12 {
		return nil, nil // not even a question: whoever sent it gains no answer to point at somebody
	}
	if way == overUDP {
		network := bounds.Network(from, 24, 56)
		if z.askers.Take(z.cfg.Now(), network) > 0 {
			if z.slips.Take(z.cfg.Now(), network) > 0 {
				return nil, nil
			}
			return nil, packed(cut(msg))
		}
	}
	return &question{msg, len(packet), way}, nil
}

// answer is what a packet from is answered by; nil for nothing at all.
func (z *Zone) answer(ctx context.Context, packet []byte, from netip.Addr, way transport) []byte {
	q, out := z.read(packet, from, way)
	if q == nil {
		return out
	}
	return z.packedReply(ctx, q)
}

// packedReply answers a question as it goes out; see waits.
func (z *Zone) packedReply(ctx context.Context, q *question) []byte {
	a := z.reply(ctx, q.msg)
	if q.way == overTCP {
		a.Truncate(dns.MaxMsgSize)
		return packed(a)
	}
	if out := packed(a); len(out) <= min(maxUDP, maxGrowth*q.size) {
		return out
	}
	return packed(cut(q.msg))
}

// waits says whether Records are asked for an answer.
func (z *Zone) waits(q *question) bool {
	if len(q.msg.Question) != 1 {
		return false
	}
	_, recorded := z.recorded(dns.CanonicalName(q.msg.Question[0].Name), q.msg.Question[0].Qtype)
	return recorded
}

// recorded is the computer whose Records a question is about.
func (z *Zone) recorded(name string, kind uint16) (computer string, is bool) {
	switch kind {
	case dns.TypeTXT:
		if name, is = strings.CutPrefix(name, challengePrefix); !is {
			return "", false
		}
	case dns.TypeCAA:
	default:
		return "", false
	}
	computer, is = strings.CutSuffix(name, "."+z.domain)
	return computer, is && computer != "" && !strings.Contains(computer, ".")
}

// cut is the answer that says to come by TCP.
func cut(q *dns.Msg) *dns.Msg {
	a := new(dns.Msg).SetReply(q)
	if a.Authoritative, a.Truncated = true, true; q.IsEdns0() != nil {
		a.SetEdns0(maxUDP, false)
	}
	return a
}

func packed(m *dns.Msg) []byte {
	m.Compress = true
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// reply answers one question.
func (z *Zone) reply(ctx context.Context, q *dns.Msg) *dns.Msg {
	a := new(dns.Msg).SetReply(q)
	if opt := q.IsEdns0(); opt != nil {
		a.SetEdns0(maxUDP, false)
		if opt.Version() != 0 {
			a.SetRcode(q, dns.RcodeBadVers)
			return a
		}
	}
	switch {
	case q.Opcode != dns.OpcodeQuery:
		a.Rcode = dns.RcodeNotImplemented
	case len(q.Question) != 1:
		a.Rcode = dns.RcodeFormatError
	default:
		z.about(ctx, q.Question[0], a)
	}
	return a
}

// about fills in what there is of a name.
func (z *Zone) about(ctx context.Context, q dns.Question, a *dns.Msg) {
	name := dns.CanonicalName(q.Name)
	if q.Qclass != dns.ClassINET || !dns.IsSubDomain(z.name, name) || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR {
		a.Rcode = dns.RcodeRefused
		return
	}
	a.Authoritative = true
	addressed, there := z.stands(name)
	if !there {
		a.Rcode = dns.RcodeNameError
	}
	header := func(kind uint16, seconds uint32) dns.RR_Header {
		return dns.RR_Header{Name: q.Name, Rrtype: kind, Class: dns.ClassINET, Ttl: seconds}
	}
	switch {
	case q.Qtype == dns.TypeANY && there: // RFC 8482, section 4.2
		a.Answer = []dns.RR{&dns.HINFO{Hdr: header(dns.TypeHINFO, nsTTL), Cpu: "RFC8482"}}
	case q.Qtype == dns.TypeSOA && name == z.name:
		a.Answer = []dns.RR{z.soa}
	case q.Qtype == dns.TypeNS && name == z.name:
		for _, server := range z.servers {
			a.Answer = append(a.Answer, &dns.NS{Hdr: header(dns.TypeNS, nsTTL), Ns: server})
		}
	case q.Qtype == dns.TypeA && addressed:
		for _, addr := range z.some(netip.Addr.Is4) {
			a.Answer = append(a.Answer, &dns.A{Hdr: header(dns.TypeA, ttl), A: addr.AsSlice()})
		}
	case q.Qtype == dns.TypeAAAA && addressed:
		for _, addr := range z.some(netip.Addr.Is6) {
			a.Answer = append(a.Answer, &dns.AAAA{Hdr: header(dns.TypeAAAA, ttl), AAAA: addr.AsSlice()})
		}
	case q.Qtype == dns.TypeTXT || q.Qtype == dns.TypeCAA:
		if computer, is := z.recorded(name, q.Qtype); is {
			z.record(ctx, computer, header(q.Qtype, recordTTL), a)
		}
	}
	if len(a.Answer) == 0 && a.Rcode != dns.RcodeServerFailure {
		a.Ns = []dns.RR{z.soa} // RFC 2308
	}
}

// record fills in what there is of a computer.
func (z *Zone) record(ctx context.Context, computer string, header dns.RR_Header, a *dns.Msg) {
	records, err := z.cfg.Records(ctx, computer)
	switch {
	case err != nil:
		a.Rcode = dns.RcodeServerFailure
	case header.Rrtype == dns.TypeTXT:
		for _, value := range records.Challenges {
			a.Answer = append(a.Answer, &dns.TXT{Hdr: header, Txt: []string{value}})
		}
	case records.CAA != "":
		a.Answer = []dns.RR{&dns.CAA{Hdr: header, Tag: "issue", Value: records.CAA}}
	}
}

// stands says whether a name of the zone is there, and whether it has the nodes' addresses.
func (z *Zone) stands(name string) (addressed, there bool) {
	if slices.Contains(z.servers, name) || name == z.auth || name == z.domain {
		return true, true
	}
	if dns.IsSubDomain(z.domain, name) {
		labels := dns.CountLabel(name) - dns.CountLabel(z.domain)
		// Names like _acme-challenge stand for no host.
		return labels <= maxDepth && !strings.HasPrefix(name, "_"), labels <= maxDepth+1
	}
	// Above something that is there a name exists, too (RFC 8020).
	return false, name == z.name || dns.IsSubDomain(name, z.domain) || z.auth != "." && dns.IsSubDomain(name, z.auth)
}

// some are addresses of a kind, the first of them another one each time.
func (z *Zone) some(kind func(netip.Addr) bool) []netip.Addr {
	all := slices.DeleteFunc(slices.Clone(z.cfg.Addresses()), func(addr netip.Addr) bool { return !kind(addr) })
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), maxAnswered)]
}
