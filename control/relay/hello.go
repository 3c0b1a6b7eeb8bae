package relay

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"
)

// clientHello is what the relay reads of a visitor's first message: enough to
// route it, nothing that would need a key.
type clientHello struct {
	serverName string // lower case, without a trailing dot; empty when absent or not a host name
	protocols  []string
}

// acmeALPN is the protocol of the TLS-ALPN-01 challenge (RFC 8737).
const acmeALPN = "acme-tls/1"

func (h clientHello) offers(protocol string) bool { return slices.Contains(h.protocols, protocol) }

var errHello = errors.New("relay: malformed ClientHello")

const (
	recordHeader    = 5
	recordHandshake = 0x16
	maxRecord       = 1 << 14
	typeClientHello = 1
)

// helloReader collects a ClientHello out of the records at the head of a growing
// buffer. It goes over each record once, however many pieces they arrive in.
type helloReader struct {
	next    int    // offset of the first record not yet taken
	message []byte // handshake bytes so far: part of the buffer while one record holds all of them
	records int
}

// read goes on with raw, which begins as the buffer of the call before did. It
// says whether the hello is complete.
func (r *helloReader) read(raw []byte) (hello clientHello, done bool, err error) {
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
			return hello, false, errHello
		}
		length := int(r.message[1])<<16 | int(r.message[2])<<8 | int(r.message[3])
		if length > maxPreface {
			return hello, false, errTooLong
		}
		if len(r.message) < 4+length {
			continue
		}
		hello, err = parseHello(r.message[4 : 4+length])
		return hello, err == nil, err
	}
}

// checkRecord looks at as much of a record's header as there is.
func checkRecord(b []byte) error {
	if len(b) >= 1 && b[0] != recordHandshake || len(b) >= 2 && b[1] != 3 {
		return errHello
	}
	if len(b) >= recordHeader {
		if size := int(b[3])<<8 | int(b[4]); size == 0 || size > maxRecord {
			return errHello
		}
	}
	return nil
}

// parseHello reads the body of a ClientHello (RFC 8446, 4.1.2).
func parseHello(body []byte) (clientHello, error) {
	var (
		hello                            clientHello
		sessionID, suites, methods, exts cryptobyte.String
		s                                = cryptobyte.String(body)
	)
	if !s.Skip(2+32) || !s.ReadUint8LengthPrefixed(&sessionID) || len(sessionID) > 32 ||
		!s.ReadUint16LengthPrefixed(&suites) || !s.ReadUint8LengthPrefixed(&methods) {
		return hello, errHello
	}
	if s.Empty() {
		return hello, nil // a hello of before extensions: no name
	}
	if !s.ReadUint16LengthPrefixed(&exts) || !s.Empty() {
		return hello, errHello
	}
	var seenName, seenProtocols bool
	for !exts.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !exts.ReadUint16(&kind) || !exts.ReadUint16LengthPrefixed(&data) {
			return hello, errHello
		}
		switch kind {
		case 0: // server_name (RFC 6066, 3)
			// Twice would leave it to each reader which one counts.
			if seenName || !readServerName(data, &hello.serverName) {
				return hello, errHello
			}
			seenName = true
		case 16: // application_layer_protocol_negotiation (RFC 7301, 3.1)
			if seenProtocols || !readProtocols(data, &hello.protocols) {
				return hello, errHello
			}
			seenProtocols = true
		}
	}
	return hello, nil
}

func readServerName(data cryptobyte.String, name *string) bool {
	var list, host cryptobyte.String
	var kind uint8
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() ||
		!list.ReadUint8(&kind) || kind != 0 || !list.ReadUint16LengthPrefixed(&host) || !list.Empty() || len(host) == 0 {
		return false
	}
	*name = normalName(string(host))
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

// normalName lower-cases a host name and takes its trailing dot away. What
// cannot be one is returned as the empty string.
func normalName(name string) string {
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
