package tunnelwire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/netip"
	"sync"
)

// The header is PROXY protocol version 2 (haproxy's proxy-protocol.txt, 2.2) in
// one fixed form: command PROXY, TCP over IPv4 or IPv6, and exactly one TLV, of
// type macType, with a code over the ticket and the header up to the TLV. Any
// reader of the protocol understands it; only the fixed form is accepted, so
// that every byte is either authenticated or known.
const (
	// macType is in the range the protocol leaves to applications.
	macType = 0xE5

	signature   = "\r\n\r\n\x00\r\nQUIT\n"
	headFixed   = 16
	commandByte = 0x21
	familyTCP4  = 0x11
	familyTCP6  = 0x21
	addrs4      = 12
	addrs6      = 36
	tlvSize     = 3 + sha256.Size

	// maxHeader is the size of the longest header, in bytes.
	maxHeader = headFixed + addrs6 + tlvSize
)

var macLabel = []byte("porchlight proxy header 1\x00")

var (
	// ErrHeader says that the bytes are not a header of the fixed form.
	ErrHeader = errors.New("tunnelwire: not the PROXY header expected")
	// ErrForged says that a header was not made by the relay the ticket came from.
	ErrForged = errors.New("tunnelwire: the PROXY header is not authentic")
)

// HeaderKey makes and verifies headers with the keying material of one control
// connection. It is safe for concurrent use.
type HeaderKey struct {
	macs sync.Pool // of hash.Hash, keyed once: a header is made for every visit
}

// NewHeaderKey takes the KeySize bytes exported from the control connection.
func NewHeaderKey(material []byte) *HeaderKey {
	return &HeaderKey{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, material) }}}
}

// HeaderSize is how many bytes AppendHeader will append for these addresses.
func HeaderSize(source, destination netip.AddrPort) int {
	if source.Addr().Unmap().Is4() && destination.Addr().Unmap().Is4() {
		return headFixed + addrs4 + tlvSize
	}
	return headFixed + addrs6 + tlvSize
}

// AppendHeader appends the header that presents a visitor: source is where it
// comes from, destination what it connected to, ticket the one the data
// connection was opened with. Addresses that are not IP ones are written as the
// unspecified address.
func (k *HeaderKey) AppendHeader(b []byte, ticket Ticket, source, destination netip.AddrPort) []byte {
	start := len(b)
	src, dst := source.Addr().Unmap(), destination.Addr().Unmap()
	if !src.IsValid() {
		src = netip.IPv6Unspecified()
	}
	if !dst.IsValid() {
		dst = netip.IPv6Unspecified()
	}
	family, addrs := byte(familyTCP4), uint16(addrs4)
	if !src.Is4() || !dst.Is4() {
		family, addrs = familyTCP6, addrs6
		src, dst = netip.AddrFrom16(src.As16()), netip.AddrFrom16(dst.As16())
	}
	b = append(append(b, signature...), commandByte, family)
	b = binary.BigEndian.AppendUint16(b, addrs+tlvSize)
	b, _ = src.AppendBinary(b) // never fails
	b, _ = dst.AppendBinary(b)
	b = binary.BigEndian.AppendUint16(b, source.Port())
	b = binary.BigEndian.AppendUint16(b, destination.Port())
	mac := k.mac(ticket, b[start:])
	defer k.macs.Put(mac)
	b = append(b, macType)
	b = binary.BigEndian.AppendUint16(b, sha256.Size)
	return mac.Sum(b)
}

// ParseHeader reads and authenticates the header at the head of b. Without an
// error, n is its size, or zero when more bytes are needed (never more than
// maxHeader).
func (k *HeaderKey) ParseHeader(b []byte, ticket Ticket) (source, destination netip.AddrPort, n int, err error) {
	fail := func(err error) (netip.AddrPort, netip.AddrPort, int, error) {
		return netip.AddrPort{}, netip.AddrPort{}, 0, err
	}
	if n := min(len(b), len(signature)); string(b[:n]) != signature[:n] {
		return fail(ErrHeader)
	}
	if len(b) < headFixed {
		return fail(nil)
	}
	if b[12] != commandByte {
		return fail(fmt.Errorf("%w: command %#x", ErrHeader, b[12]))
	}
	addrs := addrs4
	switch b[13] {
	case familyTCP4:
	case familyTCP6:
		addrs = addrs6
	default:
		return fail(fmt.Errorf("%w: family %#x", ErrHeader, b[13]))
	}
	if got := int(binary.BigEndian.Uint16(b[14:])); got != addrs+tlvSize {
		return fail(fmt.Errorf("%w: length %d", ErrHeader, got))
	}
	end := headFixed + addrs
	if len(b) < end+tlvSize {
		return fail(nil)
	}
	if b[end] != macType || binary.BigEndian.Uint16(b[end+1:]) != sha256.Size {
		return fail(fmt.Errorf("%w: another TLV", ErrHeader))
	}
	mac := k.mac(ticket, b[:end])
	defer k.macs.Put(mac)
	if !hmac.Equal(mac.Sum(nil), b[end+3:end+tlvSize]) {
		return fail(ErrForged)
	}
	size := (addrs - 4) / 2 // behind the addresses are two ports
	src, _ := netip.AddrFromSlice(b[headFixed : headFixed+size])
	dst, _ := netip.AddrFromSlice(b[headFixed+size : end-4])
	return netip.AddrPortFrom(src.Unmap(), binary.BigEndian.Uint16(b[end-4:])),
		netip.AddrPortFrom(dst.Unmap(), binary.BigEndian.Uint16(b[end-2:])),
		end + tlvSize, nil
}

// mac is the code's hash after everything it covers; it goes back to macs.
func (k *HeaderKey) mac(ticket Ticket, head []byte) hash.Hash {
	mac := k.macs.Get().(hash.Hash)
	mac.Reset()
	mac.Write(macLabel)
	mac.Write(ticket[:])
	mac.Write(head)
	return mac
}
