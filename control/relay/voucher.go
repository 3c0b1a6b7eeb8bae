package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A visitor's bytes are TLS of its own, so between two nodes they need no more: they go
// over plain TCP, which the kernel can move, behind a voucher of the node they come from.
// That is the request of peer.go under an HMAC over all of it, the ClientHello included,
// with a key that the two have from their mutual TLS (see voucherkeys.go):
//
//	mark, id of the key, number, age of the key in ms, request head, HMAC, first bytes
//
// A voucher is good once, for voucherLife. Its time is counted from when the key was
// handed out, so that what the nodes' clocks say does not matter.
const (
	voucherMark = 'V' // no TLS record begins so
	voucherID   = 16  // bytes
	voucherMAC  = sha256.Size
	voucherHead = 1 + voucherID + 8 + 8 + peerHead + voucherMAC

	voucherLife = 10 * time.Second
	// voucherSkew is how much faster the other node's clock may have gone since the
	// key was handed out.
	voucherSkew = time.Second
	// vouchersApart is how many numbers late a voucher may come.
	vouchersApart = 1 << 16
)

var (
	errVoucherKey       = errors.New("relay: a voucher under a key that is not known")
	errVoucherForged    = errors.New("relay: a voucher whose HMAC is wrong")
	errVoucherLate      = errors.New("relay: a voucher that is not good any more")
	errVoucherAgain     = errors.New("relay: a voucher that was used before")
	errVoucherChallenge = errors.New("relay: a voucher for an ACME challenge, which goes inside TLS only")
)

// voucherRefusals names the reasons for which a voucher is refused.
var voucherRefusals = [...]struct {
	err  error
	name string
}{
	{errVoucherKey, "key"}, {errVoucherForged, "forged"}, {errVoucherLate, "late"}, {errVoucherAgain, "again"},
	{errVoucherChallenge, "challenge"},
}

// refuseVoucher counts why a peer was refused, and says whether it was for its voucher.
func (c *counters) refuseVoucher(err error) bool {
	for i, refusal := range voucherRefusals {
		if errors.Is(err, refusal.err) {
			c.vouchersRefused[i].Add(1)
			return true
		}
	}
	return false
}

// voucherKey is what vouchers of one node for another are made and checked with.
type voucherKey struct {
	id     [voucherID]byte
	secret [32]byte
	made   time.Time
}

// exportVoucherKey takes the key from a connection of the two nodes, over both their names.
func exportVoucherKey(state tls.ConnectionState, from, to string, now time.Time) (k voucherKey, err error) {
	material, err := state.ExportKeyingMaterial("EXPORTER-porchlight-voucher-1", []byte(from+"\x00"+to), len(k.id)+len(k.secret))
	if err != nil {
		return k, err
	}
	copy(k.id[:], material)
	copy(k.secret[:], material[len(k.id):])
	k.made = now
	return k, nil
}

// appendVoucher writes a voucher and what it vouches for.
func (k *voucherKey) appendVoucher(b []byte, number uint64, now time.Time, source, destination netip.AddrPort, first []byte) []byte {
	start := len(b)
	b = append(append(b, voucherMark), k.id[:]...)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint64(b, uint64(max(0, now.Sub(k.made).Milliseconds())))
	b = appendPeerRequest(b, source, destination, nil)
	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(len(first)))
	b = append(b, k.mac(b[start:], first)...)
	return append(b, first...)
}

func (k *voucherKey) mac(head, first []byte) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write(head)
	h.Write(first)
	return h.Sum(nil)
}

// givenKey is a key another node has from this one, and which of its vouchers came.
type givenKey struct {
	voucherKey
	from string

	mu      sync.Mutex // guards what follows
	highest uint64     // number of a voucher that came
	came    [vouchersApart / 64]uint64
}

// take notes that a number came, and reports whether that was the first time. One too
// far behind the highest is taken for one that came.
func (k *givenKey) take(number uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case number > k.highest && number-k.highest >= vouchersApart:
		clear(k.came[:])
		k.highest = number
	case number > k.highest:
		for ; k.highest < number; k.highest++ {
			k.came[(k.highest+1)%vouchersApart/64] &^= 1 << ((k.highest + 1) % 64)
		}
	case k.highest-number >= vouchersApart:
		return false
	}
	word, bit := &k.came[number%vouchersApart/64], uint64(1)<<(number%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// check judges a voucher; head is all of it but its mark, first what it vouches for.
func (k *givenKey) check(head *[voucherHead]byte, first []byte, now time.Time) error {
	signed, mac := head[:voucherHead-voucherMAC], head[voucherHead-voucherMAC:]
	if !hmac.Equal(k.mac(signed, first), mac) {
		return errVoucherForged
	}
	number := binary.BigEndian.Uint64(head[1+voucherID:])
	age := binary.BigEndian.Uint64(head[1+voucherID+8:])
	since := uint64(max(0, now.Sub(k.made).Milliseconds()))
	if age > since+uint64(voucherSkew.Milliseconds()) || age+uint64(voucherLife.Milliseconds()) < since {
		return errVoucherLate
	}
	if !k.take(number) {
		return errVoucherAgain
	}
	return nil
}

// readVoucher reads what comes behind the mark, and the visitor's first bytes into p.
func (r *Relay) readVoucher(conn *net.TCPConn, p *preface) (*peerStream, error) {
	head := [voucherHead]byte{voucherMark}
	if _, err := io.ReadFull(conn, head[1:]); err != nil {
		return nil, err
	}
	request := [peerHead]byte(head[voucherHead-voucherMAC-peerHead:])
	visitor := &peerStream{stream: conn, raw: conn}
	n, err := visitor.named(request)
	if err != nil {
		return nil, err
	}
	first := p.buf[headroom : headroom+n]
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, err
	}
	// What came is read to its end, so that an answer is not lost in a reset.
	key := r.vouchers.given([voucherID]byte(head[1:]))
	if key == nil {
		return nil, errVoucherKey
	}
	if err := key.check(&head, first, r.now()); err != nil {
		return nil, err
	}
	if err := p.parseHello(n); err != nil {
		return nil, err
	}
	if p.hello.offers(acmeALPN) {
		return nil, errVoucherChallenge
	}
	visitor.from = key.from
	return visitor, nil
}
