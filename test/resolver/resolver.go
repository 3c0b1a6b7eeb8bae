// Package resolver is a DNS resolver of a test: it knows the records it was given, follows
// aliases as resolvers do, and lies, fails or is silent when told to.
package resolver

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Resolver answers on one port of 127.0.0.1, by UDP and TCP.
type Resolver struct {
	addr    string
	servers []*dns.Server

	mu      sync.Mutex
	records map[string][]dns.RR // by name; guarded by mu, as is what follows
	rcode   int                 // of every answer, unless it is dns.RcodeSuccess
	silent  bool
	asked   int
	slow    time.Duration
	under   int // questions under way
	most    int // of them at a time
}

// New begins to answer.
func New() (*Resolver, error) {
	r := &Resolver{records: map[string][]dns.RR{}}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		p, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil { // another program has that port
			l.Close()
			continue
		}
		r.addr = l.Addr().String()
		r.servers = []*dns.Server{{Listener: l, Handler: r}, {PacketConn: p, Handler: r}}
		for _, s := range r.servers {
			up := make(chan struct{})
			s.NotifyStartedFunc = func() { close(up) }
			go s.ActivateAndServe()
			<-up
		}
		return r, nil
	}
}

// Addr is host:port.
func (r *Resolver) Addr() string { return r.addr }

// Close ends it.
func (r *Resolver) Close() {
	for _, s := range r.servers {
		s.Shutdown()
	}
}

// Put has names have these records, in the form of a zone file, and no others.
func (r *Resolver) Put(lines ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	put := map[string]bool{}
	for _, line := range lines {
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		name := strings.ToLower(rr.Header().Name)
		if !put[name] {
			put[name], r.records[name] = true, nil
		}
		r.records[name] = append(r.records[name], rr)
	}
}

// Drop takes all records of names away.
func (r *Resolver) Drop(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		delete(r.records, strings.ToLower(dns.Fqdn(name)))
	}
}

// Fail has every answer be of that code, dns.RcodeSuccess for what is so.
func (r *Resolver) Fail(rcode int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rcode = rcode
}

// Silence has it answer nothing.
func (r *Resolver) Silence(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = silent
}

// Asked counts the questions.
func (r *Resolver) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Slow has it take so long over each answer.
func (r *Resolver) Slow(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = by
}

// Most is how many questions were under way at a time.
func (r *Resolver) Most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// ServeDNS implements dns.Handler.
func (r *Resolver) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	r.mu.Lock()
	r.asked++
	r.under++
	r.most = max(r.most, r.under)
	silent, slow := r.silent, r.slow
	m := new(dns.Msg)
	m.SetReply(q)
	m.RecursionAvailable = true
	if m.Rcode = r.rcode; m.Rcode == dns.RcodeSuccess {
		r.answer(m, strings.ToLower(q.Question[0].Name), q.Question[0].Qtype)
	}
	r.mu.Unlock()
	time.Sleep(slow)
	r.done() // before anybody hears of it
	if silent {
		return
	}
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		size := dns.MinMsgSize
		if o := q.IsEdns0(); o != nil {
			size = int(o.UDPSize())
		}
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

func (r *Resolver) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under--
}

// answer follows aliases, 16 at most, as resolvers do. mu is held.
func (r *Resolver) answer(m *dns.Msg, name string, kind uint16) {
	for range 16 {
		all, there := r.records[name]
		if !there {
			m.Rcode = dns.RcodeNameError
			return
		}
		next := ""
		for _, rr := range all {
			if rr.Header().Rrtype == kind {
				m.Answer = append(m.Answer, rr)
			} else if cname, ok := rr.(*dns.CNAME); ok {
				m.Answer, next = append(m.Answer, rr), strings.ToLower(cname.Target)
			}
		}
		if next == "" {
			return
		}
		name = next
	}
	m.Rcode = dns.RcodeServerFailure
}
