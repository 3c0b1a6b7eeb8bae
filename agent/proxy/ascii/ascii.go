// Package ascii judges targets, and the names and values of header fields, as net/http does,
// and quickly where they are what they nearly always are: a canonical name, printable ASCII.
package ascii

import (
	"encoding/binary"
	"net/textproto"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// tokenBytes are those of a field's name (RFC 9110, section 5.6.2).
var tokenBytes = func() (t [256]bool) {
	for c := range t {
		t[c] = httpguts.ValidHeaderFieldName(string([]byte{byte(c)}))
	}
	return t
}()

// Canonical is textproto.CanonicalMIMEHeaderKey of a valid name; not ok for any other.
func Canonical(name string) (key string, ok bool) {
	is, upper := true, true
	for i := range len(name) {
		c := name[i]
		if !tokenBytes[c] {
			return "", false
		}
		if upper {
			is = is && (c < 'a' || c > 'z')
		} else {
			is = is && (c < 'A' || c > 'Z')
		}
		upper = c == '-'
	}
	if is {
		return name, name != ""
	}
	return textproto.CanonicalMIMEHeaderKey(name), true
}

// ValidValue is httpguts.ValidHeaderFieldValue.
func ValidValue(value string) bool {
	return Printable([]byte(value)) || httpguts.ValidHeaderFieldValue(value)
}

// Trim cuts the spaces and tabs around a value.
func Trim(value string) string {
	for value != "" && (value[0] == ' ' || value[0] == '\t') {
		value = value[1:]
	}
	for value != "" && (value[len(value)-1] == ' ' || value[len(value)-1] == '\t') {
		value = value[:len(value)-1]
	}
	return value
}

// maxDigits fit an int64.
const maxDigits = 18

// Length reads a Content-Length of at most 18 digits; not ok for any other.
func Length[T string | []byte](value T) (n int64, ok bool) {
	if len(value) == 0 || len(value) > maxDigits {
		return 0, false
	}
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(value[i]-'0')
	}
	return n, true
}

// Set has the letters, the digits and some other bytes.
func Set(others string) (set [256]bool) {
	for c := range set {
		set[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(others, byte(c)) >= 0
	}
	return set
}

// pathBytes are those that url.URL writes in a path as they are.
var pathBytes = Set("/-_.~$&+,:;=@")

// Target is url.ParseRequestURI of a path that means itself, byte for byte, with or without
// a query; not ok for any other target.
func Target(target string) (u url.URL, ok bool) {
	path, query, asked := strings.Cut(target, "?")
	if path == "" || path[0] != '/' {
		return u, false
	}
	for i := range len(path) {
		if !pathBytes[path[i]] {
			return u, false
		}
	}
	for i := range len(query) {
		if query[i] < ' ' || query[i] == 0x7f {
			return u, false
		}
	}
	return url.URL{Path: path, RawQuery: query, ForceQuery: asked && query == ""}, true
}

// Printable says whether bytes are printable ASCII, eight at a time.
func Printable(p []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		del := x ^ (0x7f * ones)
		if x&high != 0 || (x-0x20*ones)&^x&high != 0 || (del-ones)&^del&high != 0 {
			return false
		}
	}
	for _, c := range p {
		if c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}
