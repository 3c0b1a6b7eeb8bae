package tunnelwire

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
)

// Sizes in bytes.
const (
	ticketIDSize = 16
	TicketSize   = 32
	PreambleSize = len(Magic) + TicketSize
)

// Magic begins every data connection. Its first byte is neither a TLS record's
// nor a letter, so that one byte tells the three things a relay is sent apart.
const Magic = "\x0epldata\x01"

// Ticket admits one data connection: 128 bits to look it up by, then 128 secret
// bits that are compared in constant time.
type Ticket [TicketSize]byte

// NewTicket returns a random ticket.
func NewTicket() Ticket {
	var t Ticket
	_, _ = rand.Read(t[:]) // never fails: the program ends instead
	return t
}

// ID is the part a relay looks the ticket up by.
func (t Ticket) ID() [ticketIDSize]byte { return [ticketIDSize]byte(t[:ticketIDSize]) }

// Equal compares in constant time.
func (t Ticket) Equal(other Ticket) bool {
	return subtle.ConstantTimeCompare(t[:], other[:]) == 1
}

// String does not show the ticket: it is a secret while it lives.
func (t Ticket) String() string { return "ticket" }

// MarshalText encodes the ticket as base64url without padding.
func (t Ticket) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, t[:]), nil
}

// UnmarshalText accepts exactly what MarshalText writes.
func (t *Ticket) UnmarshalText(text []byte) error {
	var raw [TicketSize + 3]byte
	if base64.RawURLEncoding.DecodedLen(len(text)) != TicketSize {
		return errors.New("tunnelwire: a ticket has another length")
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(raw[:], text); err != nil {
		return errors.New("tunnelwire: a ticket is not base64url")
	}
	copy(t[:], raw[:])
	return nil
}

// AppendPreamble appends what an agent sends first on a data connection.
func AppendPreamble(b []byte, t Ticket) []byte {
	b = append(b, Magic...)
	return append(b, t[:]...)
}

// errPreamble is wrapped by errors of ParsePreamble.
var errPreamble = errors.New("tunnelwire: not a data connection")

// ParsePreamble reads the preamble at the head of b. Without an error, more says
// how many bytes are still needed; at zero the ticket is whole. Bytes behind the
// preamble are an error: an agent says nothing until a visitor came.
func ParsePreamble(b []byte) (t Ticket, more int, err error) {
	n := min(len(b), len(Magic))
	if string(b[:n]) != Magic[:n] {
		return t, 0, errPreamble
	}
	switch {
	case len(b) > PreambleSize:
		return t, 0, fmt.Errorf("%w: %d bytes too many", errPreamble, len(b)-PreambleSize)
	case len(b) < PreambleSize:
		return t, PreambleSize - len(b), nil
	}
	copy(t[:], b[len(Magic):])
	return t, 0, nil
}
