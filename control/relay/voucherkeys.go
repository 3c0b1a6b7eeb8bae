package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A node asks another for a key once it has passed a visitor on to it inside TLS and
// found that it takes vouchers. The key lives as long as the connection it came over,
// which says nothing more: who ends it has ended the key.
const (
	keyLife = time.Hour
	// keyRetry is how long a node that gave no key, or refused a voucher, is left alone:
	// something between the two may let nothing but TLS through.
	keyRetry = time.Minute
	// voucherAnswer is how long an answer to a voucher may take.
	voucherAnswer = 2 * time.Second
	// keysMost bounds the keys that other nodes have from this one, keysPerNode those of
	// one of them: each keeps a connection and 8 KiB.
	keysMost    = 1024
	keysPerNode = 4
	// silentVouchers in a row are not answered before it is found out whether TLS gets
	// through: a busy node is silent, too, and TLS would cost it more.
	silentVouchers = 3
)

// vouchers holds the keys of both sides.
type vouchers struct {
	mu   sync.Mutex // guards what follows
	gave map[[voucherID]byte]*givenKey
	got  map[string]*gotKey // by run of the node that gave it
}

// gotKey is a key from another node, or the place where one will be.
type gotKey struct {
	voucherKey
	conn  net.Conn
	ready bool // the key is there and may be used; guarded by vouchers.mu, as what is above

	number  atomic.Uint64 // of the last voucher
	silent  atomic.Int32  // vouchers in a row that were not answered
	refused atomic.Bool   // one was, or they do not get through
}

// doubted says that vouchers may not get through.
func (k *gotKey) doubted() bool { return k.silent.Load() >= silentVouchers }

func newVouchers() *vouchers {
	return &vouchers{gave: make(map[[voucherID]byte]*givenKey), got: make(map[string]*gotKey)}
}

func (v *vouchers) given(id [voucherID]byte) *givenKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gave[id]
}

// give makes a key known; forget must be called when its connection has ended.
func (v *vouchers) give(k *givenKey) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	theirs := 0
	for _, other := range v.gave {
		if other.from == k.from {
			theirs++
		}
	}
	if len(v.gave) >= keysMost || theirs >= keysPerNode {
		return errors.New("it has as many keys as it may")
	}
	v.gave[k.id] = k
	return nil
}

func (v *vouchers) forget(k *givenKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.gave, k.id)
}

// keyFor is the key a node gave, nil without one.
func (v *vouchers) keyFor(node nodeRow) *gotKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.got[node.Run]; k != nil && k.ready {
		return k
	}
	return nil
}

// reserve makes the place for a key, and returns nil where there is one.
func (v *vouchers) reserve(node nodeRow) *gotKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.got[node.Run] != nil {
		return nil
	}
	k := new(gotKey)
	v.got[node.Run] = k
	return k
}

// drop ends the use of a key; its connection is closed by who holds it.
func (v *vouchers) drop(k *gotKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k.ready {
		k.ready = false
		_ = k.conn.SetReadDeadline(time.Now())
	}
}

// judge ends the doubt in a key after a try inside TLS, and says whether it was dropped:
// where that was not answered either, the node is busy or away.
func (v *vouchers) judge(k *gotKey, answered bool) bool {
	k.silent.Store(0)
	if answered {
		k.refused.Store(true)
		v.drop(k)
	}
	return answered
}

// wantKey has a key asked for where there is none and none was refused lately.
func (r *Relay) wantKey(life context.Context, node nodeRow) {
	if k := r.vouchers.reserve(node); k != nil {
		r.wg.Go(func() {
			r.holdKey(life, node, k)
			r.vouchers.mu.Lock()
			delete(r.vouchers.got, node.Run)
			r.vouchers.mu.Unlock()
		})
	}
}

// holdKey gets a key and keeps it until its connection ends, it is dropped or too old.
func (r *Relay) holdKey(life context.Context, node nodeRow, k *gotKey) {
	conn, key, err := r.askKey(life, node)
	if err != nil {
		r.log.Info("a relay of this service gave no key, its visitors go inside TLS", "node", node.Node, "err", err)
		wait(life, keyRetry)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(life, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(keyLife))
	r.vouchers.mu.Lock()
	k.voucherKey, k.conn, k.ready = key, conn, true
	r.vouchers.mu.Unlock()
	_, err = conn.Read(make([]byte, 1))
	r.vouchers.drop(k)
	switch {
	case k.refused.Load():
		_ = conn.Close()
		wait(life, keyRetry)
	case errors.Is(err, os.ErrDeadlineExceeded):
		wait(life, voucherLife) // for the vouchers under way
	}
}

func wait(life context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-life.Done():
	}
}

func (r *Relay) askKey(life context.Context, node nodeRow) (net.Conn, voucherKey, error) {
	ctx, cancel := context.WithTimeout(life, peerHandshake)
	defer cancel()
	raw, err := dialPeer(ctx, node)
	if err != nil {
		return nil, voucherKey{}, err
	}
	secure := tls.Client(raw, r.peerTLS.clientForKey(node.Node))
	key, err := r.receiveKey(ctx, secure, node)
	if err != nil {
		_ = raw.Close()
		return nil, voucherKey{}, err
	}
	return secure, key, nil
}

// receiveKey waits for the byte that says that the other node has the key, too.
func (r *Relay) receiveKey(ctx context.Context, secure *tls.Conn, node nodeRow) (key voucherKey, err error) {
	if err := secure.HandshakeContext(ctx); err != nil {
		return key, err
	}
	if err := secure.SetDeadline(time.Now().Add(peerAnswer)); err != nil {
		return key, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(secure, answer[:]); err != nil {
		return key, err
	}
	if answer[0] != peerHere {
		return key, fmt.Errorf("it answered with %d", answer[0])
	}
	if err := secure.SetDeadline(time.Time{}); err != nil {
		return key, err
	}
	return exportVoucherKey(secure.ConnectionState(), r.cfg.Node, node.Node, r.now())
}

// giveKey lets another node have a key for as long as it keeps the connection.
func (r *Relay) giveKey(life context.Context, raw net.Conn, secure *tls.Conn, decided func()) error {
	defer secure.Close()
	state := secure.ConnectionState()
	from, err := peerName(state)
	if err != nil {
		return err
	}
	// The key ends with the connection, and that with what the other node is known by.
	if err := r.peerTLS.hold(raw, state); err != nil {
		return err
	}
	defer r.peerTLS.release(raw)
	key, err := exportVoucherKey(state, from, r.cfg.Node, r.now())
	if err != nil {
		return err
	}
	given := &givenKey{voucherKey: key, from: from}
	if err := r.vouchers.give(given); err != nil {
		return err
	}
	defer r.vouchers.forget(given)
	if _, err := secure.Write([]byte{peerHere}); err != nil {
		return err
	}
	decided()
	defer context.AfterFunc(life, func() { _ = secure.Close() })()
	if err := secure.SetDeadline(time.Now().Add(keyLife + time.Minute)); err != nil {
		return err
	}
	_, _ = secure.Read(make([]byte, 1)) // until it ends
	return nil
}

// vouch offers a visitor to a node over a plain connection, and returns that. An
// errRefused says that the node does not take the voucher, and ends the key; an
// errVoucherLost that the connection ended without an answer.
func (r *Relay) vouch(ctx context.Context, node nodeRow, key *gotKey, conn stream, p *preface) (*peerStream, error) {
	limited, cancel := context.WithTimeout(ctx, peerDial)
	defer cancel()
	raw, err := dialPeer(limited, node)
	if err != nil {
		return nil, err
	}
	peer := &peerStream{stream: raw, raw: raw, remote: raw.RemoteAddr(), local: raw.LocalAddr()}
	voucher := key.appendVoucher(make([]byte, 0, voucherHead+p.n), key.number.Add(1), r.now(), addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr()), p.bytes())
	err = peer.ask(ctx, voucher, voucherAnswer)
	if err == nil {
		key.silent.Store(0)
		return peer, nil
	}
	peer.reset()
	switch {
	case errors.Is(err, errUnknownHost):
		key.silent.Store(0)
	case errors.Is(err, errRefused):
		key.refused.Store(true)
		r.vouchers.drop(key) // the other node may have lost it
	case errors.Is(err, os.ErrDeadlineExceeded):
		key.silent.Add(1)
	default:
		key.silent.Add(1)
		err = fmt.Errorf("%w: %w", errVoucherLost, err)
	}
	return nil, err
}

var (
	errRefused     = errors.New("relay: a voucher was refused")
	errVoucherLost = errors.New("relay: a voucher was not answered")
)
