package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/socket"
)

const (
	// dialsAtOnce bounds the data connections being opened.
	dialsAtOnce = 64
	// mostTickets bounds ticketsAtOnce in any case. A relay asks for 1,536 at most, unless
	// its operator said otherwise; what is given back it asks for again as visitors come.
	mostTickets = 4096
	// leastTickets are ticketsAtOnce in any case: more than a relay keeps for who comes.
	leastTickets = 8
	// headerWait is how long the rest of a header may take after its first byte.
	headerWait = 5 * time.Second
	// firstRead holds the header and, mostly, all of the ClientHello behind it.
	firstRead = 2 << 10
	// A plain data connection that ends within quickEnd without having served
	// anybody is a sign that the network does not let it through; rawTries signs
	// in a session in which none has got through make it TLS for secureTime.
	quickEnd       = 2 * time.Second
	rawTries       = 3
	secureTime     = 15 * time.Minute
	lookAgainAfter = 500 * time.Millisecond
)

// ticketsAtOnce bounds the data connections of a session that wait for their visitor,
// those being opened included: a computer's two slots have a sixteenth of the files,
// half of what visitors leave of them.
func ticketsAtOnce(files int) int { return max(leastTickets, min(mostTickets, files/32)) }

// extraTickets is the same of an extra session. All of them have half as many as one slot, so
// with them it is five eighths of what visitors leave; with less than 2,048 files more of it,
// and with 512 all. None takes from another's: strangers could have one park them all.
func extraTickets(files int) int { return max(leastTickets, ticketsAtOnce(files)/2/extras) }

var errEnded = errors.New("the data connection ended before a visitor came")

// data opens a data connection for ticket, waits for its visitor and passes the
// visitor up.
func (s *session) data(ticket tunnelwire.Ticket, secure bool) {
	select {
	case s.dials <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	raw := !secure && !s.secure()
	opened := time.Now()
	conn, err := s.open(ticket, !raw)
	<-s.dials
	if err != nil {
		s.failed(ticket, raw, err)
		return
	}
	source, destination, rest, err := s.waitForVisitor(conn, ticket)
	if err != nil {
		_ = conn.Close()
		switch {
		case errors.Is(err, tunnelwire.ErrForged), errors.Is(err, tunnelwire.ErrHeader):
			s.log.Warn("a data connection did not come from our relay and was closed", "err", err)
		case time.Since(opened) < quickEnd:
			s.failed(ticket, raw, err)
		}
		return
	}
	if raw {
		s.gotThrough()
	}
	visitor := &visitorConn{Conn: socket.Wrap(conn), rest: rest, source: net.TCPAddrFromAddrPort(source), destination: net.TCPAddrFromAddrPort(destination),
		session: s, ticket: ticket}
	if s.visits != nil {
		visitor.ended = s.visits.came(s.tunnel.now)
	}
	s.tunnel.visitorCame()
	ctx, cancel := context.WithTimeout(s.ctx, acceptWait)
	defer cancel()
	if !s.tunnel.listener.Give(ctx, visitor) {
		_ = visitor.Close()
	}
}

// open dials and sends the preamble.
func (s *session) open(ticket tunnelwire.Ticket, secure bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, dialWait)
	defer cancel()
	var conn net.Conn
	var err error
	if secure {
		conn, err = s.tunnel.connect(ctx, s.relay, dialWait, tunnelwire.DataALPN)
	} else {
		conn, err = s.tunnel.dial(ctx, s.relay)
	}
	if err != nil {
		return nil, err
	}
	err = conn.SetWriteDeadline(time.Now().Add(writeWait))
	if err == nil {
		_, err = conn.Write(tunnelwire.AppendPreamble(make([]byte, 0, tunnelwire.PreambleSize), ticket))
	}
	if err == nil {
		err = conn.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// waitForVisitor reads and verifies the header. rest is what came behind it.
func (s *session) waitForVisitor(conn net.Conn, ticket tunnelwire.Ticket) (source, destination netip.AddrPort, rest []byte, err error) {
	// The end of the session ends the waiting, but not a visitor's stay.
	stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer stop()
	buf := make([]byte, firstRead)
	n, size := 0, 0
	for {
		got, err := conn.Read(buf[n:])
		if got == 0 && err != nil {
			if err == io.EOF {
				err = errEnded
			}
			return source, destination, nil, err
		}
		if n == 0 {
			if err := conn.SetReadDeadline(time.Now().Add(headerWait)); err != nil {
				return source, destination, nil, err
			}
		}
		n += got
		source, destination, size, err = s.key.ParseHeader(buf[:n], ticket)
		if err != nil {
			return source, destination, nil, err
		}
		if size > 0 {
			break
		}
	}
	if !stop() {
		return source, destination, nil, errEnded
	}
	return source, destination, buf[size:n], conn.SetReadDeadline(time.Time{})
}

// failed tells the relay that nothing comes of ticket, unless the session itself
// is ending, which closes data connections too.
func (s *session) failed(ticket tunnelwire.Ticket, raw bool, err error) {
	select {
	case <-s.ctx.Done():
		return
	case <-time.After(lookAgainAfter):
	}
	s.log.Debug("a data connection could not be opened", "err", err, "tls", !raw)
	if raw {
		s.suspect(1)
	}
	_ = s.send(tunnelwire.Frame{Type: tunnelwire.Failed, Tickets: []tunnelwire.Ticket{ticket}})
}

// missing counts plain data connections that have not reached the relay, unless
// others have: those are only late.
func (s *session) missing(n, arrived int) {
	if arrived > 0 {
		s.gotThrough()
		return
	}
	s.suspect(n)
}

// secure reports whether data connections are to run inside TLS.
func (s *session) secure() bool {
	t := s.tunnel
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now().Before(t.secureFor[s.relay.Address])
}

// suspect counts n signs that plain data connections do not get through, and
// goes over to TLS when there are enough, for later sessions with the relay, too.
func (s *session) suspect(n int) {
	if s.secure() {
		return
	}
	t := s.tunnel
	t.mu.Lock()
	s.signs += n
	givenUp := !s.proven && s.signs >= rawTries
	if givenUp {
		s.signs, t.secureFor[s.relay.Address] = 0, t.now().Add(secureTime)
	}
	t.mu.Unlock()
	if givenUp {
		s.log.Warn("this network lets only TLS through to the relay: visits run inside TLS, which is slower", "for", secureTime)
	}
}

// gotThrough notes that a plain data connection has. If they were taken for lost they
// were only late, and TLS ends at once.
func (s *session) gotThrough() {
	late := s.secure()
	s.tunnel.mu.Lock()
	s.proven = true
	delete(s.tunnel.secureFor, s.relay.Address)
	s.tunnel.mu.Unlock()
	if late {
		s.log.Info("this network lets more than TLS through to the relay, only late: visits do not run inside TLS any more")
	}
}
