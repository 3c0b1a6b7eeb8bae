package http1

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"porchlight/agent/proxy/ascii"
)

// A plain head is one that every parser reads in the same way: a method in capitals, a
// path, HTTP/1.1, lines that end in CR LF, printable ASCII, one Host, at most one
// Content-Length in digits, and nothing that changes how the connection is used. What
// is not plain need not be wrong: net/http reads it, behind the gate's judgement of
// bytes, and refuses what is. So nothing is ever refused here, and everything that is
// plain is taken by those two as well and means the same to them.

const maxPlainFields = 100

var headEnd = []byte("\r\n\r\n")

// head is a parsed head. It is used again for the next one.
type head struct {
	method string
	target string
	host   string
	url    url.URL
	header http.Header
	length int64 // of the body
	close  bool  // the connection ends after the answer

	names  []string // of the fields, in their order
	values []string
}

// parse reads a head, the empty line at its end included, and says whether it is
// plain. Strings of it stay valid for ever; header is used again.
func (h *head) parse(raw []byte) (plain bool) {
	text := string(raw)
	end := strings.IndexByte(text, '\r')
	h.length, h.close, h.host = -1, false, ""
	h.names, h.values = h.names[:0], h.values[:0]
	clear(h.header)
	if end < 0 || !h.requestLine(raw[:end], text[:end]) {
		return false
	}
	for at := end; ; {
		if !strings.HasPrefix(text[at:], "\r\n") {
			return false
		}
		at += len("\r\n")
		end := strings.IndexByte(text[at:], '\r')
		switch {
		case end < 0:
			return false
		case end == 0:
			if text[at:] != "\r\n" || h.host == "" {
				return false
			}
			h.length = max(h.length, 0)
			fixPragma(h.header)
			return true
		case !h.field(raw[at:at+end], text[at:at+end]):
			return false
		}
		at += end
	}
}

func (h *head) requestLine(raw []byte, line string) bool {
	space := strings.IndexByte(line, ' ')
	target, ok := strings.CutSuffix(line[space+1:], " HTTP/1.1")
	if space <= 0 || !ok || target == "" || target[0] != '/' || !ascii.Printable(raw) {
		return false
	}
	h.method, h.target = line[:space], target
	for i := range len(h.method) {
		if c := h.method[i]; c < 'A' || c > 'Z' {
			return false
		}
	}
	if h.method == http.MethodConnect {
		return false
	}
	return h.parseTarget()
}

// parseTarget is url.ParseRequestURI of what names a path.
func (h *head) parseTarget() bool {
	if strings.ContainsAny(h.target, " #") {
		return false
	}
	plain, ok := ascii.Target(h.target)
	if ok {
		h.url = plain
		return true
	}
	u, err := url.ParseRequestURI(h.target)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Opaque != "" || u.User != nil {
		return false
	}
	h.url = *u
	return true
}

// hostBytes are those of hosts and ports that net/http takes as they are.
var hostBytes = ascii.Set("-._:[]")

// field reads one line.
func (h *head) field(raw []byte, line string) bool {
	colon := strings.IndexByte(line, ':')
	if colon <= 0 || len(h.names) == maxPlainFields || !ascii.Printable(raw) {
		return false
	}
	name, ok := ascii.Canonical(line[:colon])
	if !ok {
		return false
	}
	value := strings.Trim(line[colon+1:], " ")
	switch name {
	case "Host":
		return h.hostField(value)
	case "Content-Length":
		length, ok := ascii.Length(value)
		if !ok || h.length >= 0 {
			return false
		}
		h.length = length
	case "Connection":
		if len(h.header[name]) > 0 || !h.connectionField(value) {
			return false
		}
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Te", "Http2-Settings":
		return false
	}
	h.add(name, value)
	return true
}

func (h *head) hostField(value string) bool {
	if h.host != "" || value == "" {
		return false
	}
	for i := range len(value) {
		if !hostBytes[value[i]] {
			return false
		}
	}
	h.host = value
	return true
}

func (h *head) connectionField(value string) bool {
	h.close = strings.EqualFold(value, "close")
	return h.close || strings.EqualFold(value, "keep-alive")
}

func (h *head) add(name, value string) {
	i, before := len(h.values), len(h.header)
	h.names, h.values = append(h.names, name), append(h.values, value)
	h.header[name] = h.values[i : i+1 : i+1]
	if len(h.header) > before {
		return
	}
	var all []string // it is there already
	for i, n := range h.names {
		if n == name {
			all = append(all, h.values[i])
		}
	}
	h.header[name] = all
}

// fixPragma is what net/http does with a field of HTTP/1.0 (RFC 9111, section 5.4).
func fixPragma(h http.Header) {
	if pragma := h["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" {
		if _, has := h["Cache-Control"]; !has {
			h["Cache-Control"] = []string{"no-cache"}
		}
	}
}

// headSize is how many bytes of p are a head, 0 while its end is not there.
func headSize(p []byte) int {
	if end := bytes.Index(p, headEnd); end >= 0 {
		return end + len(headEnd)
	}
	return 0
}
