package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"

	"porchlight/agent/proxy/ascii"
)

// Nearly all answers are plain: HTTP/1.1, a status, fields of one line, and a length or
// chunks. These are read here, from the bytes that have come, into the header they
// leave with. What is anything else, in a single byte, is left to net/http, which reads
// the same bytes: so there is one opinion on what is odd. A fuzzer holds that both read
// what is plain alike.

// header is an empty one to read into, of the connection's own.
func (c *appConn) header() http.Header {
	c.forget()
	if c.fields == nil {
		c.fields = http.Header{}
	}
	return c.fields
}

// plainStatus begins an answer that is read here, before the three digits.
const plainStatus = "HTTP/1.1 "

// readPlain reads the head of a final answer that is plain and here as a whole, into h,
// and makes c.res of it. For any other, nothing was read, and h holds rubbish.
func (c *appConn) readPlain(h http.Header, r *http.Request) bool {
	here, err := c.r.Peek(c.r.Buffered())
	if err != nil {
		return false
	}
	end := bytes.Index(here, []byte("\r\n\r\n"))
	if end < 0 {
		return false
	}
	head := string(here[:end+2]) // its lines, each with its end
	status, rest, ok := cutStatus(head)
	if !ok {
		return false
	}
	f, ok := readFields(h, rest)
	if !ok || f.chunked && (f.length >= 0 || r.Method == http.MethodHead) {
		return false
	}
	body, ok := c.plainBody(status, &f, r)
	if !ok {
		return false
	}
	c.r.Discard(end + 4) // of what was peeked at
	if f.hop {
		removeHopByHop(h)
	}
	c.res = http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: h, ContentLength: f.length, Body: body, Close: f.close, Request: r,
	}
	return true
}

// plainBody is the body of a plain answer, and settles its length as net/http has it.
// It is not ok where the answer goes on until the connection ends.
func (c *appConn) plainBody(status int, f *framing, r *http.Request) (body io.ReadCloser, ok bool) {
	switch {
	case r.Method == http.MethodHead:
		return http.NoBody, true
	case status == http.StatusNoContent, status == http.StatusNotModified:
		f.length = 0
		return http.NoBody, !f.chunked
	case f.chunked:
		return &chunkedBody{Reader: httputil.NewChunkedReader(c.r), r: c.r, res: &c.res}, true
	case f.length > 0:
		c.body = lengthBody{r: c.r, left: f.length}
		return &c.body, true
	}
	return http.NoBody, f.length == 0
}

// cutStatus takes the status line of a plain final answer off its head.
func cutStatus(head string) (status int, rest string, ok bool) {
	const digits = 3
	after, ok := strings.CutPrefix(head, plainStatus)
	if !ok || len(after) < digits+2 || after[digits] != ' ' && after[digits] != '\r' {
		return 0, "", false
	}
	for i := range digits {
		if after[i] < '0' || after[i] > '9' {
			return 0, "", false
		}
		status = status*10 + int(after[i]-'0')
	}
	line := strings.IndexByte(after, '\n')
	if line < 1 || status < 200 || strings.IndexByte(after, '\r') != line-1 {
		return 0, "", false
	}
	return status, after[line+1:], true
}

// framing is what the fields of a plain answer say of its body and its connection.
type framing struct {
	length  int64 // -1: none is said
	chunked bool
	close   bool
	hop     bool // there are fields of the connection alone
}

// readFields reads lines of fields into a header.
func readFields(h http.Header, lines string) (f framing, ok bool) {
	f.length = -1
	values := make([]string, 0, strings.Count(lines, "\n"))
	for lines != "" {
		end := strings.IndexByte(lines, '\r')
		colon := strings.IndexByte(lines, ':')
		if end < 0 || lines[end+1] != '\n' || colon < 1 || colon > end {
			return f, false
		}
		name, valid := ascii.Canonical(lines[:colon])
		value := ascii.Trim(lines[colon+1 : end])
		lines = lines[end+2:]
		if !valid || !ascii.ValidValue(value) {
			return f, false
		}
		keep, ok := f.note(name, value)
		switch {
		case !ok:
			return f, false
		case !keep:
			continue
		}
		if had, twice := h[name]; twice {
			h[name] = append(had, value) // had has no room, so it is copied
			continue
		}
		values = append(values, value)
		n := len(values)
		h[name] = values[n-1 : n : n]
	}
	return f, true
}

// note notes what a field says of the body and the connection. It is not ok for what
// net/http does something of its own about; what is not kept is not for the visitor.
func (f *framing) note(name, value string) (keep, ok bool) {
	switch name {
	case "Content-Length":
		length, valid := ascii.Length(value)
		if f.length >= 0 || !valid {
			return false, false
		}
		f.length = length
	case "Transfer-Encoding":
		again := f.chunked
		f.chunked = true
		return false, !again && strings.EqualFold(value, "chunked")
	case "Connection":
		f.hop = true
		f.close = f.close || strings.EqualFold(value, "close")
		return true, strings.EqualFold(value, "close") || strings.EqualFold(value, "keep-alive")
	case "Trailer", "Pragma":
		return false, false
	default:
		f.hop = f.hop || isHopByHop(name)
	}
	return true, true
}
