package http2

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	frames "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/agent/proxy/ascii"
	"porchlight/agent/proxy/limits"
)

// onlyHTTP1 are fields that no request over HTTP/2 may have, and specials are these and the
// others for which expects, announce and notHTTP2 look: a request without one is not searched.
var (
	onlyHTTP1 = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"}
	specials  = append([]string{"Expect", "Trailer", "Te"}, onlyHTTP1...)
)

// head is a header block as it is read. The goroutine that reads uses one for all.
//
// What is refused here, and how, is what net/http's server refuses: see readMetaFrame
// in x/net/http2's frame.go, and newWriterAndRequest in its server.go.
type head struct {
	decoder *hpack.Decoder
	unended []byte // a field that has not ended

	fields   []field // without the pseudo-fields
	pseudo   pseudo
	left     uint32 // bytes of the list that are taken
	cookies  int    // bytes of the values of the field Cookie, and of all else of the list
	rest     int
	others   int    // fields but for Cookie's
	trailers uint32 // bytes of what the fields Trailer make in the list of trailers
	special  bool   // one of specials
	invalid  bool   // a field that nothing may hold: nothing is decoded any more
	strange  bool   // pseudo-fields that nobody knows, or said twice, or of an answer among a request's
	cut      bool   // the list is too long: only limits.Telling are kept
	short    int    // bytes of these
}

type field struct{ name, value string } // the canonical name

// pseudo are the pseudo-fields of a request, and the one of an answer, :status. What may
// not be in a request is refused as the last thing, when the number of its stream was judged.
type pseudo struct {
	method, scheme, authority, path, protocol, status string

	has uint8 // a bit for each of these that was there
}

const hasStatus = 1 << 5

func (h *head) reset() {
	*h = head{decoder: h.decoder, fields: h.fields[:0], left: limits.Header, trailers: limits.Header}
	h.decoder.SetEmitEnabled(true)
}

// forget lets go of what was read, which the connection must not hold until the next
// block, and of a list so long that few are.
func (h *head) forget() {
	clear(h.fields)
	if cap(h.fields) > 4*maxKept {
		h.fields = nil
	}
	h.pseudo = pseudo{}
}

// add takes in one field of the block.
func (h *head) add(f hpack.HeaderField) {
	first := h.others == 0 && h.cookies == 0
	h.count(f)
	if h.left == 0 {
		h.cutOff()
		h.tell(f)
		return
	}
	var name string
	valid, isPseudo := ascii.ValidValue(f.Value), f.IsPseudo()
	if isPseudo {
		valid = valid && first
	} else if valid {
		name, valid = canonicalName(f.Name)
	}
	if !valid {
		h.invalid = true
		h.decoder.SetEmitEnabled(false)
		return
	}
	switch fits := h.fits(f); {
	case !fits || h.others > mostFields:
		h.cutOff()
		h.tell(f)
	case isPseudo:
		h.setPseudo(f)
	default:
		h.special = h.special || slices.Contains(specials, name)
		h.fields = append(h.fields, field{name, f.Value})
	}
}

// mostFields are kept of a list, but for a cookie's crumbs: two more than may be, for the
// handler may not be told of Expect, and of a Trailer.
const mostFields = limits.Fields + 2

// count has the sizes that tell why a list is too long, as over HTTP/1.1.
func (h *head) count(f hpack.HeaderField) {
	if f.Name == "cookie" {
		h.cookies += len(f.Value) + len("; ")
		return
	}
	h.rest += len(f.Name) + len(f.Value) + len(": \r\n")
	if !f.IsPseudo() {
		h.others++
	}
}

// cutOff lets go of a list that is too long.
func (h *head) cutOff() {
	if h.cut {
		return
	}
	h.cut, h.special = true, false
	kept := h.fields
	h.fields = h.fields[:0]
	for _, k := range kept {
		h.keep(k)
	}
	clear(kept[len(h.fields):])
}

// tell keeps what tells what kind of answer is wanted, of a list that is too long. What is
// beyond all bounds is not even counted.
func (h *head) tell(f hpack.HeaderField) {
	if h.cookies+h.rest > limits.Refused {
		h.decoder.SetEmitEnabled(false)
	}
	switch short := len(f.Value) <= limits.Short; {
	case f.IsPseudo() && !short:
		f.Value = "/" // which a path may be
		fallthrough
	case f.IsPseudo():
		h.setPseudo(f)
	case short && ascii.ValidValue(f.Value):
		h.keep(field{canonicalNames[f.Name], f.Value}) // which has limits.Telling
	}
}

func (h *head) keep(f field) {
	if size := len(f.name) + len(f.value); h.short+size <= limits.Short && slices.Contains(limits.Telling[:], f.name) {
		h.short += size
		h.fields = append(h.fields, f)
	}
}

// fits counts a field. Trailer counts as what it announces. Where there is no room for it,
// none is left for another.
func (h *head) fits(f hpack.HeaderField) bool {
	room, size := &h.left, f.Size()
	if f.Name == "trailer" {
		n := strings.Count(f.Value, ",") + 1
		room, size = &h.trailers, uint32(len(f.Value)-n+1)+uint32(n)*hpack.HeaderField{}.Size()
	}
	if size > *room {
		h.left = 0
		return false
	}
	*room -= size
	return true
}

func (h *head) setPseudo(f hpack.HeaderField) {
	var to *string
	var bit uint8
	switch f.Name {
	case ":method":
		to, bit = &h.pseudo.method, 1
	case ":scheme":
		to, bit = &h.pseudo.scheme, 2
	case ":authority":
		to, bit = &h.pseudo.authority, 4
	case ":path":
		to, bit = &h.pseudo.path, 8
	case ":protocol":
		to, bit = &h.pseudo.protocol, 16
	case ":status":
		to, bit = &h.pseudo.status, hasStatus
	default:
		h.strange = true
		return
	}
	if h.pseudo.has&bit != 0 {
		h.strange = true
		return
	}
	h.pseudo.has |= bit
	h.strange = h.strange || h.pseudo.has > hasStatus
	*to = f.Value
}

// block reads a header block, of which f is the first frame.
func (c *Conn) block(f *frames.HeadersFrame) error {
	h, id := &c.head, f.StreamID
	defer h.letGo()
	h.reset()
	part, ended := f.HeaderBlockFragment(), f.HeadersEnded()
	taken, memory := 0, c.memory
	if !ended {
		c.readWithin(limits.HeaderTimeout)
		defer c.readWithin(0)
		if memory != nil {
			defer func() { memory.Give(taken) }()
		}
	}
	for n, size := 0, 0; ; n++ {
		// A block beyond all bounds, or what follows once it was found invalid, is not
		// worth decoding.
		if size += len(part); h.invalid || size > limits.Refused {
			return connError(frames.ErrCodeProtocol)
		}
		if n > limits.Continuations {
			return connError(frames.ErrCodeEnhanceYourCalm)
		}
		if !ended && memory != nil {
			// A field that does not end is in a buffer that doubles and leaves the former
			// ones behind.
			if !memory.Take(5 * len(part)) {
				return connError(frames.ErrCodeEnhanceYourCalm)
			}
			taken += 5 * len(part)
		}
		if !h.decode(part, ended) {
			return connError(frames.ErrCodeCompression)
		}
		if ended {
			break
		}
		next, err := c.read.ReadFrame()
		if err != nil {
			return err
		}
		more := next.(*frames.ContinuationFrame) // the Framer takes no other
		part, ended = more.HeaderBlockFragment(), more.HeadersEnded()
	}
	if err := h.decoder.Close(); err != nil {
		return connError(frames.ErrCodeCompression)
	}
	if h.invalid || h.strange {
		return streamError(id, frames.ErrCodeProtocol)
	}
	return nil
}

// blank is a request of which WithContext makes another at once. That one is copied, so that
// it takes no memory of its own.
var blank http.Request

// newStream makes a stream of the header block that was read.
func (c *Conn) newStream(id uint32, ended bool) (*stream, error) {
	p := &c.head.pseudo
	if p.protocol != "" { // which nobody here was told of
		return nil, streamError(id, frames.ErrCodeProtocol)
	}
	if p.method == http.MethodConnect {
		if p.path != "" || p.scheme != "" || p.authority == "" {
			return nil, streamError(id, frames.ErrCodeProtocol)
		}
	} else if p.method == "" || p.path == "" || p.scheme != "https" && p.scheme != "http" {
		return nil, streamError(id, frames.ErrCodeProtocol)
	}
	st := &stream{c: c, id: id, length: -1, remote: ended}
	st.ctx.Context = c.ctx
	st.maps = maps.Get().(*headers)
	st.room.request = *blank.WithContext(&st.ctx)
	r := &st.room.request
	st.request = r
	st.header(c.head.fields)
	r.Method, r.Host, r.RemoteAddr = p.method, p.authority, c.remote
	r.Proto, r.ProtoMajor = "HTTP/2.0", 2
	if r.Host == "" {
		r.Host = r.Header.Get("Host")
	}
	r.TLS = c.tls // whatever scheme is named, as net/http has it
	if !st.target(p) {
		return nil, streamError(id, frames.ErrCodeProtocol)
	}
	special := c.head.special
	st.newBody(ended, special && st.expects())
	if special {
		st.announce()
	}
	st.response.st, st.response.header = st, st.maps.out
	st.handler = c.server.config.Handler
	switch mark := c.server.config.TooLong; {
	case c.head.cut && mark == nil:
		st.handler = http.HandlerFunc(tooLong)
	case c.head.cut:
		mark(r.Header, c.head.cookies, c.head.rest, c.head.others+1)
	case special:
		if why := st.notHTTP2(); why != "" {
			st.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, why, http.StatusBadRequest) })
		}
	}
	return st, nil
}

// header makes the header of the fields. All values are in one piece of memory, and the
// crumbs of a cookie are one of them again (RFC 9113, section 8.2.3).
func (st *stream) header(fields []field) {
	crumbs, size := 0, 0
	for _, f := range fields {
		if f.name == "Cookie" {
			crumbs, size = crumbs+1, size+len("; ")+len(f.value)
		}
	}
	h, values := st.maps.in, slices.Grow(st.maps.values[:0], len(fields)+1-max(1, crumbs))
	for i, f := range fields {
		had, has := h[f.name]
		switch {
		case crumbs > 1 && f.name == "Cookie":
			if has {
				continue
			}
			f.value = joined(fields[i:], size)
			fallthrough
		case !has:
			values = append(values, f.value)
			h[f.name] = values[len(values)-1 : len(values) : len(values)]
		default:
			h[f.name] = append(had, f.value)
		}
	}
	st.maps.values = values
	st.request.Header = h
}

// joined are the crumbs among fields in one piece.
func joined(fields []field, size int) string {
	var all strings.Builder
	all.Grow(size)
	for _, f := range fields {
		if f.name == "Cookie" {
			if all.Len() > 0 {
				all.WriteString("; ")
			}
			all.WriteString(f.value)
		}
	}
	return all.String()
}

// target makes the request's URL of :path. It is false for what is none.
func (st *stream) target(p *pseudo) bool {
	r := st.request
	if strings.Contains(r.Host, "@") && (p.scheme == "http" || p.scheme == "https") {
		return false
	}
	if p.method == http.MethodConnect {
		r.URL, r.RequestURI = &url.URL{Host: r.Host}, r.Host // as over HTTP/1
		return true
	}
	r.RequestURI = p.path
	if plain, ok := ascii.Target(p.path); ok {
		st.room.url = plain
		r.URL = &st.room.url
		return true
	}
	u, err := url.ParseRequestURI(p.path)
	r.URL = u
	return err == nil
}

// expects says whether the visitor waits for a word before the body, and drops the field.
func (st *stream) expects() bool {
	h := st.request.Header
	expects := httpguts.HeaderValuesContainsToken(h["Expect"], "100-continue")
	if expects {
		delete(h, "Expect")
	}
	return expects
}

// newBody gives the request a body, unless its head was all of it.
func (st *stream) newBody(ended, expects bool) {
	r := st.request
	if ended {
		r.Body = http.NoBody
		return
	}
	r.ContentLength = -1
	if said := r.Header["Content-Length"]; len(said) > 0 {
		length, err := strconv.ParseUint(said[0], 10, 63)
		if err != nil {
			length = 0
		}
		r.ContentLength = int64(length)
	}
	st.length = r.ContentLength
	st.body = &body{st: st, in: inflow{open: limits.Window}, expects: expects, wake: make(chan struct{}, 1)}
	r.Body = st.body
}

// announce fills in the names of the trailers that are said to come.
func (st *stream) announce() {
	r := st.request
	for _, line := range r.Header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			switch name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); name {
			case "Transfer-Encoding", "Trailer", "Content-Length":
			default:
				if r.Trailer == nil {
					r.Trailer = http.Header{}
				}
				r.Trailer[name] = nil
			}
		}
	}
	delete(r.Header, "Trailer")
	st.trails = r.Trailer != nil
}

// notHTTP2 says what of a request belongs to HTTP/1.1 only; empty for nothing.
func (st *stream) notHTTP2() string {
	h := st.request.Header
	for _, name := range onlyHTTP1 {
		if _, has := h[name]; has {
			return "request header " + strconv.Quote(name) + " is not valid in HTTP/2"
		}
	}
	if te := h["Te"]; len(te) > 1 || len(te) == 1 && te[0] != "trailers" && te[0] != "" {
		return `request header "TE" may only be "trailers" in HTTP/2`
	}
	return ""
}

// tooLong answers a header list beyond what is read at all.
func tooLong(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
	_, _ = w.Write([]byte("<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"))
}
