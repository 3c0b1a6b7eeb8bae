// Package tunnelwire is what an agent and a relay say to each other: a leaf that
// both import, so that neither imports the other.
//
// Two kinds of connection run from agent to relay. The control connection is TLS
// (ALPN controlapi.TunnelALPN) and carries frames: four bytes of length, big
// endian, then JSON. The agent's first frame is Hello with its device
// credential; Welcome or Refused answers it. From then on the relay sends Open
// with one-time tickets, and Ping and Pong keep both sides sure of each other.
//
// For each ticket the agent opens a data connection: the preamble (magic, then
// the ticket), and silence. When a visitor takes it, the relay writes a PROXY v2
// header which only the holder of the control connection's keying material can
// make, followed by the visitor's own bytes. Data connections are plain TCP, as
// what they carry is the visitor's TLS; they run inside TLS (ALPN DataALPN) where
// a ticket asks for that or the network passes nothing else.
//
// The control connection carries the sync, too: the
// agent's Sync frame says which snapshot it has, and Synced frames bring each other one
// from then on, in parts, between which other frames find their place. What is in a
// snapshot only agent and control plane know. A computer where nothing is open beats
// seldom, and one that nobody visits parks nothing.
//
// A relay that another one passes many visitors on to says so (Come), and the agent comes
// to that one, too.
//
// A visit that the agent aborts has its data connection reset. Where the network had gone
// under that one, Aborted names the visit on a control connection that was made since.
package tunnelwire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"
)

// DataALPN is the protocol of a data connection that runs inside TLS.
const DataALPN = "porchlight-data/1"

// ExporterLabel names the keying material (RFC 8446, 7.5) of the control
// connection that authenticates PROXY headers; KeySize bytes are exported, with
// no context.
const (
	ExporterLabel = "EXPORTER-porchlight-proxy-header-1"
	KeySize       = 32
)

// Timing both sides keep. The agent sends Pings, its beats, and the relay answers each; a
// side that hears nothing for its time gives the connection up. An agent where visitors have
// something open beats every BeatAwake, and gives the relay up after SilenceAwake and the
// time that an answer takes. Another agent beats every BeatAsleep, and both sides then wait
// for SilenceAsleep: what lies between is for an answer that takes HelloWait. The relay gives an agent whose last Ping said Awake up after
// HeardAwake: an agent that is there has given up a relay that is not slow before (3 s later
// than usual where it stood still), and TCP has sent again what was lost four times. A
// computer that nobody visited for AsleepAfter parks no data connection.
const (
	HelloWait  = 10 * time.Second // from connecting to Welcome
	TicketLife = 60 * time.Second

	BeatAwake     = time.Second
	SilenceAwake  = 2500 * time.Millisecond
	BeatAsleep    = 25 * time.Second
	SilenceAsleep = 40 * time.Second
	HeardAwake    = 6 * time.Second
	AsleepAfter   = 10 * time.Minute
)

// Bounds of a frame: its bytes, and the tickets and addresses one frame may carry.
// MaxAddresses is also how many of them a relay remembers of a computer.
const (
	maxFrame     = 16 << 10
	MaxTickets   = 128
	MaxAddresses = 256
	// MaxPart bounds the part of a snapshot in one frame, MaxSnapshot all of them.
	MaxPart     = 11 << 10
	MaxSnapshot = 8 << 20
	maxVersion  = 128
)

// Type says what a frame is.
type Type string

const (
	Hello   Type = "hello"   // agent: Credential, Instance
	Welcome Type = "welcome" // relay: Node, Host
	Refused Type = "refused" // relay: Code, Message, RetryAfter; then it closes
	Open    Type = "open"    // relay: Tickets to open data connections for, TLS
	Failed  Type = "failed"  // agent: Tickets it could not open a data connection for
	Known   Type = "known"   // agent: Addresses from which it let visitors in lately
	Aborted Type = "aborted" // agent: Tickets of visits that it aborted, where the relay may not have heard of it
	Missing Type = "missing" // relay: Tickets it has waited for too long, Arrived
	Drain   Type = "drain"   // relay: it is going away, connect again
	Come    Type = "come"    // relay: visitors keep coming to the one at the address Relay, connect there besides
	Ping    Type = "ping"    // agent: Awake, Sent
	Pong    Type = "pong"    // relay: Date, Sent
	Sync    Type = "sync"    // agent: Version it has, Knows; takes the place of an earlier one
	Synced  Type = "synced"  // relay: Part, More; or Unchanged; or Code, Message, RetryAfter: it ended
)

// Codes of Refused.
const (
	CodeUnauthorized = "unauthorized" // the credential is not known (any more)
	CodeReplaced     = "replaced"     // a newer connection took this one's place
	CodeUnavailable  = "unavailable"  // try again later
	CodeProtocol     = "protocol"     // a frame was not understood
)

// KnowsAppGrants among Knows says that the agent opens by a grant for some apps these alone
// (controlapi.Snapshot.GrantApps). One that does not say so would open all by it.
const KnowsAppGrants = "app-grants"

// Frame is one message on the control connection. Which fields are filled
// depends on Type; unknown types and fields are ignored, so that either side may
// be the newer one.
type Frame struct {
	Type Type `json:"type"`
	// Credential is the computer's device credential. It must never be logged.
	Credential string `json:"credential,omitempty"`
	// Instance tells two connections of one agent apart from one that was
	// redialled: a connection with the same Instance replaces the older one.
	Instance string `json:"instance,omitempty"`
	Node     string `json:"node,omitempty"` // the relay's name: two connections to one are one too many
	Host     string `json:"host,omitempty"` // root host the relay will route here
	// Tickets, at most MaxTickets.
	Tickets []Ticket `json:"tickets,omitempty"`
	// Addresses, at most MaxAddresses.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// TLS asks that the data connections of Tickets run inside TLS.
	TLS bool `json:"tls,omitempty"`
	// Arrived is how many plain data connections have reached the relay on behalf
	// of this control connection: with some, the network lets them through and
	// those missing are merely late.
	Arrived    int    `json:"arrived,omitempty"`
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`    // a sentence for a person
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds
	// Relay in Come is the address of a listed relay. Any other is not gone to.
	Relay string `json:"relay,omitempty"`
	// Extra says in Hello that the computer has other connections, and comes for visitors.
	Extra bool `json:"extra,omitempty"`
	// Visited says in Hello that within AsleepAfter a visitor came to the computer or had
	// something open there.
	Visited bool `json:"visited,omitempty"`
	// Awake says in Ping that the next one follows after BeatAwake.
	Awake bool `json:"awake,omitempty"`
	// Sent in Ping is when, by a clock of the agent's own, and Pong gives it back: a slow
	// answer comes after further pings.
	Sent int64 `json:"sent,omitempty"`
	// Version is that of the snapshot the agent has; empty for none.
	Version string `json:"version,omitempty"`
	// Knows says in Sync what the agent knows that those of before did not.
	Knows []string `json:"knows,omitempty"`
	// Part of a snapshot, at most MaxPart bytes; More says that another follows.
	Part      []byte `json:"part,omitempty"`
	More      bool   `json:"more,omitempty"`
	Unchanged bool   `json:"unchanged,omitempty"`
	// Date in Pong is the control plane's time, seconds since 1970; it is absent unless
	// what was told is the newest.
	Date int64 `json:"date,omitempty"`
}

// errFrame is wrapped by errors of ReadFrame that are the other side's fault.
var errFrame = errors.New("tunnelwire: malformed frame")

// ReadFrame reads one frame, at most maxFrame bytes. A clean end of the stream
// between frames is io.EOF.
func ReadFrame(r io.Reader) (Frame, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size <= 0 || size > maxFrame {
		return Frame{}, fmt.Errorf("%w: %d bytes announced", errFrame, size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	if f, ok := parseBeat(body); ok {
		return f, nil
	}
	return parse(body)
}

// parse reads any frame.
func parse(body []byte) (f Frame, err error) {
	if err := json.Unmarshal(body, &f); err != nil {
		// The decoder's message may quote what it read: a credential.
		return Frame{}, fmt.Errorf("%w: not the JSON of a frame", errFrame)
	}
	if f.Type == "" {
		return Frame{}, fmt.Errorf("%w: no type", errFrame)
	}
	if len(f.Tickets) > MaxTickets {
		return Frame{}, fmt.Errorf("%w: %d tickets", errFrame, len(f.Tickets))
	}
	if len(f.Addresses) > MaxAddresses {
		return Frame{}, fmt.Errorf("%w: %d addresses", errFrame, len(f.Addresses))
	}
	if len(f.Part) > MaxPart || len(f.Version) > maxVersion {
		return Frame{}, fmt.Errorf("%w: a part of %d bytes, a version of %d", errFrame, len(f.Part), len(f.Version))
	}
	return f, nil
}

// WriteFrame writes f with one call of Write. A Pong carries Sent and Date alone.
func WriteFrame(w io.Writer, f Frame) error {
	if f.Type == Pong {
		return writePong(w, f.Sent, f.Date)
	}
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("%w: %d bytes to write", errFrame, len(body))
	}
	return writeBody(w, append(make([]byte, 4, 4+len(body)), body...))
}

func writePong(w io.Writer, sent, date int64) error {
	out := append(make([]byte, 4, 64), pongHead...)
	if sent != 0 {
		out = strconv.AppendInt(append(out, `,"sent":`...), sent, 10)
	}
	if date != 0 {
		out = strconv.AppendInt(append(out, `,"date":`...), date, 10)
	}
	return writeBody(w, append(out, '}'))
}

// writeBody writes a frame's body, which is in out behind room for its length.
func writeBody(w io.Writer, out []byte) error {
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	_, err := w.Write(out)
	return err
}

// What Ping and Pong are as JSON up to their first field. Nearly all that a relay reads and
// writes are these, of computers that sleep: they go without the decoder and its garbage.
const (
	pingHead = `{"type":"ping"`
	pongHead = `{"type":"pong"`
)

// parseBeat reads a Ping as WriteFrame writes it; ok is false for everything else.
func parseBeat(body []byte) (f Frame, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(pingHead))
	if !ok {
		return f, false
	}
	rest, awake := bytes.CutPrefix(rest, []byte(`,"awake":true`))
	rest, ok = bytes.CutPrefix(rest, []byte(`,"sent":`))
	if !ok || len(rest) == 0 || rest[0] < '1' || rest[0] > '9' { // which leaves signs out, and zeros in front
		return f, false
	}
	rest, ok = bytes.CutSuffix(rest, []byte("}"))
	sent, err := strconv.ParseInt(string(rest), 10, 64)
	return Frame{Type: Ping, Awake: awake, Sent: sent}, ok && err == nil
}
