package relay

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/control/relay/clienthello"
)

// Somebody who speaks plain HTTP to the port of TLS typed or followed an address that
// begins with http://. GET and HEAD, which may be asked again, are sent on to the same
// address by HTTPS, where it is one of this service; anything else gets a page that says
// so. Either is the connection's end, so nothing after the head is ever a request.

// plainRequest is the head of a request in plain HTTP.
type plainRequest struct {
	method string
	target string // path and query as they came; empty for one that is not understood
	host   string // a host name in lower case, without a port; empty likewise
}

// answerPlainHTTP answers a request whose head began with what p holds.
func (r *Relay) answerPlainHTTP(conn net.Conn, p *preface) {
	if conn.SetReadDeadline(time.Now().Add(r.cfg.FirstBytes)) != nil {
		_ = conn.Close()
		return
	}
	q := parsePlain(p.readHead(conn))
	p.release()
	if !r.isOurs(q.host) {
		q.host = ""
	}
	answer, sentOn := plainAnswer(q, r.cfg.PublicPort)
	if !sentOn {
		r.counters.malformed.Add(1)
	}
	refuse(conn, answer)
}

// isOurs says whether a host is one of this service: the auth host, or a computer's or
// an app's. Nobody is sent anywhere else.
func (r *Relay) isOurs(host string) bool {
	below := r.cfg.Domain != "" && strings.HasSuffix(host, "."+r.cfg.Domain)
	if host == "" || host == r.cfg.AuthHost || below || r.routes.knows(host) {
		return host != ""
	}
	own, err := r.ownHost(context.Background(), host)
	return err == nil && own != ""
}

// readHead reads on until a head is whole, and returns it without the empty line that
// ends it; nil where it is too long, or too slow.
func (p *preface) readHead(conn net.Conn) []byte {
	for {
		for _, end := range [...]string{"\r\n\r\n", "\n\n"} {
			if i := bytes.Index(p.bytes(), []byte(end)); i >= 0 {
				return p.bytes()[:i]
			}
		}
		if p.n == clienthello.MaxSize {
			return nil
		}
		if p.n == firstBuffer-headroom && len(p.buf) == firstBuffer {
			p.widen()
		}
		n, err := conn.Read(p.buf[headroom+p.n:])
		if p.n += n; err != nil && n == 0 {
			return nil
		}
	}
}

// parsePlain reads a head strictly: what could be read in two ways is not understood.
func parsePlain(head []byte) (q plainRequest) {
	first, fields, _ := strings.Cut(string(head), "\r\n")
	method, rest, _ := strings.Cut(first, " ")
	target, version, _ := strings.Cut(rest, " ")
	q.method = method
	if version != "HTTP/1.1" && version != "HTTP/1.0" || !strings.HasPrefix(target, "/") || strings.Contains(target, "#") || !visible(target) {
		return q
	}
	var hosts []string
	for line := range strings.SplitSeq(fields, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || !visible(name) || strings.ContainsAny(value, "\r\n\x00") {
			return q
		}
		if strings.EqualFold(name, "Host") {
			hosts = append(hosts, strings.Trim(value, " \t"))
		}
	}
	if len(hosts) == 1 {
		q.target, q.host = target, plainHost(hosts[0])
	}
	return q
}

// visible says whether all of s can be seen: no space, no control byte, only ASCII.
func visible(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f }) < 0
}

// plainHost is the name in a Host header, whatever port is with it; empty for what is
// no host name.
func plainHost(value string) string {
	name, port, has := strings.Cut(value, ":")
	if _, err := strconv.ParseUint(port, 10, 16); has && err != nil {
		return ""
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return ""
		}
	}
	return clienthello.HostName(name)
}

// plainAnswer is what a request gets; sentOn says that it is the way to go on.
func plainAnswer(q plainRequest, port int) (answer []byte, sentOn bool) {
	origin := ""
	if q.host != "" {
		origin = "https://" + q.host
		if port != 0 && port != 443 {
			origin += ":" + strconv.Itoa(port)
		}
	}
	status, location, body := http.StatusBadRequest, "", plainPage(origin)
	if sentOn = origin != "" && (q.method == http.MethodGet || q.method == http.MethodHead); sentOn {
		status, location = http.StatusPermanentRedirect, "Location: "+origin+q.target+"\r\n"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n%sContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), location, len(body))
	if q.method != http.MethodHead {
		b.WriteString(body)
	}
	return b.Bytes(), sentOn
}

// plainPage says what to do. An origin has nothing in it that HTML reads.
func plainPage(origin string) string {
	link := ""
	if origin != "" {
		link = `<p><a href="` + origin + `/">` + origin + "/</a></p>\n"
	}
	return "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>This address speaks HTTPS</title>\n" +
		"<p>This address speaks HTTPS, and was asked in plain HTTP. Begin the address with https://.</p>\n" + link
}
