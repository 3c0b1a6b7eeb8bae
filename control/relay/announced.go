package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/control/relay/peers"
)

// A load balancer that passes TCP connections on puts its own address in place of
// the visitor's, and can say whose it was in a PROXY header in front of
// everything else (haproxy's proxy-protocol.txt). Such a header is what decides
// under which address a connection is counted and which one the computer is told,
// so it is read from the balancers the operator names, who must send one, and
// from nobody else: anybody else's is bytes that make no sense here.

const (
	// maxV2 bounds what follows the fixed part of a version 2 header, in bytes:
	// balancers add a few hundred to the addresses at most.
	maxV2 = 4 << 10
	// maxV1 bounds a version 1 header, its line end included, in bytes.
	maxV1 = 107
)

var (
	v2Signature = []byte("\r\n\r\n\x00\r\nQUIT\n")
	v1Signature = []byte("PROXY ")

	errAnnouncement = errors.New("relay: not a PROXY header")
)

// announced is a connection that came through a balancer, with the ends it has
// for its visitor.
type announced struct {
	stream        // the balancer's
	remote, local net.Addr
}

func (a *announced) RemoteAddr() net.Addr { return a.remote }
func (a *announced) LocalAddr() net.Addr  { return a.local }

// withoutHeader is the connection whose bytes are copied: the kernel is asked to do
// that, and knows nothing of announcements, nor of what nodes said to each other before.
func withoutHeader(s stream) stream {
	switch s := s.(type) {
	case *announced:
		return s.stream
	case *peers.Conn:
		if raw, bare := s.Raw(); bare {
			return raw
		}
	}
	return s
}

// mustAnnounce says whether conn comes from one of the operator's balancers.
func (r *Relay) mustAnnounce(conn net.Conn) bool {
	from := addrPort(conn.RemoteAddr()).Addr()
	return slices.ContainsFunc(r.cfg.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(from) })
}

// readAnnouncement reads the header at the head of a balancer's connection, and
// not one byte more. What the balancer says for itself, as a health check does,
// stays its own.
func readAnnouncement(conn stream, wait time.Duration) (stream, error) {
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	source, destination, err := readHeader(conn)
	if err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if !source.IsValid() {
		return conn, nil
	}
	return &announced{conn, net.TCPAddrFromAddrPort(source), net.TCPAddrFromAddrPort(destination)}, nil
}

// readHeader reads a header of either version. The addresses are zero where it
// names none. The error wraps errAnnouncement for what is no header.
func readHeader(r io.Reader) (source, destination netip.AddrPort, err error) {
	var head [maxV1]byte
	n := len(v2Signature) // of either version there is more
	if _, err := io.ReadFull(r, head[:n]); err != nil {
		return source, destination, err
	}
	switch {
	case bytes.Equal(head[:n], v2Signature):
		return readV2(r)
	case !bytes.HasPrefix(head[:n], v1Signature):
		return source, destination, errAnnouncement
	}
	// What follows the line is not ours to read, so it comes byte by byte.
	for !bytes.HasSuffix(head[:n], []byte("\r\n")) {
		if n == maxV1 {
			return source, destination, fmt.Errorf("%w: its line does not end", errAnnouncement)
		}
		if _, err := io.ReadFull(r, head[n:n+1]); err != nil {
			return source, destination, err
		}
		n++
	}
	return parseV1(string(head[len(v1Signature) : n-2]))
}

// parseV1 reads what a version 1 header says behind its signature: the family,
// two addresses and two ports (section 2.1).
func parseV1(line string) (source, destination netip.AddrPort, err error) {
	if line == "UNKNOWN" || strings.HasPrefix(line, "UNKNOWN ") {
		return source, destination, nil
	}
	word := strings.Split(line, " ")
	if len(word) != 5 || word[0] != "TCP4" && word[0] != "TCP6" {
		return source, destination, fmt.Errorf("%w: its line is not of TCP", errAnnouncement)
	}
	var ends [2]netip.AddrPort
	for i := range ends {
		addr, err := netip.ParseAddr(word[1+i])
		if err != nil || addr.Zone() != "" || addr.Is4() != (word[0] == "TCP4") {
			return source, destination, fmt.Errorf("%w: an address in it cannot be read", errAnnouncement)
		}
		port, err := strconv.ParseUint(word[3+i], 10, 16)
		if err != nil || strconv.FormatUint(port, 10) != word[3+i] {
			return source, destination, fmt.Errorf("%w: a port in it cannot be read", errAnnouncement)
		}
		ends[i] = netip.AddrPortFrom(addr.Unmap(), uint16(port))
	}
	return ends[0], ends[1], nil
}

// readV2 reads what follows the signature of a version 2 header (section 2.2).
func readV2(r io.Reader) (source, destination netip.AddrPort, err error) {
	var fixed [4]byte // version and command, family and transport, length
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return source, destination, err
	}
	length := binary.BigEndian.Uint16(fixed[2:])
	if length > maxV2 {
		return source, destination, fmt.Errorf("%w: %d bytes are too long", errAnnouncement, length)
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return source, destination, err
	}
	const local, proxy, unspecified, tcp4, tcp6 = 0x20, 0x21, 0x00, 0x11, 0x21
	size := map[byte]int{tcp4: 4, tcp6: 16}[fixed[1]]
	switch {
	case fixed[0] == local, fixed[0] == proxy && fixed[1] == unspecified:
		return source, destination, nil
	case fixed[0] != proxy || size == 0:
		return source, destination, fmt.Errorf("%w: it is not of TCP", errAnnouncement)
	case len(rest) < 2*size+4:
		return source, destination, fmt.Errorf("%w: it is too short for its addresses", errAnnouncement)
	}
	endpoint := func(at, port int) netip.AddrPort {
		addr, _ := netip.AddrFromSlice(rest[at : at+size]) // of 4 or 16 bytes
		return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(rest[port:]))
	}
	return endpoint(0, 2*size), endpoint(size, 2*size+2), nil
}
