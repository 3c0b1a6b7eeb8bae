package dnslook

import (
	"crypto"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"porchlight/control/controlapi"
	"porchlight/test/nameserver"
	"porchlight/test/programs"
	"porchlight/test/resolver"
)

// signedZone answers for maya.test, each record of which it has signed, and says what it likes
// of those that are forged.
type signedZone struct {
	t      *testing.T
	key    *dns.DNSKEY
	signer crypto.Signer
	mu     sync.Mutex
	said   map[string][]dns.RR // by name and type; guarded by mu
	addr   string
}

func newSignedZone(t *testing.T) *signedZone {
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "maya.test.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 60}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private := programs.Got(key.Generate(256))(t)
	z := &signedZone{t: t, key: key, signer: private.(crypto.Signer), said: map[string][]dns.RR{}}
	z.put(key)
	l := programs.Got(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	z.addr = l.LocalAddr().String()
	up := make(chan struct{})
	server := &dns.Server{PacketConn: l, Handler: z, NotifyStartedFunc: func() { close(up) }}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.ActivateAndServe() }()
	<-up
	t.Cleanup(func() { _ = server.Shutdown(); <-ended })
	return z
}

func place(name string, kind uint16) string { return dns.CanonicalName(name) + dns.TypeToString[kind] }

// put signs a record; forged, it says something else than what was signed.
func (z *signedZone) put(rr dns.RR, forged ...dns.RR) {
	h := rr.Header()
	sig := &dns.RRSIG{
		Hdr: dns.RR_Header{Name: h.Name, Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: h.Ttl}, Algorithm: z.key.Algorithm, KeyTag: z.key.KeyTag(), SignerName: "maya.test.",
		Inception: uint32(time.Now().Add(-time.Hour).Unix()), Expiration: uint32(time.Now().Add(time.Hour).Unix()),
	}
	programs.Must(z.t, sig.Sign(z.signer, []dns.RR{rr}))
	if len(forged) > 0 {
		rr = forged[0]
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.said[place(h.Name, h.Rrtype)] = []dns.RR{rr, sig}
}

func (z *signedZone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	a := new(dns.Msg).SetReply(q)
	a.Authoritative = true
	z.mu.Lock()
	a.Answer = z.said[place(q.Question[0].Name, q.Question[0].Qtype)]
	z.mu.Unlock()
	a.SetEdns0(1232, true)
	_ = w.WriteMsg(a)
}

// checking is Debian's unbound, which has only the zone's key to go by.
func (z *signedZone) checking() (addr string) {
	z.t.Helper()
	zones := map[string][]string{"maya.test": {z.addr}, "porch.example": {z.addr}}
	return nameserver.Unbound(z.t, zones, strings.Join(strings.Fields(z.key.String()), " "))
}

// Weakness: somebody on the way forges the records of a zone that is signed, and one resolver
// believes them. Checked, with a real one that does not: they prove nothing, and end nothing
// either; what is signed proves.
func TestForgedRecordsProveNothing(t *testing.T) {
	t.Parallel()
	rr := func(line string) dns.RR { return programs.Got(dns.NewRR(line))(t) }
	z := newSignedZone(t)
	plain := programs.Got(resolver.New())(t)
	t.Cleanup(plain.Close)
	for _, name := range []string{"signed", "forged"} {
		txt, cname := rr(`_porchlight.`+name+`.maya.test. 60 IN TXT "bits"`), rr(name+".maya.test. 60 IN CNAME notes.maya.porch.example.")
		plain.Put(txt.String(), cname.String())
		z.put(cname)
		if name == "signed" {
			z.put(txt)
		} else {
			z.put(rr(`_porchlight.forged.maya.test. 60 IN TXT "none"`), txt)
		}
	}
	l := New([]string{z.checking(), plain.Addr()})
	for name, want := range map[string]Found{"signed": {Verdict: Proven}, "forged": {Verdict: Unsure, Why: controlapi.DomainNoAnswer}} {
		asked := wanted
		asked.Name = name + ".maya.test"
		if got := l.Look(t.Context(), asked); got.Verdict != want.Verdict || got.Why != want.Why {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
