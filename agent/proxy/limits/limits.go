// Package limits is the one table of what a visitor's connection and its requests may
// cost this computer before anything is known of who they are. Every way in reads
// it: net/http's server and ours, for HTTP/1.1 and HTTP/2. Bodies on their way to an
// app have no limit here. What one person may have under way at an app is here too, and
// the proxy counts it, for it is the same however a request came in.
package limits

import "time"

// Heads.
const (
	Header  = 64 << 10  // bytes of a head, over HTTP/2 as RFC 9113, section 6.5.2, counts; more is 431
	Fields  = 200       // header fields, trailers included; more is 431
	Refused = 1 << 20   // bytes of a head that are read, and not kept, to answer it with 431
	String  = 256 << 10 // bytes of one field over HTTP/2, which its decoder keeps until it ends; a longer one ends the connection
	Short   = 1 << 10   // bytes that are kept of a head that is refused, of the fields Telling
)

// Certificate is the most bytes that a visitor sends in a handshake that asks for a certificate.
const Certificate = 32 << 10

// Telling are the fields that tell a browser's page load from anything else.
var Telling = [...]string{"Accept", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Upgrade", "X-Requested-With", "Origin"}

// Time.
const (
	// HeaderTimeout is for the TLS handshake, and again for a head from its first
	// byte on.
	HeaderTimeout = 10 * time.Second
	// BodyTimeout is for a body that no app reads: what is answered without one.
	BodyTimeout = 10 * time.Second
	// Idle is how long a connection may wait for its next request.
	Idle = 2 * time.Minute
	// Unread is how long a visitor may take nothing of what is written to them, not a
	// byte: as long as a relay's system waits. HTTP/2 has shorter times of its own.
	Unread = 5 * time.Minute
	// ShutdownGrace is how long requests under way have when Porchlight stops.
	ShutdownGrace = 2 * time.Second
	// LetIn is how long a connection has for a first request that is let through,
	// unless the gate's Config says otherwise.
	LetIn = 10 * time.Second
	// Parting is how long a visitor has to notice that the connection ends.
	Parting = time.Second
	// MaxParting bounds how long requests under way put that end off.
	MaxParting = 30 * time.Second
	// Lingering is how long what a visitor still sends is read after an answer that
	// ends the connection, so that the answer is not lost to a reset.
	Lingering = 500 * time.Millisecond
)

// Connections.
const (
	Conns = 16 << 10 // in any case
	// LeastPerSource is more than a browser opens at once.
	LeastPerSource = 32
)

// Memory, in bytes, of requests that are not at an app: of their heads, and of what it takes
// to answer them.
const (
	Held          = 32 << 20 // in all
	HeldKept      = 20 << 20 // of these, for connections on which somebody was let in
	HeldPerSource = 4 << 20
	HeldPerConn   = 1 << 20 // then the visitor is read no further until some are answered
	// HeldAnswer is what an answer of ours may take while it waits: a stack, a page, a buffer.
	HeldAnswer = 16 << 10
)

// Shares of the files this process may have open, in sixteenths. Two are left, for
// everything else: the store, the tunnels with what they park for visitors, the
// loopback API, looks at apps, the window.
const (
	ConnsShare    = 9 // connections of visitors, most of whom ask for nothing just now
	RequestsShare = 4 // connections to apps in use, by a request or a WebSocket each
	PersonShare   = 2 // of those, one person's
	KeptShare     = 1 // connections to apps kept for the next request
)

// What one person may have under way at one app.
const (
	RequestsPerApp   = 256 // event streams among them
	WebSocketsPerApp = 256
)

// Share is so many sixteenths of the files.
func Share(files, sixteenths int) int { return files * sixteenths / 16 }

// Bodies that the handler did not read: so much of one is read after the answer to
// keep the connection; with more to come, it ends.
const BodyRest = 256 << 10

// HTTP/2.
const (
	Frame       = 16 << 10 // bytes of a frame, all read before it is looked at
	Streams     = 250      // open at a time on a connection
	HeaderTable = 4 << 10  // bytes of the tables of HPACK, both ways
	Window      = 1 << 20  // bytes of bodies on their way in, of a connection and of a stream

	// A visitor who vanished without a word must not hold streams open.
	PingAfter   = 30 * time.Second // of silence
	PingTimeout = 15 * time.Second
	// WriteStall is how long a write may take without a byte going out.
	WriteStall = time.Minute
)

// HTTP/2, of our own way in. What is beyond ends the connection.
const (
	// FirstSettings is how long a visitor who said hello has for its settings.
	FirstSettings = 2 * time.Second
	// Stall is how long a stream may wait for a visitor to open its window; then it
	// is reset. StallOurs is for an answer of ours, which fits into the first window.
	Stall     = 2 * time.Minute
	StallOurs = 5 * time.Second
	// CutOff is how long a write of a stream that is cut off may still take.
	CutOff = 200 * time.Millisecond

	// Streams that come to nothing, reset by the visitor or by its mistakes: so many at
	// once, and as many more as there are seconds between them.
	Resets          = 1000
	ResetsPerSecond = 33

	// Frames that ask for nothing to be answered (SETTINGS, PING, PRIORITY, a window's,
	// unknown ones, DATA without data or of a stream that is gone).
	Empties          = 10_000
	EmptiesPerSecond = 1000
	EmptiesPerData   = 4 // more for each DATA frame to the visitor, whose answer they may be
	// EmptiesPerSettings is what a SETTINGS frame counts for.
	EmptiesPerSettings = 10

	Continuations = 128  // frames of a header block after the first; 64 hold the largest
	ControlFrames = 1000 // that wait to be written
	Settings      = 100  // in a frame
)

// Writes.
const (
	Record = 16 << 10 // bytes of plain text in a TLS record
	Gather = 68 << 10 // bytes that leave together: four full records, encrypted
)
