package gate

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"time"

	"porchlight/agent/proxy/limits"
)

// A visitor's head may hold limits.Fields fields and limits.Header bytes. Apps have bounds
// of their own, and some leave out what is beyond without a word.
//
// Who sends more gets a page that says so, and a browser that other pages filled
// with cookies is told to delete them, because it could open nothing otherwise.
// A head is counted as it comes in, and of one beyond limits.Header the server gets a
// short one in its place (shorten, mark), over HTTP/2 by our own way. net/http's answers
// such a one itself there.

// TooLarge says whether a request's head is, and whether its cookies are why. Over HTTP/2 a
// list of a few fields too many comes here whole.
func TooLarge(r *http.Request) (tooLarge, byCookie bool) {
	if tooLarge, byCookie = shortened(r.Header); tooLarge {
		return true, byCookie
	}
	return r.ProtoMajor > 1 && CountFields(r) > limits.Fields, false
}

// TooManyTrailers says whether a request whose body has been read has too many fields.
// Its header may have changed since they were counted (CountFields), or be another's.
func TooManyTrailers(fields int, trailer http.Header) bool {
	for _, values := range trailer {
		fields += len(values)
	}
	return fields > limits.Fields
}

// CountFields counts a request's header fields and those trailers that have
// come, Host and what net/http takes out of the header included.
func CountFields(r *http.Request) (n int) {
	n = 1 + len(r.TransferEncoding)
	for _, values := range r.Header {
		n += len(values)
	}
	if len(r.Trailer) > 0 {
		n++
	}
	for _, values := range r.Trailer {
		n += len(values)
	}
	return n
}

// toBlame says whether cookies are why a head is too large: the rest of it would be
// taken, and they alone have more than half of the bytes that are. Without the
// second, a link with a long enough address would have a browser lose the few
// cookies it has.
func toBlame(cookies, rest, fields int) bool {
	return rest <= limits.Header && fields <= limits.Fields && cookies > limits.Header/2
}

// headSize counts the head of a request as it comes in.
type headSize struct {
	bytes, fields int
	line          int    // bytes of the line being read
	cookies       int    // bytes of the Cookie lines
	tooLarge      bool   // beyond a bound: what follows is only counted
	cut           bool   // the line being read was cut off
	short         []byte // lines of it that say what kind of answer is wanted
}

// count counts n bytes of a line, its first ones when begins is true, and returns
// how many of them are within the bounds.
func (s *headSize) count(n int, begins bool) int {
	if !s.tooLarge && n > 0 {
		room := max(0, limits.Header-s.bytes)
		if begins && s.fields == limits.Fields {
			room = 0
		}
		s.tooLarge = n > room
		n = min(n, room)
	}
	s.bytes += n
	s.line += n
	return n
}

func (s *headSize) endLine() {
	s.bytes += len("\r\n")
	s.line, s.cut = 0, false
}

// field counts a whole line. line is the beginning of it, with more to follow.
func (s *headSize) field(name, line []byte, more bool) {
	s.fields++
	if bytes.EqualFold(name, []byte("cookie")) {
		s.cookies += s.line
	}
	if !s.tooLarge || s.cut || more || len(s.short)+len(line) > limits.Short {
		return
	}
	if bytes.EqualFold(name, []byte("Host")) || slices.ContainsFunc(limits.Telling[:], func(w string) bool { return bytes.EqualFold(name, []byte(w)) }) {
		s.short = append(append(s.short, line...), "\r\n"...)
	}
}

// shorten ends a head that is too large, of which rest has come already. It reads
// and drops the remainder and returns what net/http gets in its place: the fields
// that say what kind of answer is wanted, and one that says that it was too large.
// What follows the head is not read: the connection ends with the answer.
func (c *strictConn) shorten(rest []byte) ([]byte, error) {
	m, s := &c.messages, &c.messages.head
	switch s.cut = s.line > 0; {
	case m.first:
		s.short = append(s.short, " HTTP/1.1\r\n"...)
	case s.cut:
		s.short = append(s.short, ":\r\n"...) // a line cut in its name needs one, and no length or coding is valid with it
	}
	buf := make([]byte, 4<<10)
	for m.state == inHeadLines && s.bytes <= limits.Refused {
		if len(rest) == 0 {
			n, err := c.read(buf)
			if n == 0 {
				return nil, err
			}
			rest = buf[:n]
		}
		n, ok := m.text(rest)
		if !ok {
			return []byte(badHead), nil
		}
		rest = rest[n:]
	}
	return append(s.short, headerTooLong+": "+because(s.cookies, s.bytes-s.cookies, s.fields)+"\r\n\r\n"...), nil
}

// mark says in a header of which only some fields are there that it was too large.
func mark(h http.Header, cookies, rest, fields int) {
	h[headerTooLong] = []string{because(cookies, rest, fields)}
}

func because(cookies, rest, fields int) string {
	if toBlame(cookies, rest, fields) {
		return becauseCookies
	}
	return becauseOther
}

// headerTooLong ends a head that was shortened. Its two values are made by this
// process, so that no visitor can send one.
const headerTooLong = "X-Service-Too-Long"

var becauseCookies, becauseOther = rand.Text(), rand.Text()

func shortened(h http.Header) (tooLarge, byCookie bool) {
	values := h[headerTooLong]
	if len(values) == 0 {
		return false, false
	}
	last := []byte(values[len(values)-1]) // shorten's comes after whatever the visitor sent
	byCookie = subtle.ConstantTimeCompare(last, []byte(becauseCookies)) == 1
	return byCookie || subtle.ConstantTimeCompare(last, []byte(becauseOther)) == 1, byCookie
}

// DropHead lets go of a request's head before an answer of ours, which need not know it
// and may wait for a visitor who does not take it.
func DropHead(w http.ResponseWriter, r *http.Request) {
	if own, ok := w.(interface{ DropHead() }); ok {
		own.DropHead()
		return
	}
	r.Header, r.URL, r.RequestURI = http.Header{}, &url.URL{Path: "/"}, "/"
	if r.ProtoMajor > 1 {
		// A writer that knows no deadlines is one of a test, not of a connection.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limits.StallOurs))
	}
}
