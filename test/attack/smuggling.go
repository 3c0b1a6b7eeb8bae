//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
)

// What the framing of a request may say. HIDDEN is a request that nobody checked.
var (
	lengths = []string{
		"", "Content-Length: SIZE\r\n", "Content-Length: 0\r\n", "Content-Length: 4\r\n", "Content-Length: 4000\r\n", "Content-Length: +SIZE\r\n",
		"Content-Length: 0xSIZE\r\n", "Content-Length: 00SIZE\r\n", "Content-Length: SIZE, SIZE\r\n", "Content-Length: 0, SIZE\r\n",
		"Content-Length: SIZE\r\nContent-Length: SIZE\r\n", "Content-Length: 0\r\nContent-Length: SIZE\r\n", "Content-Length: -1\r\n",
		"Content-Length: SIZE\x00\r\n", "Content-Length: \r\n", "Content-Length: 1e1\r\n", "Content-Length: \u0665\r\n", "Content-Length : SIZE\r\n",
		"Content-Length:\r\n SIZE\r\n", "X: y\nContent-Length: SIZE\r\n", "Content_Length: 0\r\n", "Content-Length: 18446744073709551621\r\n",
	}
	encodings = []string{
		"", "Transfer-Encoding: chunked\r\n", "transfer-encoding: CHUNKED\r\n", "Transfer-Encoding:chunked\r\n", "Transfer-Encoding: \tchunked \r\n",
		"Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: identity, chunked\r\n",
		"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked;q=1\r\n", "Transfer-Encoding: \"chunked\"\r\n",
		"Transfer-Encoding: \x0bchunked\r\n", "Transfer-Encoding: chunked\x00\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Transfer_Encoding: chunked\r\n", "Transfer-Encoding : chunked\r\n", "Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding: chun\tked\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "X: y\nTransfer-Encoding: chunked\r\n", " Transfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n", "TE: chunked\r\nTransfer-Encoding: ,chunked\r\n",
	}
	bodies = []string{"HIDDEN", "0\r\n\r\nHIDDEN", "5\r\nhello\r\n0\r\n\r\nHIDDEN"}

	sizes = []string{
		"5", "05", "00000005", "5 ", " 5", "+5", "-5", "0x5", "5_", "5\x00", "5\t", "five", "", "\u0665", "5\r", "10000000000000005", "5.0", "5,5", "a", "1",
	}
	extensions = []string{"\r\n", ";a=b\r\n", ";a=\"x\\\"y\"\r\n", ";a\nb\r\n", ";a\rb\r\n", " ;a\r\n", ";\r\n", "\n", "\r\r\n", ";a=HTTP/1.1\r\n"}
	endings    = []string{
		"\r\n0\r\n\r\nHIDDEN", "\n0\n\nHIDDEN", "0\r\n\r\nHIDDEN", "\r\n0\r\nX: y\r\n\r\nHIDDEN", "\r\n0\r\n X: y\r\n\r\nHIDDEN",
		"\r\n0\r\nX: y\n\r\nHIDDEN", "\r\n0\r\nContent-Length: 90\r\n\r\nHIDDEN", "\r\n00\r\nnonsense\r\n\r\nHIDDEN",
	}

	versions = []string{"HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/01.1", "HTTP/1.1 ", "HTTP/1.1x", ""}
	targets  = []string{
		"TARGET", "https://HOST" + "TARGET", "http://HOST" + "TARGET", "https://127.0.0.1:8765TARGET", "x:http://127.0.0.1TARGET", "HOST:443", "*", "/TARGET",
		"TARGET x", "TARGET\tx", "https://HOST@127.0.0.1TARGET", "TARGET\x00", "\\TARGET", "TARGET#x",
	}
	lineEnds = []string{"\r\n", "\n", "\r", "\r\n ", "\x00\r\n", "\r\r\n", "\r\nHost: other\r\n", "\r\n\r\n"}
)

// attackSmuggling sends requests whose end can be read in two ways, with one
// hidden behind and one that checks whether connection and app are in step. An
// app that sees what was hidden, or an answer that is not the check's, is
// through. Framing, chunks and request lines are a grid each.
func attackSmuggling(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	const ends = "back ends"
	var attacks []smuggled
	for _, at := range (grid{}).axis("lengths", len(lengths)).axis("encodings", len(encodings)).axis("bodies", len(bodies)).axis(ends, len(on.backends)).pick(s.quick, 150) {
		attacks = append(attacks, smuggled{at[3], "POST TARGET HTTP/1.1\r\nHOST" + lengths[at[0]] + encodings[at[1]] + "\r\n", bodies[at[2]]})
	}
	for _, at := range (grid{}).axis("chunk sizes", len(sizes)).axis("extensions", len(extensions)).axis("endings", len(endings)).axis(ends, len(on.backends)).pick(s.quick, 130) {
		attacks = append(attacks, smuggled{at[3], "POST TARGET HTTP/1.1\r\nHOSTTransfer-Encoding: chunked\r\n\r\n", sizes[at[0]] + extensions[at[1]] + "hello" + endings[at[2]]})
	}
	for _, at := range (grid{}).axis("versions", len(versions)).axis("targets", len(targets)).axis("line ends", len(lineEnds)).axis(ends, len(on.backends)).pick(s.quick, 90) {
		line := "GET " + strings.ReplaceAll(targets[at[1]], "HOST", "NAME") + " " + versions[at[0]] + lineEnds[at[2]]
		attacks = append(attacks, smuggled{at[3], line + "HOST\r\n", "HIDDEN"})
	}
	err = atOnce(len(attacks), 12, func(i int) error {
		a := attacks[i]
		b, tr := on.backends[a.backend], on.trials[a.backend]
		target := fmt.Sprintf("/s/%d", i)
		on.mu.Lock()
		tr.what[target] = fmt.Sprintf("%.120q", a.head+a.body)
		tr.what["/"+target] = tr.what[target]
		tr.what[target+"%23x"] = tr.what[target]
		tr.what[target+"/check"] = "the check after " + tr.what[target]
		on.mu.Unlock()
		got, err := on.provoke(ctx, b.host, a.write(b, target))
		if err != nil {
			return fmt.Errorf("%s: %w", tr.what[target], err)
		}
		t.try(1)
		on.mu.Lock()
		defer on.mu.Unlock()
		tr.inStep(target, got, t)
		return nil
	})
	if err != nil {
		return err
	}
	return on.judgeAll(t)
}

// smuggled is an attack. TARGET, HOST (with who asks) and NAME stand for what
// they say.
type smuggled struct {
	backend    int
	head, body string
}

func (a smuggled) write(b *backend, target string) string {
	hidden := "GET " + target + "/hidden HTTP/1.1\r\nHost: " + b.host + "\r\nX-Service-Role: " + mark + "\r\n\r\n"
	who := "Host: " + b.host + "\r\nCookie: " + b.cookie + "\r\nOrigin: https://" + b.host + "\r\n"
	body := strings.ReplaceAll(a.body, "HIDDEN", hidden)
	r := strings.NewReplacer("TARGET", target, "HOST", who, "NAME", b.host, "SIZE", fmt.Sprint(len(body)))
	return r.Replace(a.head) + body + "GET " + target + "/check HTTP/1.1\r\n" + who + "Connection: close\r\n\r\n"
}

// inStep checks that what the app answered is for the request and its check, in
// this order, and nothing else.
func (tr *trial) inStep(target string, got []answer, t *tally) {
	tr.tried++
	next := 0
	for _, a := range got {
		if a.status != 200 {
			continue
		}
		switch told := strings.TrimSuffix(strings.TrimPrefix(a.body, "seen "), "\n"); {
		case next == 0 && (told == target || told == "/"+target || told == target+"%23x"):
			next = 1
			tr.accepted[told] = true
		case next < 2 && told == target+"/check":
			next = 2
			tr.accepted[told] = true
		default:
			t.got("%s: out of step, answered with %.100q", tr.describe(target), a.body)
		}
	}
}
