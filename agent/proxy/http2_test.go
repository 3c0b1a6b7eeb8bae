package proxy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/test/programs"
)

// stream sends one request over a new HTTP/2 connection, its fields exactly as
// given ("name", "value", …), and returns the status of the answer, "reset" or
// "closed". more writes frames after the head, which ends the stream when more
// is nil.
func (r *rig) stream(t *testing.T, fields []string, more func(*http2.Framer)) string {
	t.Helper()
	conn := programs.Got(tls.Dial("tcp", r.addr, &tls.Config{RootCAs: r.roots, ServerName: sni, NextProtos: []string{"h2"}}))(t)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(15 * time.Second))
	var out bytes.Buffer // what follows a refusal may not be writable any more
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, conn)
	framer.AllowIllegalWrites = true
	framer.WriteSettings()
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields...), EndHeaders: true, EndStream: more == nil})
	if more != nil {
		more(framer)
	}
	conn.Write(out.Bytes())
	decoder := hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			if strings.Contains(err.Error(), "timeout") {
				t.Errorf("%q: no answer", fields)
			}
			return "closed"
		}
		switch f := frame.(type) {
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.GoAwayFrame:
			return "closed"
		case *http2.HeadersFrame:
			decoded, err := decoder.DecodeFull(f.HeaderBlockFragment())
			if err != nil || len(decoded) == 0 {
				t.Fatalf("%q: %v", fields, err)
			}
			return decoded[0].Value
		}
	}
}

// block is a header block of fields as they are.
func block(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

// Weakness: what HTTP/2 frames so that it cannot be misread is written out as
// HTTP/1.1, and then can be: lines in values, lengths that lie, headers about
// connections, pseudo-headers that say two things.
// Attack: such requests, frame by frame, from a member who is signed in.
// Checked: 4xx, a reset or a closed connection, and the app receives nothing
// hidden in them.
func TestHTTP2Smuggling(t *testing.T) {
	t.Parallel()
	r, b, rec := recordedVisitor(t, true)
	const host = sni
	good := []string{":method", "POST", ":scheme", "https", ":authority", host, ":path", "/", "cookie", cookie + "=" + b.cookies[cookie]}
	with := func(fields ...string) []string { return append(append([]string{}, good...), fields...) }
	but := func(name string, instead ...string) (out []string) {
		for i := 0; i < len(good); i += 2 {
			if good[i] == name {
				out = append(out, instead...)
			} else {
				out = append(out, good[i], good[i+1])
			}
		}
		return out
	}
	const hidden = "x\r\n\r\nGET /hidden HTTP/1.1\r\nHost: " + host + "\r\nX-Service-Role: forged\r\n\r\n"
	for what, fields := range map[string][]string{
		"a line in a value":            with("x-a", "b\r\nx-service-role: forged"),
		"a request in a value":         with("x-a", hidden),
		"a bare LF in a value":         with("x-a", "b\nx-service-role: forged"),
		"a NUL in a value":             with("x-a", "b\x00c"),
		"a line in a name":             with("x-a: b\r\nx-service-role", "forged"),
		"a colon in a name":            with("x-service-role:", "forged"),
		"a space in a name":            with("x-service-role ", "forged"),
		"an empty name":                with("", "forged"),
		"capitals in a name":           with("X-Service-Role", "forged"),
		"a line in the path":           but(":path", ":path", "/ HTTP/1.1\r\nx-service-role: forged\r\nx: "),
		"a request in the path":        but(":path", ":path", "/ HTTP/1.1\r\nHost: "+host+"\r\n\r\nGET /hidden"),
		"a space in the path":          but(":path", ":path", "/x HTTP/1.1"),
		"an empty path":                but(":path", ":path", ""),
		"no path":                      but(":path"),
		"two paths":                    with(":path", "/hidden"),
		"a path of another host":       but(":path", ":path", "http://127.0.0.1:8765/hidden"),
		"an opaque path":               but(":path", ":path", "x:http://127.0.0.1/hidden"),
		"a path without a slash":       but(":path", ":path", "hidden"),
		"an asterisk":                  but(":path", ":path", "*"),
		"a line in the method":         but(":method", ":method", "GET /hidden HTTP/1.1\r\nx:"),
		"a space in the method":        but(":method", ":method", "GET /hidden"),
		"no method":                    but(":method"),
		"two methods":                  but(":method", ":method", "GET", ":method", "POST"),
		"CONNECT":                      {":method", "CONNECT", ":authority", host},
		"CONNECT to a port":            {":method", "CONNECT", ":authority", "127.0.0.1:8765"},
		"extended CONNECT":             but(":method", ":method", "CONNECT", ":protocol", "websocket"),
		"no scheme":                    but(":scheme"),
		"a strange scheme":             but(":scheme", ":scheme", "https://127.0.0.1:8765/hidden?"),
		"another authority":            but(":authority", ":authority", "photos."+rootHost),
		"an authority with a user":     but(":authority", ":authority", host+"@127.0.0.1"),
		"an authority with a path":     but(":authority", ":authority", host+"/hidden"),
		"a line in the authority":      but(":authority", ":authority", host+"\r\nx-service-role: forged"),
		"two authorities":              with(":authority", host),
		"no authority, another host":   but(":authority", "host", "photos."+rootHost),
		"an unknown pseudo-header":     but(":path", ":path", "/", ":evil", "forged"),
		"a status":                     but(":path", ":path", "/", ":status", "200"),
		"a pseudo-header at the end":   append(but(":path"), "x-a", "b", ":path", "/hidden"),
		"connection":                   with("connection", "close"),
		"connection names the five":    with("connection", "x-service-role"),
		"transfer-encoding":            with("transfer-encoding", "chunked"),
		"keep-alive":                   with("keep-alive", "timeout=5"),
		"proxy-connection":             with("proxy-connection", "keep-alive"),
		"upgrade":                      with("upgrade", "h2c"),
		"upgrade to a WebSocket":       with("upgrade", "websocket", "connection", "upgrade"),
		"te is not trailers":           with("te", "gzip"),
		"two lengths":                  with("content-length", "0", "content-length", "5"),
		"a length that is none":        with("content-length", "+0"),
		"a length where nothing comes": with("content-length", "5"),
	} {
		before := len(rec.requests())
		status := r.stream(t, fields, nil)
		received := strings.Join(rec.requests()[before:], "")
		if status < "400" { // "reset" and "closed" sort after digits
			// One reading is left, and it is what went on.
			if what != "two lengths" && what != "a length that is none" && what != "a length where nothing comes" || strings.Contains(received, "Content-Length: 5") {
				t.Errorf("%s: %s; the app received\n%s", what, status, received)
			}
		}
		if strings.Contains(received, "forged") || strings.Contains(received, "hidden") {
			t.Errorf("%s: the app received\n%s", what, received)
		}
	}

	bodies := map[string]struct {
		fields []string
		more   func(*http2.Framer)
	}{
		"more than its length": {with("content-length", "1"), func(f *http2.Framer) { f.WriteData(1, true, []byte(hidden)) }},
		"less than its length": {with("content-length", "500"), func(f *http2.Framer) { f.WriteData(1, true, []byte("x")) }},
		"a pseudo-header in trailers": {with("trailer", "x-a"), func(f *http2.Framer) {
			f.WriteData(1, false, []byte("x"))
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":path", "/hidden"), EndHeaders: true, EndStream: true})
		}},
		"trailers that do not end": {with("trailer", "x-a"), func(f *http2.Framer) {
			f.WriteData(1, false, []byte("x"))
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block("x-a", "forged"), EndHeaders: true})
		}},
		"a frame on a stream of the server": {with(), func(f *http2.Framer) { f.WriteData(2, true, []byte(hidden)) }},
		"headers in the middle of headers": {with(), func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(with(":path", "/hidden")...)})
			f.WriteData(1, true, []byte(hidden))
		}},
		"data after the end": {with(), func(f *http2.Framer) {
			f.WriteData(1, true, nil)
			f.WriteData(1, true, []byte(hidden))
		}},
		"a push": {with(), func(f *http2.Framer) {
			f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: block(with()...), EndHeaders: true})
		}},
	}
	for what, c := range bodies {
		before := len(rec.requests())
		status := r.stream(t, c.fields, c.more)
		for _, raw := range rec.requests()[before:] {
			if raw == "" {
				continue // given up before a byte was sent
			}
			head, _, _ := strings.Cut(raw, "\r\n\r\n")
			if strings.Contains(raw, "hidden") || strings.Contains(raw, "forged") || strings.Count(head, "HTTP/1.1") != 1 {
				t.Errorf("%s (%s): the app received\n%s", what, status, raw)
			}
		}
		if status == "200" && what != "data after the end" {
			t.Errorf("%s: %s", what, status)
		}
	}
	if status := r.stream(t, with("content-length", "5"), func(f *http2.Framer) { f.WriteData(1, true, []byte("hello")) }); status != "200" {
		t.Errorf("an honest request: %s", status)
	}
	if got := fmt.Sprint(rec.requests()); !strings.Contains(got, "hello") {
		t.Error("the honest request did not arrive")
	}
}
