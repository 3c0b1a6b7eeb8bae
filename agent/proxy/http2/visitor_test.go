package http2_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	frames "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
	"porchlight/test/programs"
)

// net/http's server ends a connection it said goodbye on a second late, which nothing can
// be asked to wait for.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*http2serverConn).serve"))
}

// Own and net/http's server, by the same limits.
const (
	own = "own"
	gos = "go"
)

// serve has one of the ways answer a connection. stop ends it and waits.
func serve(t testing.TB, way string, conn net.Conn, h http.Handler, config ...func(*http2.Config)) (stop func()) {
	t.Helper()
	if way == own {
		c := http2.Config{Handler: h, Broken: func(what any) { t.Errorf("broken: %v", what) }}
		for _, set := range config {
			set(&c)
		}
		s := http2.New(c)
		served := make(chan struct{})
		go func() { defer close(served); s.NewConn(context.Background(), conn).Serve() }()
		return func() { s.Close(); conn.Close(); <-served }
	}
	srv := &http.Server{
		Handler: h, IdleTimeout: limits.Idle, MaxHeaderBytes: limits.Header - 10*32, DisableGeneralOptionsHandler: true, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{ // as the gate sets it up
			MaxReadFrameSize: limits.Frame, MaxConcurrentStreams: limits.Streams,
			MaxDecoderHeaderTableSize: limits.HeaderTable, MaxEncoderHeaderTableSize: limits.HeaderTable,
			MaxReceiveBufferPerConnection: limits.Window, MaxReceiveBufferPerStream: limits.Window,
			SendPingTimeout: limits.PingAfter, PingTimeout: limits.PingTimeout, WriteByteTimeout: limits.WriteStall,
		},
	}
	srv.ErrorLog = discard
	srv.Protocols.SetUnencryptedHTTP2(true)
	ln := &once{conn: conn, closed: make(chan struct{})}
	served := make(chan struct{})
	go func() { defer close(served); srv.Serve(ln) }()
	return func() { conn.Close(); srv.Close(); <-served }
}

// once is a listener of one connection.
type once struct {
	conn   net.Conn
	mu     sync.Mutex
	closed chan struct{}
	shut   sync.Once
}

func (l *once) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *once) Close() error   { l.shut.Do(func() { close(l.closed) }); return nil }
func (l *once) Addr() net.Addr { return &net.TCPAddr{} }

// visitor is the other side, frame by frame.
type visitor struct {
	*frames.Framer
	t       testing.TB
	conn    net.Conn
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder

	frames chan frames.Frame // all that came but for SETTINGS; closed at the end
	err    error             // why it ended
}

// visit greets; what comes back is read into v.frames, a copy of each. With silent,
// nothing is read.
func visit(t testing.TB, conn net.Conn, silent bool, settings ...frames.Setting) *visitor {
	v := &visitor{t: t, conn: conn, Framer: frames.NewFramer(conn, conn), frames: make(chan frames.Frame, 1<<15)}
	v.AllowIllegalWrites = true
	v.encoder, v.decoder = hpack.NewEncoder(&v.block), hpack.NewDecoder(4096, nil)
	if !silent {
		go v.readAll()
	}
	if _, err := io.WriteString(conn, frames.ClientPreface); err != nil {
		t.Error(err)
	}
	if err := v.WriteSettings(settings...); err != nil {
		t.Error(err)
	}
	return v
}

func (v *visitor) readAll() {
	defer close(v.frames)
	for {
		f, err := v.ReadFrame()
		if err != nil {
			v.err = err
			return
		}
		switch f := f.(type) {
		case *frames.DataFrame:
			kept := *f
			v.frames <- &dataFrame{kept.FrameHeader, bytes.Clone(f.Data())}
		case *frames.HeadersFrame:
			fields, err := v.decoder.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				v.err = err
				return
			}
			v.frames <- &headFrame{f.FrameHeader, fields}
		case *frames.SettingsFrame:
		default:
			v.frames <- f
		}
	}
}

// What was copied of frames, whose memory is used again.
type dataFrame struct {
	frames.FrameHeader
	data []byte
}

type headFrame struct {
	frames.FrameHeader
	fields []hpack.HeaderField
}

func (f *headFrame) value(name string) string {
	for _, field := range f.fields {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// encode is a header block of fields, "name", "value", ….
func (v *visitor) encode(fields ...string) []byte {
	v.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		v.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return v.block.Bytes()
}

// ask begins a stream; the request is whole when ends. It fails where the other side
// takes no more.
func (v *visitor) ask(id uint32, method, path string, ends bool, more ...string) error {
	fields := append([]string{":method", method, ":scheme", "https", ":authority", "app.example", ":path", path}, more...)
	return v.WriteHeaders(frames.HeadersFrameParam{StreamID: id, BlockFragment: v.encode(fields...), EndHeaders: true, EndStream: ends})
}

// next is the next frame that is wanted; nil at the end.
func (v *visitor) next(wanted func(frames.Frame) bool) frames.Frame {
	for f := range v.frames {
		if wanted(f) {
			return f
		}
	}
	return nil
}

func (v *visitor) head(id uint32) *headFrame {
	v.t.Helper()
	f, ok := v.next(func(f frames.Frame) bool { h, ok := f.(*headFrame); return ok && h.StreamID == id }).(*headFrame)
	if !ok {
		v.t.Fatalf("no answer on stream %d: %v", id, v.err)
	}
	return f
}

// reset is the code of the RST_STREAM of a stream.
func (v *visitor) reset(id uint32) frames.ErrCode {
	v.t.Helper()
	f, ok := v.next(func(f frames.Frame) bool { r, ok := f.(*frames.RSTStreamFrame); return ok && r.StreamID == id }).(*frames.RSTStreamFrame)
	if !ok {
		v.t.Fatalf("stream %d is not reset: %v", id, v.err)
	}
	return f.ErrCode
}

// body is the rest of an answer, to its end.
func (v *visitor) body(id uint32) string {
	var all []byte
	for f := range v.frames {
		switch f := f.(type) {
		case *dataFrame:
			if f.StreamID == id {
				all = append(all, f.data...)
			}
		case *headFrame:
		case *frames.RSTStreamFrame:
			if f.StreamID == id && f.ErrCode != frames.ErrCodeNo {
				v.t.Errorf("stream %d: %v", id, f.ErrCode)
				return ""
			}
		}
		if h := f.Header(); h.StreamID == id && (h.Type == frames.FrameData || h.Type == frames.FrameHeaders) && h.Flags.Has(frames.FlagDataEndStream) {
			return string(all)
		}
	}
	v.t.Errorf("stream %d does not end: %v", id, v.err)
	return ""
}

// bye is the code of the GOAWAY with which the connection ended; ok is false without.
func (v *visitor) bye() (code frames.ErrCode, ok bool) {
	for f := range v.frames {
		if f, is := f.(*frames.GoAwayFrame); is {
			code, ok = f.ErrCode, true
			v.conn.Close() // or the other side would linger for a moment
		}
	}
	return code, ok
}

// refused says that the connection ended with one of some codes.
func (v *visitor) refused(codes ...frames.ErrCode) {
	v.t.Helper()
	got, ok := v.bye()
	for _, code := range codes {
		if ok && got == code {
			return
		}
	}
	v.t.Errorf("the connection ended with %v (%v), %v, want one of %v", got, ok, v.err, codes)
}

// flood writes frames until the other side takes no more, at most n; how many it took.
func (v *visitor) flood(n int, write func(i int) error) int {
	v.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	for i := range n {
		if err := write(i); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				v.t.Errorf("after %d frames: %v", i, err)
			}
			return i
		}
	}
	return n
}

// eachWay runs a test on connections of both.
func eachWay(t *testing.T, h http.Handler, test func(t *testing.T, way string, v *visitor), settings ...frames.Setting) {
	for _, way := range []string{own, gos} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			v := meet(t, way, h, settings...)
			test(t, way, v)
		})
	}
}

// meet is a visitor of a way, over TCP.
func meet(t testing.TB, way string, h http.Handler, settings ...frames.Setting) *visitor {
	t.Helper()
	ours, theirs := programs.Connected(t)
	stop := serve(t, way, theirs, h)
	v := visit(t, ours, false, settings...)
	ours.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { ours.Close(); stop() })
	return v
}

func newEncoder(v *visitor) *hpack.Encoder { return hpack.NewEncoder(&v.block) }
