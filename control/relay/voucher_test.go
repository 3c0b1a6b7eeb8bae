package relay

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"porchlight/test/programs"
)

// row is how others see a node.
func (n node) row() nodeRow { return n.directory.self }

// holdsKeyOf waits until n makes vouchers for other, to which it has passed a visitor on.
func (n node) holdsKeyOf(t *testing.T, other node) {
	t.Helper()
	programs.Eventually(t, "the node has a key of the other", func() bool { return n.vouchers.keyFor(other.row()) != nil })
}

// keyOf asks a node for a key, as one does that has the name and the secret.
func keyOf(t *testing.T, n node, name string, secret []byte) (net.Conn, voucherKey, error) {
	t.Helper()
	as, err := newPeerTLS(always(secret), name, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{cfg: Config{Node: name}, peerTLS: as, now: n.now}
	conn, key, err := r.askKey(t.Context(), n.row())
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, key, err
}

// offered is what a node answers to bytes on its peers' port.
func offered(t *testing.T, n node, b []byte) []byte {
	t.Helper()
	conn := dial(t, n.peer)
	defer conn.Close()
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	_ = conn.CloseWrite()
	got, _ := io.ReadAll(conn) // who is refused with bytes unread gets a reset
	return got
}

// A voucher is good once and for a while, for the visitor it was made for and at the
// node it was made for; whatever else comes is refused and counted, and disturbs nobody.
func TestVouchers(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	two := serveNode(t, sharedStore(t, nil), "two", func(c *Config) { c.Now = now.Now })
	three := serveNode(t, sharedStore(t, nil), "three", nil)
	_, key, err := keyOf(t, two, "one", peerSecret)
	if err != nil {
		t.Fatal(err)
	}
	now.advance(2 * voucherLife) // the key is a while old
	_, elsewhere, err := keyOf(t, three, "one", peerSecret)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := keyOf(t, two, "one", bytes.Repeat([]byte("t"), 32)); err == nil {
		t.Error("a node of another control plane was given a key")
	}
	source := netip.MustParseAddrPort("192.0.2.7:4711")
	hello := recordHello(t, &tls.Config{ServerName: "maya.localhost"})
	voucher := func(k voucherKey, number uint64, at time.Time, first []byte) []byte {
		return k.appendVoucher(nil, number, at, source, source, first)
	}
	good := voucher(key, 1, now.Now(), hello)
	taken := []byte{peerUnknown} // it is understood, and the tunnel is not here
	if got := offered(t, two, good); !bytes.Equal(got, taken) {
		t.Fatalf("a good voucher: %x", got)
	}
	changed := func(at int) []byte {
		b := voucher(key, 2, now.Now(), hello)
		b[at] ^= 1
		return b
	}
	shorter := voucher(key, 2, now.Now(), hello)
	binary.BigEndian.PutUint16(shorter[voucherHead-voucherMAC-2:], uint16(len(hello)-1))
	challenge := recordHello(t, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"h2", acmeALPN}})
	const number, age, address = 1 + voucherID, 1 + voucherID + 8, 1 + voucherID + 16
	for _, c := range []struct {
		what, reason string
		voucher      []byte
	}{
		{"the same again", "again", good},
		{"another host", "forged", changed(voucherHead + bytes.Index(hello, []byte("maya")))},
		{"another address", "forged", changed(address + 15)},
		{"another number", "forged", changed(number + 7)},
		{"another time", "forged", changed(age + 7)},
		{"fewer first bytes", "forged", shorter},
		{"another HMAC", "forged", changed(voucherHead - 1)},
		{"another key's name", "key", changed(1)},
		{"a key of another node", "key", voucher(elsewhere, 1, now.Now(), hello)},
		{"a voucher from before", "late", voucher(key, 3, now.Now().Add(-voucherLife-time.Second), hello)},
		{"a voucher of later", "late", voucher(key, 3, now.Now().Add(voucherSkew+time.Second), hello)},
		{"a challenge", "challenge", voucher(key, 4, now.Now(), challenge)},
		{"no hello", "", voucher(key, 5, now.Now(), []byte("GET / HTTP/1.1\r\n\r\n"))},
		{"nothing to say", "", voucher(key, 6, now.Now(), nil)},
		{"half a head", "", good[:40]},
		{"neither TLS nor a voucher", "", []byte("hello")},
	} {
		before := two.Stats()
		refusal := []byte{peerRefused}
		if c.reason == "" {
			refusal = nil
		}
		if got := offered(t, two, c.voucher); !bytes.Equal(got, refusal) {
			t.Errorf("%s: answer %x", c.what, got)
		}
		programs.Eventually(t, c.what+" is counted", func() bool { return two.Stats().PeerFailures > before.PeerFailures })
		for reason, n := range two.Stats().VouchersRefused {
			want := before.VouchersRefused[reason]
			if reason == c.reason {
				want++
			}
			if n != want {
				t.Errorf("%s: %d were refused as %q, not %d", c.what, n, reason, want)
			}
		}
	}
	for range peersEntering + 1 { // none of them keeps a place
		offered(t, two, changed(voucherHead-1))
	}
	if got := offered(t, two, voucher(key, 7, now.Now(), hello)); !bytes.Equal(got, taken) || two.Stats().TakenOver > 0 {
		t.Errorf("a good voucher after all that: %x, %d visitors", got, two.Stats().TakenOver)
	}
}

// A key ends with its connection, and a node has a few at a time.
func TestVoucherKeys(t *testing.T) {
	t.Parallel()
	two := serveNode(t, sharedStore(t, nil), "two", nil)
	hello := recordHello(t, &tls.Config{ServerName: "maya.localhost"})
	var conns []net.Conn
	var key voucherKey
	for range keysPerNode {
		conn, k, err := keyOf(t, two, "one", peerSecret)
		if err != nil {
			t.Fatal(err)
		}
		conns, key = append(conns, conn), k
	}
	if _, _, err := keyOf(t, two, "one", peerSecret); err == nil {
		t.Error("a node has more keys than it may")
	}
	if _, _, err := keyOf(t, two, "four", peerSecret); err != nil {
		t.Errorf("another node: %v", err)
	}
	_ = conns[keysPerNode-1].Close()
	programs.Eventually(t, "the key has ended", func() bool { return two.vouchers.given(key.id) == nil })
	if got := offered(t, two, key.appendVoucher(nil, 1, two.now(), netip.AddrPort{}, netip.AddrPort{}, hello)); !bytes.Equal(got, []byte{peerRefused}) {
		t.Errorf("a voucher under a key that has ended: %x", got)
	}
	if _, _, err := keyOf(t, two, "one", peerSecret); err != nil {
		t.Errorf("in its place: %v", err)
	}
}

// A visitor whose voucher is refused goes inside TLS; so does one that offers to answer
// a challenge, whatever keys there are.
func TestPassingOnWithoutVoucher(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	one, two := serveNode(t, store, "one", nil), serveNode(t, store, "two", nil)
	one.sees(t, 2)
	a := connectAgent(t, two.addr, "maya")
	a.visitedAt(one.addr)
	one.holdsKeyOf(t, two)
	passed := func(config *tls.Config) {
		t.Helper()
		hello := recordHello(t, config)
		before := one.Stats()
		visit(t, one.addr, hello)
		programs.Eventually(t, "the visitor is passed on", func() bool { return one.Stats().PassedOn == before.PassedOn+1 })
		if one.Stats().PassedPlain != before.PassedPlain {
			t.Error("it went without TLS")
		}
	}
	passed(&tls.Config{ServerName: "maya.localhost", NextProtos: []string{acmeALPN}})
	two.vouchers.mu.Lock()
	clear(two.vouchers.gave)
	two.vouchers.mu.Unlock()
	passed(&tls.Config{ServerName: "maya.localhost"})
	if one.vouchers.keyFor(two.row()) != nil {
		t.Error("a key whose voucher was refused is used")
	}
	programs.Eventually(t, "the refusal is counted", func() bool { return two.Stats().VouchersRefused["key"] == 1 })
}

func TestVoucherNumbers(t *testing.T) {
	t.Parallel()
	var k givenKey
	const far = 5 * vouchersApart
	for _, c := range []struct {
		number uint64
		fresh  bool
	}{
		{1, true}, {1, false}, {3, true}, {2, true}, {2, false}, {3, false}, {0, true},
		{vouchersApart, true}, {0, false}, {1, false}, {4, true}, {vouchersApart + 2, true}, {2, false}, {3, false}, {5, true},
		{far, true}, {vouchersApart, false}, {far - vouchersApart, false}, {far - vouchersApart + 1, true}, {far - vouchersApart + 1, false},
		{1<<64 - 1, true}, {1<<64 - 1, false}, {1<<64 - 2, true}, {far, false},
	} {
		if got := k.take(c.number); got != c.fresh {
			t.Errorf("%d: %v", c.number, got)
		}
	}
}
