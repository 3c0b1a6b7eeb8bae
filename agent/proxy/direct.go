package proxy

import (
	"net/http"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/agentapi"
	"porchlight/agent/proxy/ascii"
)

// Most of what httputil.ReverseProxy costs is not its work: it copies the header, its
// transport has two goroutines and their channels for each connection to the app, and
// the answer leaves in two pieces because it cannot see that the whole of it is
// already here. forwardDirect does the same on a connection of its own: what goes out
// is written in sending.go, what comes back is read in reading.go and passed on in
// copying.go.
//
// The ReverseProxy takes what is left (mayGoDirect): WebSockets, which take the
// connection over; what is asked with Expect, which has an app's word before its body;
// request trailers; HTTP/2 to the app, gRPC among it; and whatever has a byte that
// net/http would refuse to send, for it to say so.

// mayGoDirect says whether forwardDirect can take a request.
func (v *visit) mayGoDirect(r *http.Request) bool {
	switch {
	case !canDirect,
		len(r.Trailer) > 0, len(r.Header["Upgrade"]) > 0, len(r.Header["Expect"]) > 0, len(r.Header["Te"]) > 0,
		v.vhost.app.Options.Scheme() == agentapi.UpstreamH2C, !reads(r) && overHTTP2(r, v.vhost.app.Options.Scheme()),
		!asciiHost(r.Host), !httpguts.ValidHeaderFieldName(r.Method):
		return false
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		v.hop = v.hop || isHopByHop(name)
		for _, value := range values {
			if !ascii.ValidValue(value) {
				return false
			}
		}
	}
	return true
}

// asciiHost says whether a Host goes out as it came.
func asciiHost(host string) bool {
	for i := range len(host) {
		if host[i] <= ' ' || host[i] >= 0x7f {
			return false
		}
	}
	return host != "" && httpguts.ValidHostHeader(host)
}

// forwardDirect hands a request to the app and its answer back, as the ReverseProxy
// does. The visitor's request becomes the app's: its host and header are changed.
func (p *Proxy) forwardDirect(w http.ResponseWriter, r *http.Request, v *visit) {
	target, err := p.rewriteDirect(r, v)
	if err != nil {
		p.forwardFailed(w, r, v, err)
		return
	}
	s := &v.sending
	*s = sending{p: p, v: v, w: w, r: r, target: target}
	var unused *appConn
	defer func() {
		s.close() // after an answer: the visitor may still be sending
		if unused != nil {
			unused.free()
		}
	}()
	conn, res, err := s.exchange()
	if err != nil {
		p.forwardFailed(w, r, v, err)
		return
	}
	whole := false
	keep := s.mayFollow(conn) && !res.Close && !namesBody(res)
	defer func() {
		// When access ended meanwhile, the connection's deadline is in the past.
		good := v.part()
		if good && whole && keep && conn.r.Buffered() == 0 {
			p.direct.put(conn, s.again)
			return
		}
		conn.Close()
		if whole {
			unused = conn
		}
	}()
	if err := p.modifyResponse(v, r, res); err != nil {
		clear(res.Header) // which may be w's
		p.forwardFailed(w, r, v, err)
		return
	}
	p.passOn(w, res, conn, v)
	whole = true
}

// namesBody says of an answer that has no body that it names one nevertheless, which an
// app that is wrong about one may send. The length in a 304 is that of another answer.
func namesBody(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusNoContent:
		length := res.Header["Content-Length"]
		return len(res.TransferEncoding) > 0 || len(length) > 0 && length[0] != "0"
	case http.StatusNotModified:
		return len(res.TransferEncoding) > 0
	}
	return false
}

// rewriteDirect is rewrite for forwardDirect. target is the request target.
func (p *Proxy) rewriteDirect(r *http.Request, v *visit) (target string, err error) {
	u := *r.URL
	u.Scheme, u.Host, u.User = "http", "127.0.0.1", nil // as rewrite has them, for RequestURI
	target = u.RequestURI()
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return "", errTarget
		}
	}
	if v.hop {
		removeHopByHop(r.Header)
	}
	p.identifyTo(r, r.RemoteAddr, r.Host, v)
	return target, nil
}
