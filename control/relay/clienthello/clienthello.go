// Package clienthello reads the first message of a TLS connection, however it arrives: which
// host it is for, and what is to be spoken. It needs no key, and answers nothing.
package clienthello

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"
)

// Hello is what a ClientHello says: enough to route it.
type Hello struct {
	ServerName string // lower case, without a trailing dot; empty when absent or not a host name
	Protocols  []string
}

// ACME is the protocol of the TLS-ALPN-01 challenge (RFC 8737).
const ACME = "acme-tls/1"

// Offers says whether a protocol may be spoken.
func (h Hello) Offers(protocol string) bool { return slices.Contains(h.Protocols, protocol) }

// Why a hello is not read.
var (
	ErrMalformed = errors.New("relay: malformed ClientHello")
	ErrTooLong   = errors.New("relay: ClientHello longer than 16 KiB")
)

const (
	// MaxSize bounds what is read of a connection before it is known whose it is, in bytes.
	MaxSize = 16 << 10
	// Handshake is the first byte of a record of handshake messages.
	Handshake = 0x16

	recordHeader    = 5
	maxRecord       = 1 << 14
	typeClientHello = 1
)

// Reader collects a ClientHello out of the records at the head of a growing
// buffer. It goes over each record once, however many pieces they arrive in.
type Reader struct {
	next    int    // offset of the first record not yet taken
	message []byte // handshake bytes so far: part of the buffer while one record holds all of them
	records int
}

// Read goes on with raw, which begins as the buffer of the call before did. It
// says whether the hello is complete.
func (r *Reader) Read(raw []byte) (hello Hello, done bool, err error) {
	for {
		if len(raw)-r.next < recordHeader {
			return hello, false, checkRecord(raw[r.next:])
		}
		if err := checkRecord(raw[r.next:]); err != nil {
			return hello, false, err
		}
		size := int(raw[r.next+3])<<8 | int(raw[r.next+4])
		after := r.next + recordHeader + size
		if len(raw) < after {
			return hello, false, nil
		}
		body := raw[r.next+recordHeader : after : after]
		if r.records == 0 {
			r.message = body
		} else {
			r.message = append(r.message, body...) // copies: body's capacity ends with it
		}
		r.records, r.next = r.records+1, after
		if len(r.message) < 4 {
			continue
		}
		if r.message[0] != typeClientHello {
			return hello, false, ErrMalformed
		}
		length := int(r.message[1])<<16 | int(r.message[2])<<8 | int(r.message[3])
		if length > MaxSize {
			return hello, false, ErrTooLong
		}
		if len(r.message) < 4+length {
			continue
		}
		hello, err = parse(r.message[4 : 4+length])
		return hello, err == nil, err
	}
}

// checkRecord looks at as much of a record's header as there is.
func checkRecord(b []byte) error {
	if len(b) >= 1 && b[0] != Handshake || len(b) >= 2 && b[1] != 3 {
		return ErrMalformed
	}
	if len(b) >= recordHeader {
		if size := int(b[3])<<8 | int(b[4]); size == 0 || size > maxRecord {
			return ErrMalformed
		}
	}
	return nil
}

// parse reads the body of a ClientHello (RFC 8446, 4.1.2).
func parse(body []byte) (Hello, error) {
	var (
		hello                            Hello
		sessionID, suites, methods, exts cryptobyte.String
		s                                = cryptobyte.String(body)
	)
	if !s.Skip(2+32) || !s.ReadUint8LengthPrefixed(&sessionID) || len(sessionID) > 32 ||
		!s.ReadUint16LengthPrefixed(&suites) || !s.ReadUint8LengthPrefixed(&methods) {
		return hello, ErrMalformed
	}
	if s.Empty() {
		return hello, nil // a hello of before extensions: no name
	}
	if !s.ReadUint16LengthPrefixed(&exts) || !s.Empty() {
		return hello, ErrMalformed
	}
	if !hello.readExtensions(exts) {
		return hello, ErrMalformed
	}
	return hello, nil
}

// readExtensions reads those that matter to the relay. Each of them may be there once: twice
// would leave it to each reader which one counts.
func (h *Hello) readExtensions(exts cryptobyte.String) bool {
	var seenName, seenProtocols bool
	for !exts.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !exts.ReadUint16(&kind) || !exts.ReadUint16LengthPrefixed(&data) {
			return false
		}
		switch kind {
		case 0: // server_name (RFC 6066, 3)
			if seenName || !readServerName(data, &h.ServerName) {
				return false
			}
			seenName = true
		case 16: // application_layer_protocol_negotiation (RFC 7301, 3.1)
			if seenProtocols || !readProtocols(data, &h.Protocols) {
				return false
			}
			seenProtocols = true
		}
	}
	return true
}

func readServerName(data cryptobyte.String, name *string) bool {
	var list, host cryptobyte.String
	var kind uint8
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() ||
		!list.ReadUint8(&kind) || kind != 0 || !list.ReadUint16LengthPrefixed(&host) || !list.Empty() || len(host) == 0 {
		return false
	}
	*name = HostName(string(host))
	return true
}

func readProtocols(data cryptobyte.String, protocols *[]string) bool {
	var list cryptobyte.String
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() || list.Empty() {
		return false
	}
	for !list.Empty() {
		var p cryptobyte.String
		if !list.ReadUint8LengthPrefixed(&p) || len(p) == 0 {
			return false
		}
		*protocols = append(*protocols, string(p))
	}
	return true
}

// HostName lower-cases a host name and takes its trailing dot away. What
// cannot be one is returned as the empty string.
func HostName(name string) string {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return ""
	}
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' {
			continue
		}
		return ""
	}
	return strings.ToLower(name)
}
