//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// dnsTried and dnsQuickTried are how often attackDNS tries something.
const dnsTried, dnsQuickTried = 4000, 1000

const (
	dnsGrowth = 4                     // times the question that an answer over UDP may be
	dnsMost   = 512                   // bytes of one
	dnsWait   = 20 * time.Millisecond // for what comes after what was waited for
)

// attackDNS asks a control plane's name server what is to be sent to somebody else, what is
// no question, what is not its own, and for what changes it; and tells it challenges of names
// that are another's.
func attackDNS(ctx context.Context, s *stage, t *tally) error {
	p, err := s.startPlane(ctx, s.dir+"/plane", "--dns", "127.0.0.1:0", "--dns-zone", "localhost", "--public-address", "192.0.2.1", "--public-address", "2001:db8::1")
	if err != nil {
		return err
	}
	w := &dnsWorld{plane: p, t: t, quick: s.quick, random: rand.New(rand.NewPCG(1, 2))}
	if w.maya, err = p.newTenant(ctx, "maya"); err != nil {
		return err
	}
	if w.anna, err = p.newTenant(ctx, "anna"); err != nil {
		return err
	}
	for _, try := range []func(context.Context) error{w.amplified, w.flooded, w.junk, w.refused, w.changed, w.poisoned, w.challenged, w.removed} {
		if err := try(ctx); err != nil {
			return err
		}
		if a, err := w.asks("udp", new(dns.Msg).SetQuestion("notes.maya.localhost.", dns.TypeA)); err != nil || len(a.Answer) != 1 {
			return fmt.Errorf("it does not answer any more: %v, %w", a, err)
		}
	}
	return nil
}

type dnsWorld struct {
	*plane
	t          *tally
	quick      bool
	random     *rand.Rand
	maya, anna *tenant
	network    int // the last that somebody asked from
}

// from is a socket of another network each time, a /24 of its own: each has its own budget.
func (w *dnsWorld) from(network string) (net.Conn, error) {
	w.network++
	ip := net.IPv4(127, byte(1+w.network>>8), byte(w.network), 1)
	var local net.Addr = &net.UDPAddr{IP: ip}
	if network == "tcp" {
		local = &net.TCPAddr{IP: ip}
	}
	conn, err := (&net.Dialer{LocalAddr: local, Timeout: patience}).Dial(network, w.DNS)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(patience))
	}
	return conn, err
}

// heard is what comes back for a packet; nothing where that is what comes. Over UDP a
// question follows it, whose answer says that the packet was read.
func (w *dnsWorld) heard(network string, packet []byte) ([]byte, error) {
	conn, err := w.from(network)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if tcp, is := conn.(*net.TCPConn); is {
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)); err != nil {
			return nil, nil // it has hung up
		}
		_ = tcp.CloseWrite()
		all, _ := io.ReadAll(io.LimitReader(conn, 1<<17))
		return all[min(2, len(all)):], nil
	}
	const mark = 0xfeed
	last := new(dns.Msg).SetQuestion("localhost.", dns.TypeSOA)
	last.Id = mark
	raw, err := last.Pack()
	if err != nil {
		return nil, err
	}
	for _, one := range [][]byte{packet, raw} {
		if _, err := conn.Write(one); err != nil {
			return nil, err
		}
	}
	var out []byte
	for in := make([]byte, 1<<16); ; {
		n, err := conn.Read(in)
		switch late, is := errors.AsType[net.Error](err); {
		case is && late.Timeout():
			return out, nil
		case err != nil:
			return nil, err
		case n >= 2 && binary.BigEndian.Uint16(in) == mark:
			_ = conn.SetReadDeadline(time.Now().Add(dnsWait)) // it may have been quicker
		default:
			out = append(out, in[:n]...)
		}
	}
}

// answered is what comes back for a packet over UDP, which must be something.
func (w *dnsWorld) answered(packet []byte) ([]byte, error) {
	conn, err := w.from("udp")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	out := make([]byte, 1<<16)
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	n, err := conn.Read(out)
	return out[:n], err
}

// asks has a question answered.
func (w *dnsWorld) asks(network string, q *dns.Msg) (*dns.Msg, error) {
	conn, err := w.from(network)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	over := &dns.Conn{Conn: conn, UDPSize: 1<<16 - 1}
	if err := over.WriteMsg(q); err != nil {
		return nil, err
	}
	return over.ReadMsg()
}

// amplified are questions whose sender is forged: what comes back is sent to somebody else.
func (w *dnsWorld) amplified(context.Context) error {
	names := []string{
		"localhost.", "maya.localhost.", "notes.maya.localhost.", "_acme-challenge.maya.localhost.", "ns1.localhost.", "control.localhost.", "nobody.localhost.", "a.b.c.localhost.", ".",
		"example.com.", strings.Repeat("x", 63) + ".maya.localhost.", strings.Repeat(strings.Repeat("y", 61)+".", 3) + "localhost.",
	}
	var kinds []uint16
	for kind := range uint16(70) {
		kinds = append(kinds, kind)
	}
	kinds = append(kinds, dns.TypeANY, dns.TypeCAA, dns.TypeAXFR, dns.TypeIXFR, dns.TypeURI, 65280)
	sizes := []int{0, 512, 4096, 65535}
	for _, at := range (grid{}).axis("names", len(names)).axis("types", len(kinds)).axis("EDNS", len(sizes)).pick(w.quick, 500) {
		q := new(dns.Msg).SetQuestion(names[at[0]], kinds[at[1]])
		if size := sizes[at[2]]; size > 0 {
			q.SetEdns0(uint16(size), true)
		}
		raw, err := q.Pack()
		if err != nil {
			return err
		}
		out, err := w.answered(raw)
		if err != nil {
			return err
		}
		var a dns.Msg
		w.t.try(1)
		switch {
		case len(out) > dnsMost || len(out) > dnsGrowth*len(raw):
			w.t.got("%s, type %d: %d bytes are answered by %d", names[at[0]], kinds[at[1]], len(raw), len(out))
		case a.Unpack(out) != nil || a.Id != q.Id || !a.Response || a.RecursionAvailable:
			w.t.got("%s, type %d: answered by %x", names[at[0]], kinds[at[1]], out)
		case kinds[at[1]] == dns.TypeANY && len(a.Answer) > 1:
			w.t.got("%s: all that there is, is told at once (RFC 8482): %v", names[at[0]], a.Answer)
		}
	}
	return nil
}

// flooded asks a thousand times a second out of one network, each time as another of it.
func (w *dnsWorld) flooded(ctx context.Context) error {
	const hosts, seconds = 64, 2
	raw, err := new(dns.Msg).SetQuestion("notes.maya.localhost.", dns.TypeA).Pack()
	if err != nil {
		return err
	}
	to, err := net.ResolveUDPAddr("udp", w.DNS)
	if err != nil {
		return err
	}
	var all []*net.UDPConn
	got := make(chan int, hosts)
	for i := range hosts {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 77, byte(i+1))})
		if err != nil {
			return err
		}
		defer conn.Close()
		all = append(all, conn)
		go func() {
			sum, in := 0, make([]byte, 1<<16)
			for {
				n, _, err := conn.ReadFromUDP(in)
				if err != nil {
					got <- sum
					return
				}
				sum += n
			}
		}()
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sent := 0
	for i := range seconds * 1000 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		n, err := all[i%hosts].WriteToUDP(raw, to)
		if err != nil {
			return err
		}
		sent += n
		if i%500 == 250 { // somebody elsewhere
			w.t.try(1)
			if a, err := w.asks("udp", new(dns.Msg).SetQuestion("notes.maya.localhost.", dns.TypeA)); err != nil || a.Truncated || len(a.Answer) != 1 {
				w.t.got("another network is not answered during a flood: %v, %v", a, err)
			}
		}
	}
	back := 0
	for _, conn := range all {
		_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	}
	for range all {
		back += <-got
	}
	if w.t.try(1); back >= sent {
		w.t.got("a network that sends %d bytes is sent %d", sent, back)
	}
	if w.t.try(1); back == 0 {
		w.t.got("a network that asks often is answered nothing, so that one forged in its name shuts it out")
	}
	return nil
}

// junk are packets that are no questions.
func (w *dnsWorld) junk(context.Context) error {
	good, err := new(dns.Msg).SetQuestion("notes.maya.localhost.", dns.TypeA).Pack()
	if err != nil {
		return err
	}
	answer := bytes.Clone(good)
	answer[2] |= 0x80 // says that it is one: two servers would answer each other for ever
	shapes := map[string][]byte{
		"an answer": answer, "a header alone": good[:12], "half a header": good[:6], "a name cut short": good[:20], "a pointer to itself": append(append(bytes.Clone(good[:12]), 0xc0, 12), 0, 1, 0, 1),
		"a pointer beyond the end": append(append(bytes.Clone(good[:12]), 0xff, 0xff), 0, 1, 0, 1), "a label of 64": append(append(bytes.Clone(good[:12]), 64), bytes.Repeat([]byte("x"), 80)...),
		"more after the question": append(bytes.Clone(good), bytes.Repeat([]byte{0}, 400)...), "one byte": {0},
	}
	for _, count := range []int{4, 6, 8, 10} { // counts of records that are not there
		many := bytes.Clone(good)
		many[count], many[count+1] = 0xff, 0xff
		shapes[fmt.Sprintf("65,535 at %d", count)] = many
	}
	for what, packet := range shapes {
		for _, network := range []string{"udp", "tcp"} {
			if err := w.throws(network, what, packet); err != nil {
				return err
			}
		}
	}
	random := 1500
	if w.quick {
		random = 300
	}
	for i := range random {
		packet := make([]byte, 1+w.random.IntN(600))
		for k := range packet {
			packet[k] = byte(w.random.Uint32())
		}
		if i%2 == 0 { // a question with some bytes that are not
			packet = bytes.Clone(good)
			for range 1 + w.random.IntN(4) {
				packet[w.random.IntN(len(packet))] = byte(w.random.Uint32())
			}
		}
		w.t.try(1)
		conn, err := w.from("udp")
		if err != nil {
			return err
		}
		_, err = conn.Write(packet)
		conn.Close()
		if err == nil && i%16 == 15 { // an answer says that these were read: more could fill the socket, which drops questions then
			_, err = w.answered(good)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// throws sends one packet, which may be answered by few bytes or by none.
func (w *dnsWorld) throws(network, what string, packet []byte) error {
	w.t.try(1)
	out, err := w.heard(network, packet)
	switch {
	case err != nil && network == "udp":
		return err
	case what == "an answer" && len(out) > 0:
		w.t.got("an answer is answered over %s by %x", network, out)
	case network == "udp" && len(out) > dnsGrowth*len(packet):
		w.t.got("%s, %d bytes, is answered by %d", what, len(packet), len(out))
	}
	return nil
}

// refused is what is not for a server of one zone.
func (w *dnsWorld) refused(context.Context) error {
	for _, network := range []string{"udp", "tcp"} {
		for _, name := range []string{"example.com.", ".", "com.", "notlocalhost.", "localhost.example.com.", "4.3.2.1.in-addr.arpa.", "version.bind.", "maya.localhost.evil.test."} {
			for _, kind := range []uint16{dns.TypeA, dns.TypeNS, dns.TypeTXT, dns.TypeANY, dns.TypeSOA} {
				if err := w.wantNothing(network, new(dns.Msg).SetQuestion(name, kind), dns.RcodeRefused); err != nil {
					return err
				}
			}
		}
		for _, name := range []string{"localhost.", "maya.localhost.", "example.com."} {
			for _, q := range []*dns.Msg{new(dns.Msg).SetAxfr(name), new(dns.Msg).SetIxfr(name, 1, "ns1.localhost.", "x.localhost."), {Question: []dns.Question{{Name: name, Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}}}} {
				if err := w.wantNothing(network, q, dns.RcodeRefused); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wantNothing asks for what is refused with a code; nothing at all may be said of it.
func (w *dnsWorld) wantNothing(network string, q *dns.Msg, code int) error {
	w.t.try(1)
	a, err := w.asks(network, q)
	if err != nil {
		return fmt.Errorf("%s: %w", q, err)
	}
	if a.Rcode != code || len(a.Answer)+len(a.Ns) > 0 || a.RecursionAvailable {
		w.t.got("over %s, %v\nis answered by %v", network, q, a)
	}
	return nil
}

// changed are questions that would change what it knows.
func (w *dnsWorld) changed(context.Context) error {
	rr := func(line string) dns.RR {
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		return rr
	}
	for _, network := range []string{"udp", "tcp"} {
		update := new(dns.Msg).SetUpdate("localhost.")
		update.Insert([]dns.RR{rr("notes.maya.localhost. 1 IN A 203.0.113.66"), rr(`_acme-challenge.maya.localhost. 1 IN TXT "evil"`)})
		remove := new(dns.Msg).SetUpdate("localhost.")
		remove.RemoveName([]dns.RR{rr("notes.maya.localhost. 1 IN A 192.0.2.1")})
		notify := new(dns.Msg).SetNotify("localhost.")
		notify.Answer = []dns.RR{rr("localhost. 1 IN SOA evil.test. evil.test. 9 1 1 1 1")}
		all := []*dns.Msg{update, remove, notify}
		for _, opcode := range []int{dns.OpcodeIQuery, dns.OpcodeStatus, 6, 15} {
			q := new(dns.Msg).SetQuestion("maya.localhost.", dns.TypeA)
			q.Opcode = opcode
			all = append(all, q)
		}
		for _, q := range all {
			if err := w.wantNothing(network, q, dns.RcodeNotImplemented); err != nil {
				return err
			}
		}
	}
	// What comes beside a question is believed no more than what comes alone.
	beside := new(dns.Msg).SetQuestion("notes.maya.localhost.", dns.TypeA)
	beside.Answer = []dns.RR{rr("notes.maya.localhost. 9999 IN A 203.0.113.66")}
	beside.Extra = []dns.RR{rr("ns1.localhost. 9999 IN A 203.0.113.66")}
	if _, err := w.asks("udp", beside); err != nil {
		return err
	}
	for _, name := range []string{"notes.maya.localhost.", "ns1.localhost.", "maya.localhost."} {
		w.t.try(1)
		a, err := w.asks("udp", new(dns.Msg).SetQuestion(name, dns.TypeA))
		if err != nil || len(a.Answer) != 1 || a.Answer[0].(*dns.A).A.String() != "192.0.2.1" {
			w.t.got("%s is %v afterwards, %v", name, a, err)
		}
	}
	return nil
}
