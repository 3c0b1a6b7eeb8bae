//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// mostFields is how many fields a request may have, trailers included; an app is
// not asked with more.
const mostFields = 200

var (
	fieldCounts = []int{199, 200, 201, 1500}
	protocols   = []string{"HTTP/1.1", "HTTP/2"}
	fieldsWhere = []string{"GET, all in the head", "POST, all in the head", "POST, half of them trailers"}
)

// attackFields has a member send so many fields that an app may leave some out:
// the five always arrive, or the request does not.
func attackFields(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	repeats := 5
	if s.quick {
		repeats = 1
	}
	cases := grid{}.axis("numbers of fields", len(fieldCounts)).axis("places", len(fieldsWhere)).axis("protocols", len(protocols)).
		axis("times", repeats).axis("back ends", len(on.backends)).pick(false, 0)
	err = atOnce(len(cases), 8, func(i int) error {
		picked := cases[i]
		n, place, b, tr := fieldCounts[picked[0]], picked[1], on.backends[picked[4]], on.trials[picked[4]]
		target := fmt.Sprintf("/f/%d", i)
		on.mu.Lock()
		tr.what[target] = fmt.Sprintf("%d fields, %s, %s", n, fieldsWhere[place], protocols[picked[2]])
		on.mu.Unlock()
		var got []answer
		if picked[2] == 0 {
			var err error
			if got, err = on.exchange(ctx, b.host, manyFields(b, target, n, place)); err != nil {
				return fmt.Errorf("%s: %w", tr.what[target], err)
			}
		} else {
			fields, trailers := manyFields2(b, target, n, place)
			one, err := on.stream(ctx, b.host, fields, trailers)
			if err != nil {
				return fmt.Errorf("%s: %w", tr.what[target], err)
			}
			got = []answer{one}
		}
		t.try(1)
		on.mu.Lock()
		defer on.mu.Unlock()
		tr.answered(target, got, t)
		switch {
		case n > mostFields && tr.accepted[target]:
			t.got("%s, %s: it was let through", tr.what[target], b.name)
		// Python's own bound is 100.
		case n <= mostFields && !tr.accepted[target] && b.name != "python":
			t.got("%s, %s: it was refused: %+v", tr.what[target], b.name, got)
		case n > mostFields && place < 2 && (len(got) != 1 || got[0].status != http.StatusRequestHeaderFieldsTooLarge):
			t.got("%s, %s: no page says why: %.80v", tr.what[target], b.name, got)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, b := range on.backends { // Python may have seen none
		if err := on.trials[i].judge(b, t); err != nil {
			return err
		}
	}
	return nil
}

// fillers are n fields that mean nothing.
func fillers(n int) (fields []string) {
	for i := range n {
		fields = append(fields, fmt.Sprintf("f%d: 1", i))
	}
	return fields
}

// namesOf are the names of fillers, as Trailer lists them: others never reach an
// app.
func namesOf(n int) string { return strings.ReplaceAll(strings.Join(fillers(n), ", "), ": 1", "") }

func manyFields(b *backend, target string, n, where int) string {
	lines := []string{"Host: " + b.host, "Cookie: " + b.cookie, "Connection: close"}
	method, body, trailers := "GET", "", 0
	switch where {
	case 1:
		method, body = "POST", "hello"
		lines = append(lines, "Origin: https://"+b.host, "Content-Length: 5")
	case 2:
		method, trailers = "POST", n/2
		lines = append(lines, "Origin: https://"+b.host, "Transfer-Encoding: chunked", "Trailer: "+namesOf(trailers))
		body = "5\r\nhello\r\n0\r\n" + strings.Join(fillers(trailers), "\r\n") + "\r\n\r\n"
	}
	lines = append(lines, fillers(n-trailers-len(lines))...)
	return method + " " + target + " HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// manyFields2 counts :authority as the one field it is for an app.
func manyFields2(b *backend, target string, n, where int) (fields, trailers []hpack.HeaderField) {
	method := "GET"
	if where > 0 {
		method = "POST"
	}
	fields = []hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: target}, {Name: ":authority", Value: b.host},
		{Name: "origin", Value: "https://" + b.host}, {Name: "cookie", Value: b.cookie},
	}
	late := 0
	if where == 2 {
		late = n / 2
		fields = append(fields, hpack.HeaderField{Name: "trailer", Value: namesOf(late)})
	}
	for _, filler := range fillers(n - late - (len(fields) - 3)) {
		name, _, _ := strings.Cut(filler, ":")
		fields = append(fields, hpack.HeaderField{Name: name, Value: "1"})
	}
	for _, filler := range fillers(late) {
		name, _, _ := strings.Cut(filler, ":")
		trailers = append(trailers, hpack.HeaderField{Name: name, Value: "1"})
	}
	return fields, trailers
}
