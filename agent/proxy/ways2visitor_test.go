package proxy_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An input for HTTP/2 is a list of steps; each begins with one byte that says what it is.
// What a step lacks at the end of the input is zero or empty.
const (
	stepHeaders  = iota // flags, fields: a new stream
	stepData            // stream, flags, bytes
	stepTrailers        // stream, flags, fields
	stepReset           // stream, code
	stepWindow          // stream, 4 bytes
	stepSettings        // how many, then an id of one byte and 4 bytes each
	stepPing            // 8 bytes
	stepPriority        // stream, the one it depends on, weight
	stepRaw             // type, flags, 4 bytes of stream id, bytes
	stepGoAway          // code
	steps
)

// Flags of steps.
const (
	flagEnd    = 1 << iota // END_STREAM
	flagPlain              // the pseudo-fields and cookie of a GET go before the fields
	flagPieces             // in a HEADERS and a CONTINUATION
	flagPadded
	flagPriority
	flagAtOnce // the next step does not wait for what this one comes to
	flagLong   // of bytes: a hundred times
)

// connectionItself is the byte for stream 0 where a step names a stream.
const connectionItself = 0xff

// visitor2 is a visitor's side of HTTP/2 that says whatever the input says.
type visitor2 struct {
	way   *way
	in    []byte
	fill  *strings.Replacer
	fr    *http2.Framer
	watch *pipeWatch

	encoded         bytes.Buffer
	encoder         *hpack.Encoder
	opened          []uint32
	next            uint32
	rushed          bool     // steps were taken since that nobody waited for
	resets          int      // of streams, by either side, before them
	sure            []string // what the app received before them, and before hasty
	hasty           bool     // a stream was reset among them: whether the app heard of it is a matter of time
	malformed, late bool     // for came

	// Guarded by watch.mu:
	streams map[uint32]*stream2
	asked   map[uint32]bool // streams that the visitor sent to their end
	given   map[uint32]bool // streams that the visitor reset
	goAway  string
	pongs   int
}

// stream2 is what came on a stream.
type stream2 struct {
	heads []string
	data  []byte
	end   string
	final bool // its head came
}

func (w *way) exchange2(addr *net.TCPAddr, input string, fill *strings.Replacer) (o came) {
	c, watch := w.dial(addr, "h2")
	defer w.forget(addr)
	defer c.Close()
	v := &visitor2{way: w, in: []byte(input), fill: fill, watch: watch, fr: http2.NewFramer(c, c), next: 1, asked: map[uint32]bool{}, given: map[uint32]bool{}, streams: map[uint32]*stream2{}}
	v.fr.AllowIllegalWrites, v.fr.AllowIllegalReads = true, true
	v.encoder = hpack.NewEncoder(&v.encoded)
	watch.note(func() { watch.owed, watch.due = v.owed, v.due })
	stuck := time.AfterFunc(patient, func() { panic(fmt.Sprintf("stuck: %q %+v", input, watch)) })
	defer stuck.Stop()
	read := make(chan struct{})
	go func() {
		defer close(read)
		v.read()
		c.NetConn().Close() // nobody waits for a goodbye
	}()
	_, _ = io.WriteString(c, http2.ClientPreface) // what follows a connection that ended fails
	_ = v.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	_ = v.fr.WriteWindowUpdate(0, 1<<24)
	for len(v.in) > 0 {
		kind := v.byte() % steps
		if v.step(kind); kind > stepTrailers {
			v.ping()
		}
		if watch.over() {
			break
		}
	}
	o.end = v.probe()
	_ = c.CloseWrite()
	<-read
	watch.finished()
	v.settled()
	o.app, o.sure, o.hasty = w.samePort(w.app.take()), w.samePort(v.sure), v.hasty
	slices.Sort(o.app) // streams reach an app in any order
	slices.Sort(o.sure)
	o.visitor, o.malformed, o.late = w.samePort(v.told()), v.malformed, v.late
	return o
}

// owed says whether an answer, or the end of one, is still to come. The watch is locked.
func (v *visitor2) owed() bool {
	for id := range v.asked {
		if s := v.streams[id]; !v.given[id] && (s == nil || s.end == "") {
			return v.goAway == ""
		}
	}
	for id, s := range v.streams {
		if !v.given[id] && s.final && s.end == "" {
			return v.goAway == ""
		}
	}
	return false
}

// due says whether fewer streams have ended than answers were made. The watch is locked.
func (v *visitor2) due() bool {
	ended := len(v.given)
	for id, s := range v.streams {
		if s.end != "" && !v.given[id] {
			ended++
		}
	}
	return ended < v.watch.made && v.goAway == ""
}

// probe says whether the connection still takes a request.
func (v *visitor2) probe() string {
	if v.watch.settled() {
		return "closed"
	}
	v.in = nil
	v.next += 1000 // one that no step has named
	// A raw header block may have changed the server's table behind the encoder's back.
	v.encoder = hpack.NewEncoder(&v.encoded)
	id := v.next
	v.headers(flagEnd|flagPlain, ":probe", "")
	v.watch.settled()
	v.ping()
	v.watch.mu.Lock()
	defer v.watch.mu.Unlock()
	if s := v.streams[id]; s != nil && len(s.heads) > 0 {
		return "kept"
	}
	return "closed"
}

// ping returns once all that was sent before has been looked at.
func (v *visitor2) ping() {
	v.watch.mu.Lock()
	want := v.pongs + 1
	v.watch.mu.Unlock()
	_ = v.fr.WritePing(false, [8]byte{'p', 'r', 'o', 'b', 'e'})
	v.watch.mu.Lock()
	defer v.watch.mu.Unlock()
	for !v.watch.ended && v.pongs < want {
		v.watch.changed.Wait()
	}
}

func (v *visitor2) byte() (b byte) {
	if len(v.in) > 0 {
		b, v.in = v.in[0], v.in[1:]
	}
	return b
}

func (v *visitor2) uint32() uint32 {
	var b [4]byte
	for i := range b {
		b[i] = v.byte()
	}
	return binary.BigEndian.Uint32(b[:])
}

// text is a length of two bytes and what it counts.
func (v *visitor2) text() string {
	n := min(int(v.byte())<<8|int(v.byte()), len(v.in))
	s := string(v.in[:n])
	v.in = v.in[n:]
	return v.fill.Replace(s)
}

// stream is one that was opened, the next one, or the connection.
func (v *visitor2) stream() uint32 {
	switch b := v.byte(); {
	case b == connectionItself:
		return 0
	case int(b) < len(v.opened):
		return v.opened[b]
	default:
		return v.next
	}
}

func (v *visitor2) step(kind byte) {
	switch kind {
	case stepHeaders:
		flags := v.byte()
		v.headers(flags, "", v.text())
	case stepData:
		id, flags := v.stream(), v.byte()
		text := v.text()
		if flags&flagLong != 0 {
			text = strings.Repeat(text, 100)
		}
		var pad []byte
		if flags&flagPadded != 0 {
			pad = make([]byte, 7)
		}
		for len(text) > 16<<10 {
			_ = v.fr.WriteData(id, false, []byte(text[:16<<10]))
			text = text[16<<10:]
		}
		if flags&flagEnd != 0 && slices.Contains(v.opened, id) {
			v.watch.note(func() { v.asked[id] = true })
		}
		_ = v.fr.WriteDataPadded(id, flags&flagEnd != 0, []byte(text), pad)
		v.wait(flags)
	case stepTrailers:
		id, flags := v.stream(), v.byte()
		v.mayBeLate(id)
		v.block(id, flags, v.fields("", v.text()))
	case stepReset:
		id := v.stream()
		v.watch.note(func() { v.given[id] = true })
		_ = v.fr.WriteRSTStream(id, http2.ErrCode(v.byte()))
	case stepWindow:
		_ = v.fr.WriteWindowUpdate(v.stream(), v.uint32())
	case stepSettings:
		v.settings()
	case stepPing:
		_ = v.fr.WritePing(false, [8]byte{v.byte(), v.byte()})
	case stepPriority:
		_ = v.fr.WritePriority(v.stream(), http2.PriorityParam{StreamDep: v.stream(), Weight: v.byte()})
	case stepRaw:
		kind, flags, id := http2.FrameType(v.byte()), http2.Flags(v.byte()), v.uint32()
		payload := []byte(v.text())
		const idBits = 1<<31 - 1
		if kind == http2.FramePriorityUpdate && (id&idBits != 0 || len(payload) < 4 || binary.BigEndian.Uint32(payload)&idBits == 0) {
			v.malformed = true
		}
		if kind == http2.FrameHeaders {
			v.mayBeLate(id & idBits)
		}
		_ = v.fr.WriteRawFrame(kind, flags, id, payload)
	case stepGoAway:
		_ = v.fr.WriteGoAway(0, http2.ErrCode(v.byte()), nil)
	}
}

// mayBeLate is called before a header block for a stream, which may have been reset, or is
// about to be, because its answer was whole before the request. One
// that was not opened is now: it is not opened again, as nothing may come of that.
func (v *visitor2) mayBeLate(id uint32) {
	if id == v.next {
		v.next += 2
		v.opened = append(v.opened, id)
	}
	v.watch.note(func() {
		s := v.streams[id]
		v.late = v.late || v.rushed || s != nil && s.end != ""
	})
}

// settings never makes a window too small for an answer, which would wait for minutes.
func (v *visitor2) settings() {
	var all []http2.Setting
	for range v.byte() % 8 {
		s := http2.Setting{ID: http2.SettingID(v.byte()), Val: v.uint32()}
		if s.ID == http2.SettingInitialWindowSize && s.Val < 1<<20 {
			s.Val = 1 << 20
		}
		all = append(all, s)
	}
	_ = v.fr.WriteSettings(all...)
}

func (v *visitor2) headers(flags byte, path, text string) {
	id := v.next
	v.next += 2
	v.opened = append(v.opened, id)
	v.watch.note(func() { delete(v.streams, id) }) // what was refused before it was one
	if flags&flagPlain != 0 {
		path = "/" + strings.TrimPrefix(path, ":")
	}
	v.block(id, flags, v.fields(path, text))
}

// fields encodes lines of "name: value"; a path stands for what begins a GET.
func (v *visitor2) fields(path, text string) []byte {
	v.encoded.Reset()
	write := func(name, value string) { _ = v.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	if path != "" {
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "HOST"}, {":path", path}, {"cookie", "COOKIE"}} {
			write(f[0], v.fill.Replace(f[1]))
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		at := strings.Index(strings.TrimPrefix(line, ":"), ":")
		if at < 0 {
			continue
		}
		at += len(line) - len(strings.TrimPrefix(line, ":"))
		write(line[:at], strings.TrimPrefix(line[at+1:], " "))
	}
	return bytes.Clone(v.encoded.Bytes())
}

// block sends a header block.
func (v *visitor2) block(id uint32, flags byte, block []byte) {
	p := http2.HeadersFrameParam{StreamID: id, EndStream: flags&flagEnd != 0, EndHeaders: true, BlockFragment: block}
	if flags&flagPadded != 0 {
		p.PadLength = 9
	}
	if flags&flagPriority != 0 {
		p.Priority = http2.PriorityParam{StreamDep: 0, Weight: 100}
	}
	first := min(len(block), 16<<10-10)
	if flags&flagPieces != 0 {
		first = len(block) / 2
	}
	p.BlockFragment, p.EndHeaders = block[:first], first == len(block)
	if p.EndStream && slices.Contains(v.opened, id) {
		v.watch.note(func() { v.asked[id] = true })
	}
	_ = v.fr.WriteHeaders(p)
	for block = block[first:]; len(block) > 0; {
		n := min(len(block), 16<<10)
		_ = v.fr.WriteContinuation(id, n == len(block), block[:n])
		block = block[n:]
	}
	v.wait(flags)
}

func (v *visitor2) wait(flags byte) {
	if flags&flagAtOnce != 0 {
		v.rushed = true
		return
	}
	ended := v.watch.settled()
	if !ended && flags&flagEnd == 0 {
		v.ping() // the handler has begun: it waits for the rest
		ended = v.watch.settled()
	}
	if !ended {
		v.settled()
	}
}

// settled is called when all that was sent has come to what it comes to.
func (v *visitor2) settled() {
	v.watch.note(func() {
		resets := len(v.given)
		for _, s := range v.streams {
			resets += strings.Count(s.end, "reset")
		}
		v.hasty = v.hasty || v.rushed && (v.failed() || resets != v.resets)
		v.rushed, v.resets = false, resets
	})
	if !v.hasty {
		v.sure = v.way.app.seen()
	}
}

// read takes frames until the connection ends.
func (v *visitor2) read() {
	defer v.watch.note(func() { v.watch.ended = true })
	decoder := hpack.NewDecoder(1<<20, nil)
	var block []byte
	for {
		f, err := v.fr.ReadFrame()
		if err != nil {
			return
		}
		if end, ok := f.(*http2.GoAwayFrame); ok && end.ErrCode != http2.ErrCodeNo {
			// Nothing more counts, and the end may take its second.
			v.watch.note(func() { v.goAway = end.ErrCode.String() })
			return
		}
		v.watch.note(func() {
			id := f.Header().StreamID
			s := v.streams[id]
			if s == nil {
				s = &stream2{}
				v.streams[id] = s
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				block = append(block[:0], f.HeaderBlockFragment()...)
				if f.HeadersEnded() {
					s.head(decoder, block)
				}
				if f.StreamEnded() {
					s.end += "end"
				}
			case *http2.ContinuationFrame:
				block = append(block, f.HeaderBlockFragment()...)
				if f.HeadersEnded() {
					s.head(decoder, block)
				}
			case *http2.DataFrame:
				s.data = append(s.data, f.Data()...)
				if f.StreamEnded() {
					s.end += "end"
				}
			case *http2.RSTStreamFrame:
				s.end += fmt.Sprintf(" reset %v", f.ErrCode)
			case *http2.GoAwayFrame:
				v.goAway = f.ErrCode.String()
			case *http2.PingFrame:
				if f.IsAck() && f.Data[4] == 'e' {
					v.pongs++
				}
			}
		})
	}
}

func (s *stream2) head(d *hpack.Decoder, block []byte) {
	fields, err := d.DecodeFull(block)
	var lines []string
	s.final = s.final || len(fields) > 0 && fields[0].Name == ":status" && fields[0].Value[0] != '1'
	for _, f := range fields {
		if f.Name != "date" {
			lines = append(lines, f.Name+": "+f.Value)
		}
	}
	slices.Sort(lines)
	if err != nil {
		lines = append(lines, err.Error())
	}
	s.heads = append(s.heads, unlike(strings.Join(lines, "|")))
}

// failed says that the connection ended by an error. The watch is locked, or read has ended.
func (v *visitor2) failed() bool { return v.goAway != "" && v.goAway != http2.ErrCodeNo.String() }

// told is what came on each stream that the visitor did not give up.
func (v *visitor2) told() (all []string) {
	if v.failed() {
		return []string{"goaway " + v.goAway} // what was on its way then may be lost
	}
	for _, id := range slices.Sorted(maps.Keys(v.streams)) {
		s := v.streams[id]
		if id == 0 || v.given[id] {
			continue
		}
		s.end = strings.TrimSpace(s.end)
		if over, _, whole := strings.Cut(s.end, "end"); whole && over == "" {
			s.end = "end" // whether more of the request was refused after that is a matter of time
		}
		if first, _, again := strings.Cut(s.end, " reset STREAM_CLOSED"); again && first != "" {
			s.end = first // and so is whether what came behind a reset was answered by another
		}
		data := unlike(string(s.data))
		if len(data) > 400 {
			data = fmt.Sprintf("%d bytes, %x", len(data), sha256.Sum256([]byte(data)))
		}
		all = append(all, fmt.Sprintf("%d: %s||%s||%s", id, strings.Join(s.heads, "||"), data, s.end))
	}
	if v.goAway != "" {
		all = append(all, "goaway "+v.goAway)
	}
	return all
}
