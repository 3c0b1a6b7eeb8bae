package proxy_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
)

// FuzzWaysHTTP2 has a visitor take the same steps over HTTP/2 on both ways.
func FuzzWaysHTTP2(f *testing.F) {
	w := newWays(f)
	for _, seed := range append(seeds2(), recorded(f, "http2")...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		if len(input) > 20_000 {
			t.Skip("longer than what is looked at")
		}
		if difference := w.compare(func(one *way, addr *net.TCPAddr) came { return one.exchange2(addr, input, w.fill) }); difference != "" {
			t.Errorf("%q: %s", input, difference)
		}
	})
}

// Steps, for seeds.
func text2(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
func headers2(flags byte, fields string) string {
	return string([]byte{stepHeaders, flags}) + text2(fields)
}
func data2(stream, flags byte, data string) string {
	return string([]byte{stepData, stream, flags}) + text2(data)
}
func trailers2(stream, flags byte, fields string) string {
	return string([]byte{stepTrailers, stream, flags}) + text2(fields)
}
func raw2(kind, flags byte, id uint32, payload string) string {
	return string(binary.BigEndian.AppendUint32([]byte{stepRaw, kind, flags}, id)) + text2(payload)
}
func window2(stream byte, by uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte{stepWindow, stream}, by))
}
func setting2(id byte, value uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte{stepSettings, 1, id}, value))
}

// let2 begins a request of somebody who may.
const let2 = ":scheme: https\n:authority: HOST\ncookie: COOKIE\n"

func seeds2() (all []string) {
	const post, get = ":method: POST\n:path: /p\n" + let2, ":method: GET\n:path: /g\n" + let2
	for _, path := range []string{"/", "/a?b=c", "/none", "/same", "/chunks", "/hints", "/long", "/rest", "/half", "/odd", "/.porchlight/me", "/.porchlight/style.css", "*", "", "x", "//e/x", "/ x", "/\x80", "https://HOST/a"} {
		all = append(all, headers2(flagEnd, ":method: GET\n:path: "+path+"\n"+let2), headers2(flagEnd|flagPieces|flagPadded, ":method: HEAD\n:path: "+path+"\n"+let2))
	}
	for _, field := range []string{
		"connection: close", "te: gzip", "te: trailers", "upgrade: websocket", "transfer-encoding: chunked", "Upper: x", "x-a: \x00", "x-a: a\rb", "x a: b", ": b", ":status: 200", ":path: /2", "host: other", "host: HOST",
		"cookie: a=b", "content-length: 0", "content-length: 5", "content-length: x", "content-length: 1\ncontent-length: 1", "expect: 100-continue", "x-service-user: me", "x_service_user: me", "authorization: Bearer x.y.z", "trailer: x-t",
		"origin: https://evil.test\nsec-fetch-site: cross-site", "keep-alive: 1", "proxy-connection: x", "x: " + strings.Repeat("y", 9000), "accept: text/html\nsec-fetch-mode: navigate", strings.Repeat("x: y\n", 210),
		":protocol: websocket", "cookie: \x7f", "x-a:  b ", "user-agent: a\nuser-agent: b", "x-a: ü", "priority: u=1", "range: bytes=0-1", "pragma: no-cache",
	} {
		all = append(all, headers2(flagEnd, get+field), headers2(flagEnd, field+"\n"+get), headers2(0, post+field)+data2(0, flagEnd, "hello"))
	}
	for i := range outward {
		all = append(all, headers2(flagEnd, fmt.Sprintf(":method: GET\n:path: /says%d\n%s", i, let2)))
	}
	for _, address := range ownAddresses {
		all = append(all, headers2(flagEnd, ":method: MOVE\n:path: /\n"+let2+"origin: https://HOST\nreferer: "+address+"\ndestination: "+address+"\n"))
	}
	return append(all,
		headers2(flagEnd|flagPlain, ""), headers2(flagEnd|flagPlain|flagPriority, "accept: */*"), headers2(flagEnd, ":method: GET\n:path: /\n:scheme: https\n:authority: HOST\n"),
		headers2(flagEnd, ":method: GET\n:path: /\n:scheme: http\n:authority: HOST\n"), headers2(flagEnd, ":method: GET\n:path: /\n:authority: HOST\n"), headers2(flagEnd, ":method: GET\n:path: /\n:scheme: https\n"),
		headers2(flagEnd, ":method: GET\n:path: /\n:scheme: https\n:authority: other\n"), headers2(flagEnd, ":method: CONNECT\n:authority: HOST:443\n"), headers2(flagEnd, ":method: CONNECT\n:protocol: websocket\n:path: /\n"+let2),
		headers2(flagEnd, ":method: g t\n:path: /\n"+let2), headers2(flagEnd, ":method: OPTIONS\n:path: *\n"+let2), headers2(flagEnd, ""), headers2(flagEnd, ":method: TRACE\n:path: /\n"+let2),
		headers2(0, post)+data2(0, 0, "hel")+data2(0, flagPadded, "")+data2(0, flagEnd|flagPadded, "lo"),
		headers2(0, post)+data2(0, flagLong|flagEnd, strings.Repeat("x", 900)),
		headers2(0, post+"trailer: x-t\n")+data2(0, 0, "x")+trailers2(0, flagEnd, "x-t: 1\nx-u: 2\n"),
		headers2(0, post)+data2(0, 0, "x")+trailers2(0, 0, "x-t: 1\n"), headers2(0, post)+trailers2(0, flagEnd, ":path: /x\n"), headers2(0, post)+trailers2(0, flagEnd, "X: 1\n"),
		headers2(flagAtOnce|flagEnd, get)+headers2(flagAtOnce|flagEnd, get)+headers2(flagEnd, get),
		headers2(flagAtOnce, post)+headers2(flagEnd, get)+data2(0, flagEnd, "late"),
		headers2(0, post)+string([]byte{stepReset, 0, 8})+headers2(flagEnd, get), headers2(flagEnd, get)+data2(0, 0, "after the end"), headers2(flagEnd, get)+trailers2(0, flagEnd, "a: b\n"),
		headers2(flagEnd, get)+data2(7, 0, "of none"), data2(connectionItself, 0, "x"), headers2(flagEnd, get)+string([]byte{stepReset, 9, 0}), string([]byte{stepReset, connectionItself, 0}),
		window2(connectionItself, 0), window2(connectionItself, 1<<31-1), headers2(0, post)+window2(0, 0), headers2(0, post)+window2(0, 1<<31-1), window2(3, 5), setting2(4, 1<<31), setting2(5, 1), setting2(5, 1<<24), setting2(2, 2), setting2(1, 0)+headers2(flagEnd, get), setting2(99, 7), setting2(3, 0)+headers2(flagEnd, get), setting2(8, 2), setting2(6, 10)+headers2(flagEnd, get),
		string([]byte{stepPing, 1, 2}), string([]byte{stepGoAway, 0})+headers2(flagEnd, get), string([]byte{stepPriority, 0, 0, 3}), string([]byte{stepPriority, 3, 5, 3})+headers2(flagEnd, get),
		raw2(1, 4, 1, "\xff\xff"), raw2(1, 5, 2, ""), raw2(1, 5, 0, ""), raw2(9, 4, 1, ""), raw2(4, 1, 0, "x"), raw2(4, 0, 1, ""), raw2(4, 0, 0, "abc"), raw2(6, 0, 0, "abc"), raw2(6, 0, 1, "12345678"), raw2(5, 4, 1, "\x00\x00\x00\x02"), raw2(0, 8, 1, "\xff"), raw2(1, 8, 1, ""), raw2(3, 0, 1, "ab"), raw2(8, 0, 1, "ab"), raw2(7, 0, 0, "ab"), raw2(7, 0, 1, "12345678"), raw2(200, 255, 5, "unknown"), raw2(16, 0, 0, "abc"), raw2(16, 0, 1, "\x00\x00\x00\x01u=1"), raw2(16, 0, 0, "\x00\x00\x00\x00u=1"), headers2(flagEnd, get)+raw2(16, 0, 0, "\x00\x00\x00\x01u=1, i")+headers2(flagEnd, get), raw2(16, 0, 0, "\x00\x00\x00\x09=")+headers2(flagEnd, get), raw2(2, 0, 1, "\x00\x00\x00\x01\x05"), raw2(0, 0, 1, strings.Repeat("x", 17_000)), raw2(1, 1, 1, "")+raw2(0, 0, 1, "x"),
		headers2(flagEnd, get)+raw2(1, 5, 1, "\x82\x84\x87"),
		// :status alone, twice, and beside a request's; :protocol, also empty; on a stream of an even number, too.
		raw2(1, 5, 1, "\x88")+headers2(flagEnd, get), raw2(1, 5, 2, "\x88"), raw2(1, 5, 2, "\x88\x88"), raw2(1, 5, 2, "\x82\x88"), headers2(flagEnd, get)+raw2(1, 5, 1, "\x88"),
		headers2(0, post)+trailers2(0, flagEnd, ":status: 200\n"), headers2(flagEnd, ":protocol:\n"+get), headers2(flagEnd, ":protocol: x\n"+get), headers2(flagEnd, ":protocol:\n:method: CONNECT\n:authority: HOST\ncookie: COOKIE\n"),
		headers2(flagEnd, ":status: 200\n"), headers2(flagEnd, ":status: 200\n:method: GET\n"), headers2(flagEnd, ":odd: x\n"), raw2(1, 5, 2, "\x82\x82"), raw2(1, 5, 2, ""), headers2(0, post)+raw2(1, 5, 4, "\x88"),
	)
}
