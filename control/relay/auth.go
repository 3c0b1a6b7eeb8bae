package relay

import (
	"context"
	"crypto/tls"
	"io"
	"slices"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/socket"
)

const handshakeWait = 10 * time.Second

// terminate decrypts a connection to the auth host and hands it to whom its ALPN
// names.
func (r *Relay) terminate(life context.Context, conn stream, p *preface, decided func()) {
	source := sourceOf(conn.RemoteAddr())
	agent := p.hello.Offers(controlapi.TunnelALPN) || slices.ContainsFunc(controlapi.TunnelsBefore, p.hello.Offers)
	if agent && (r.draining.Load() || !r.ramp.allow(source)) {
		// Told apart before the handshake, which is what a storm of agents costs.
		r.counters.deferredCount.Add(1)
		r.reached(limitAdmissions)
		refuse(conn, alertRecord(alertInternalError))
		return
	}
	place, sent, ok := r.auth.enter(conn, source)
	if !ok {
		r.reached(limitAuth)
		refuse(conn, alertRecord(alertInternalError))
		return
	}
	r.dismiss(sent, limitAuth)
	prefixed := &prefixedConn{Conn: conn, rest: inPieces(p.bytes()), onClose: func() { r.auth.release(place) }}
	p.release()
	secure := tls.Server(prefixed, r.tls)
	ctx, cancel := context.WithTimeout(life, handshakeWait)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = prefixed.Close()
		return
	}
	switch protocol := secure.ConnectionState().NegotiatedProtocol; {
	case protocol == controlapi.TunnelALPN, slices.Contains(controlapi.TunnelsBefore, protocol):
		prefixed.uncount() // tunnels have a limit of their own
		if tcp := tcpUnder(secure); tcp != nil {
			prefixed.resting = socket.Rest(tcp)
		}
		r.serveControl(life, secure, decided)
	case protocol == tunnelwire.DataALPN:
		prefixed.uncount() // bounded by the tickets
		r.parkSecure(secure, decided)
	default:
		decided()
		h := newHead(r, prefixed, source, place)
		prefixed.head = h
		if protocol == "h2" {
			h.h2 = r.http2.NewConn(withHead(life, secure), holder{secure, h})
			h.await()
			r.wg.Go(h.h2.Serve) // on a stack that no handshake has grown
			return
		}
		h.await()
		if !r.toHTTP.Give(life, secure) {
			_ = secure.Close()
		}
	}
}

// parkSecure reads the preamble of a data connection inside TLS.
func (r *Relay) parkSecure(conn *tls.Conn, decided func()) {
	var b [tunnelwire.PreambleSize]byte
	err := conn.SetDeadline(time.Now().Add(r.cfg.FirstBytes))
	if err == nil {
		_, err = io.ReadFull(conn, b[:])
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return
	}
	ticket, _, err := tunnelwire.ParsePreamble(b[:])
	if err != nil {
		r.counters.malformed.Add(1)
		_ = conn.Close()
		return
	}
	decided()
	r.park(conn, ticket, true)
}
