package http2

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	frames "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/agent/proxy/limits"
)

// Conn is one visitor's connection.
type Conn struct {
	server *Server
	raw    net.Conn
	memory memory               // nil for none to ask
	ctx    context.Context      // of the connection: what every request's knows
	tls    *tls.ConnectionState // nil without TLS
	remote string
	begun  time.Time

	lastRead atomic.Int64 // when something last came in; see now

	// Touched by the goroutine that reads only:
	in   *bufio.Reader
	read *frames.Framer
	head head

	// mu guards all that follows, and the streams. It is never held while anything is
	// read, written or waited for.
	mu sync.Mutex

	streams map[uint32]*stream
	lastID  uint32        // the highest of a stream that was begun
	running int           // handlers
	waiting []*stream     // for one of them to end, the oldest first
	idle    int64         // since when there is no stream
	held    int           // bytes of all streams
	stuck   int           // of them, those of streams that wait for a window
	given   chan struct{} // told when some were given back, or are stuck; nil while nobody waits
	connIn  inflow        // of the connection
	lately  lately        // streams that were reset
	resets  budget        // of streams that come to nothing
	empties budget        // of frames that do

	window  int64     // what may be sent on the connection
	sent    int64     // bytes of DATA that were
	initial int64     // on a new stream
	frame   int       // bytes of a frame that the visitor takes
	queue   []*stream // that wait for room on the connection, the oldest first

	out      []byte         // frames to be written; nil while there are none
	room     *sync.Cond     // told when out was taken to be written, or a stream was closed
	box      *[]byte        // what out came in, from buffers
	control  int            // control frames among them
	flushing bool           // somebody is writing
	quiet    chan struct{}  // told after each write, and when nobody is any more; nil until that matters
	flusher  *stream        // whose handler that is; nil for a worker
	flushes  uint64         // how many writes there were
	writeBy  time.Time      // the deadline of writes; of who is flushing
	write    *frames.Framer // into out
	encoder  *hpack.Encoder // into coded
	coded    bytes.Buffer

	timer    *time.Timer
	rests    bool  // nothing was open when the timer was set: it comes when that lasted
	pinged   int64 // when an answer to a ping was asked for; 0: none is awaited
	pingData [8]byte
	unacked  int // SETTINGS of ours
	leaving  bool
	code     frames.ErrCode // of the GOAWAY, when leaving
	prompt   bool           // leave as soon as the last stream is answered
	lingers  int64          // when a connection that is left is closed; 0: not yet
	ended    error          // why nothing more may happen here; nil while it may
}

var (
	errClosed       = errors.New("http2: the visitor's stream is closed")
	errGone         = errors.New("http2: the visitor's connection is gone")
	errServerClosed = errors.New("http2: the server is closed")
	errSilent       = errors.New("http2: the visitor did not answer a PING")
	errFlood        = errors.New("http2: too many frames wait to be written")
	errBroken       = errors.New("http2: an error of our own")
)

// now is the connection's monotonic clock, in nanoseconds; it is never 0.
func (c *Conn) now() int64 { return int64(time.Since(c.begun) + time.Hour) }

// NewConn makes a connection of one whose TLS handshake chose h2. ctx is what the
// contexts of its requests know; when it ends means nothing here.
func (s *Server) NewConn(ctx context.Context, raw net.Conn) *Conn {
	c := &Conn{
		server: s, raw: raw, ctx: ctx, remote: raw.RemoteAddr().String(),
		begun: time.Now(), streams: map[uint32]*stream{},
		connIn: inflow{open: limits.Window},
		resets: newBudget(limits.Resets, limits.ResetsPerSecond), empties: newBudget(limits.Empties, limits.EmptiesPerSecond),
		window: initialWindow, initial: initialWindow, frame: limits.Frame,
	}
	c.room = sync.NewCond(&c.mu)
	c.memory, _ = raw.(memory)
	if secure, ok := raw.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := secure.ConnectionState()
		c.tls = &state
	}
	c.idle = c.now()
	c.lastRead.Store(c.idle)
	c.in = bufio.NewReaderSize(source{c}, readBuffer)
	c.read = frames.NewFramer(nil, c.in)
	c.read.SetMaxReadFrameSize(limits.Frame)
	c.read.SetReuseFrames()
	c.head.decoder = hpack.NewDecoder(limits.HeaderTable, c.head.add)
	c.head.decoder.SetMaxStringLength(limits.String)
	c.write = frames.NewFramer(sink{c}, nil)
	c.encoder = hpack.NewEncoder(&c.coded)
	c.encoder.SetMaxDynamicTableSizeLimit(limits.HeaderTable)
	return c
}

const (
	initialWindow = 65535 // RFC 9113, section 6.9.2
	maxWindow     = 1<<31 - 1
	readBuffer    = 4 << 10
)

// source is what the visitor sends. Before it waits, it has written what is to be.
type source struct{ c *Conn }

func (s source) Read(p []byte) (int, error) {
	s.c.beforeRead()
	n, err := s.c.raw.Read(p)
	if n > 0 {
		s.c.lastRead.Store(s.c.now())
	}
	return n, err
}

// beforeRead has what waits be written. While too many answers to control frames do, no
// more of these are read: who does not take the answers can only wait for the deadline.
func (c *Conn) beforeRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.control > limits.ControlFrames/2 && c.ended == nil {
		if !c.flushing {
			c.flush(nil, false)
			continue
		}
		c.quiet = make(chan struct{}, 1)
		c.wait(c.quiet, limits.WriteStall)
		c.quiet = nil
	}
	c.kick()
}

// Serve answers requests until the connection ends, which it closes.
func (c *Conn) Serve() {
	if !c.server.add(c) {
		c.raw.Close()
		return
	}
	defer c.server.remove(c)
	defer c.caught() // of the end
	defer c.end()
	defer c.caught()
	if !c.greet() {
		return
	}
	for c.next() {
	}
}

// greet exchanges what comes before the first request.
func (c *Conn) greet() bool {
	if c.tls != nil && !strongEnough(c.tls) {
		c.goAway(frames.ErrCodeInadequateSecurity)
		return false
	}
	c.hello()
	c.readWithin(limits.HeaderTimeout)
	var preface [len(frames.ClientPreface)]byte
	if _, err := io.ReadFull(c.in, preface[:]); err != nil || string(preface[:]) != frames.ClientPreface {
		return false
	}
	c.readWithin(limits.FirstSettings)
	f, err := c.read.ReadFrame()
	if err == nil {
		if _, ok := f.(*frames.SettingsFrame); !ok {
			err = frames.ConnectionError(frames.ErrCodeProtocol)
		} else {
			err = c.process(f)
		}
	}
	if err != nil {
		c.judge(err)
		return false
	}
	c.readWithin(0)
	return true
}

// hello puts our side of the greeting into out, and has the connection looked at.
func (c *Conn) hello() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.write.WriteSettings( // into memory
		frames.Setting{ID: frames.SettingMaxFrameSize, Val: limits.Frame},
		frames.Setting{ID: frames.SettingMaxConcurrentStreams, Val: limits.Streams},
		frames.Setting{ID: frames.SettingMaxHeaderListSize, Val: limits.Header},
		frames.Setting{ID: frames.SettingHeaderTableSize, Val: limits.HeaderTable},
		frames.Setting{ID: frames.SettingInitialWindowSize, Val: limits.Window},
	)
	_ = c.write.WriteWindowUpdate(0, limits.Window-initialWindow)
	c.unacked++
	c.timer = time.AfterFunc(firstTick(), c.tick)
}

// strongEnough holds TLS 1.2 to what RFC 9113, section 9.2.2, does not prohibit: of
// what crypto/tls knows, the suites of ECDHE with an AEAD.
func strongEnough(state *tls.ConnectionState) bool {
	if state.Version > tls.VersionTLS12 {
		return true
	}
	switch state.CipherSuite {
	case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return state.Version == tls.VersionTLS12
	}
	return false
}

// readWithin bounds what is read next; 0 for no bound.
func (c *Conn) readWithin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return // the deadline is in the past, and stays there
	}
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	_ = c.raw.SetReadDeadline(until) // reading says what is wrong
}

// next reads one frame, or a header block, and is false when it was the last.
func (c *Conn) next() bool {
	f, err := c.read.ReadFrame()
	if err == nil {
		err = c.process(f)
	}
	return err == nil || c.judge(err)
}

// judge does what an error asks for, and says whether the connection stays.
func (c *Conn) judge(err error) bool {
	if broken, ok := errors.AsType[frames.StreamError](err); ok {
		if c.resetFor(broken) {
			return true
		}
		err = frames.ConnectionError(frames.ErrCodeEnhanceYourCalm)
	}
	if errors.Is(err, frames.ErrFrameTooLarge) {
		err = frames.ConnectionError(frames.ErrCodeFrameSize)
	}
	if wrong, ok := errors.AsType[frames.ConnectionError](err); ok {
		c.server.config.Log.Debug("HTTP/2: a connection is refused", "from", c.remote, "err", err, "detail", c.read.ErrorDetail())
		c.goAway(frames.ErrCode(wrong))
	}
	return false
}

// resetFor ends a stream by the visitor's doing, and is false when that was too often.
func (c *Conn) resetFor(e frames.StreamError) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.streams[e.StreamID]
	// What came for a stream that is gone may have been on its way when it went.
	late := st == nil && e.Code == frames.ErrCodeStreamClosed
	if late && !c.empties.spend(1) || !late && !c.resets.spend(1) {
		return false
	}
	if !late && st == nil {
		c.lately.add(e.StreamID)
	}
	c.reset(e.StreamID, e.Code, st, errClosed)
	return true
}

// reset ends a stream, which may be gone already. mu is held.
func (c *Conn) reset(id uint32, code frames.ErrCode, st *stream, why error) {
	if c.ended != nil {
		return
	}
	_ = c.write.WriteRSTStream(id, code) // into memory
	c.controls()
	if st != nil {
		c.lately.add(id)
		c.close(st, why)
	}
}

// controls counts a control frame in out, which a visitor who reads nothing must not
// fill. mu is held.
func (c *Conn) controls() {
	if c.control++; c.control > limits.ControlFrames {
		c.fail(errFlood)
	}
}

// goAway says why no more frames are taken. The connection ends with it.
func (c *Conn) goAway(code frames.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	_ = c.write.WriteGoAway(c.lastID, code, nil) // into memory
	c.leaving, c.code = true, code
	c.closeAll(errClosed)
}

// fail ends the connection from any goroutine: the one that reads does it, and a write
// that is under way must not keep it from that. mu is held.
func (c *Conn) fail(why error) {
	if c.ended != nil {
		return
	}
	c.ended = why
	if c.given != nil {
		signal(c.given)
	}
	defer func() { _ = c.raw.SetDeadline(past) }() // whoever reads or writes shows it
	c.closeAll(why)
}

// past is a deadline that has reads and writes end now.
var past = time.Unix(1, 0)

// Abort ends the connection, whose net.Conn whoever calls it closes.
func (c *Conn) Abort() { c.abort(errGone) }

func (c *Conn) abort(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(why)
}

// caught is deferred on every goroutine that does something for the connection, before
// mu is locked there: what it panics with costs this connection and no other.
func (c *Conn) caught() {
	if what := recover(); what != nil {
		c.broke(what)
	}
}

// broke ends the connection because of what is not the visitor's doing.
func (c *Conn) broke(what any) {
	c.server.config.Log.Debug("HTTP/2: where it broke", "what", what, "stack", string(debug.Stack()))
	c.server.broken(what)
	c.abort(errBroken)
}

// end is the end of the connection, on the goroutine that reads.
func (c *Conn) end() {
	defer c.raw.Close()
	announced, hard := c.parting()
	if announced {
		// What the visitor still sends is read for a moment: a reset in answer to it
		// could overtake the GOAWAY.
		_ = c.raw.SetReadDeadline(time.Now().Add(limits.Parting))
		_, _ = io.Copy(io.Discard, c.raw)
	}
	if under, ok := c.raw.(interface{ NetConn() net.Conn }); ok && hard {
		under.NetConn().Close() // a polite end of TLS could wait for a visitor who does not read
	}
}

// parting writes the last of what there is to say: told, why the connection ends. hard
// says that it had ended before.
func (c *Conn) parting() (announced, hard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	announced = c.ended == nil && c.leaving && c.code != frames.ErrCodeNo
	if c.timer != nil {
		c.timer.Stop()
	}
	if announced {
		until := time.Now().Add(limits.Parting)
		_ = c.raw.SetDeadline(until) // a failure shows in the next lines
		if c.flushing {
			c.quiet = make(chan struct{}, 1)
			for c.flushing && c.wait(c.quiet, time.Until(until)) {
			}
		}
		if !c.flushing {
			c.writeBy = until.Add(time.Hour) // allowWrite does not put the deadline off
			c.flush(nil, true)
		}
	}
	hard = c.ended != nil
	c.fail(errGone)
	return announced, hard
}

// state tells of the first stream and of the last.
func (c *Conn) state(s http.ConnState) {
	if tell := c.server.config.State; tell != nil {
		tell(c.raw, s)
	}
}
