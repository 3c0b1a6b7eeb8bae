package gate

import (
	"net/http"
	"strings"
	"time"
)

// Hostname returns the request's host without a port. ok is false unless the
// TLS handshake was for that very name: certificates are for one name each, so
// a browser that mixes hosts on one connection is told to open another (421).
func Hostname(r *http.Request) (host string, ok bool) {
	if r.TLS == nil {
		return "", false
	}
	host = r.Host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && digits(host[i+1:]) {
		host = host[:i]
	}
	host = strings.ToLower(host)
	name := r.TLS.ServerName
	return host, host != "" && (host == name || host == strings.ToLower(name))
}

// PathTarget says whether the request is for a path, or for OPTIONS as such. A
// target like "x:http://inner/" has neither host nor path and would go on to the
// app as it is, where it may count more than the Host header does.
//
// Over HTTP/2 the same is looked at as it came: a :path with a host of its own
// parses too, and one with a space would have to be written otherwise.
func PathTarget(r *http.Request) bool {
	path := r.URL.Path
	if r.ProtoMajor > 1 && (r.URL.Host != "" || r.URL.Scheme != "" || strings.ContainsFunc(r.RequestURI, func(c rune) bool { return c <= ' ' || c == 0x7f })) {
		return false
	}
	if path == "*" {
		return r.Method == http.MethodOptions
	}
	return r.URL.Opaque == "" && (path == "" || path[0] == '/')
}

// AtHand says whether all of a request's body, its end included, can be read without
// waiting, as far as its server knows: it may give the body a method of that name.
func AtHand(r *http.Request) bool {
	body, ok := r.Body.(interface{ AtHand() bool })
	return ok && body.AtHand()
}

// AwaitBody takes the limit off the time that a request's body may take.
func AwaitBody(w http.ResponseWriter, r *http.Request) { limitBody(w, r, 0) }

// limitBody has reading a request's body fail once so much time is over; 0 is for no limit.
// The server reads what is left of a body before it answers, so that without a limit
// anybody could hold a connection by sending none.
func limitBody(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return // the server watches for the end of the connection instead
	}
	if r.ContentLength == 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return // over HTTP/2, which gives every request a body; nothing reads this one
	}
	var until time.Time
	if within > 0 {
		until = time.Now().Add(within)
	}
	// A writer that knows no deadlines is one of a test, not of a connection.
	_ = http.NewResponseController(w).SetReadDeadline(until)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) <= 5
}
