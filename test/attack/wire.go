//go:build linux

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// wire is a request byte for byte, as the agent sent it to an app.
type wire struct {
	method, target string
	fields         []string // lines of the head, without the first
	body           []byte   // without chunks
	trailers       []string // lines
	whole          bool     // up to its end
	bad            string   // what nobody should send to an app, or empty
}

// split takes a connection's bytes apart the strictest way: a reading of our own,
// to hold against those of the four apps.
func split(b []byte) (all []wire) {
	for len(b) > 0 {
		var w wire
		w, b = first(b)
		all = append(all, w)
		if !w.whole || w.bad != "" {
			break
		}
	}
	return all
}

func first(b []byte) (w wire, rest []byte) {
	head, rest, found := bytes.Cut(b, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	words := strings.Split(lines[0], " ")
	if len(words) != 3 || words[2] != "HTTP/1.1" {
		w.bad = fmt.Sprintf("a request line %q", lines[0])
		return w, nil
	}
	w.method, w.target, w.fields = words[0], words[1], lines[1:]
	if !found {
		return w, nil
	}
	length, chunked := -1, false
	for _, line := range w.fields {
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok || strings.ContainsAny(line, "\r\n\x00") || strings.Trim(name, " \t") != name || name == "":
			w.bad = fmt.Sprintf("a field line %q", line)
		case strings.EqualFold(name, "content-length") && (length >= 0 || chunked), strings.EqualFold(name, "transfer-encoding") && (length >= 0 || chunked || value != "chunked"):
			w.bad = "framing that says two things"
		case strings.EqualFold(name, "content-length"):
			n, err := strconv.Atoi(value)
			if length = n; err != nil || strconv.Itoa(n) != value {
				w.bad = fmt.Sprintf("a length %q", value)
			}
		case strings.EqualFold(name, "transfer-encoding"):
			chunked = true
		}
	}
	switch {
	case w.bad != "":
		return w, nil
	case chunked:
		return w, w.chunks(rest)
	case length > len(rest):
		w.body = rest
		return w, nil
	}
	length = max(length, 0)
	w.body, w.whole = rest[:length], true
	return w, rest[length:]
}

func (w *wire) chunks(b []byte) (rest []byte) {
	for {
		line, after, found := bytes.Cut(b, []byte("\r\n"))
		if !found {
			return nil
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			w.bad = fmt.Sprintf("a chunk size %q", line)
			return nil
		}
		if size == 0 {
			b = after
			break
		}
		if len(after) < int(size)+2 {
			return nil
		}
		w.body = append(w.body, after[:size]...)
		if string(after[size:size+2]) != "\r\n" {
			w.bad = "a chunk without its end"
			return nil
		}
		b = after[size+2:]
	}
	for {
		line, after, found := bytes.Cut(b, []byte("\r\n"))
		if !found {
			return nil
		}
		if b = after; len(line) == 0 {
			w.whole = true
			return b
		}
		w.trailers = append(w.trailers, string(line))
	}
}

// identity is who the app must be told is there.
type identity struct{ user, email, name, role string }

// lines are the five, sorted, for an app with a label.
func (id identity) lines(label string) []string {
	return []string{"X-Service-App: " + label, "X-Service-Email: " + id.email, "X-Service-Name: " + id.name, "X-Service-Role: " + id.role, "X-Service-User: " + id.user}
}

// ours says what is wrong with the identity among lines "Name: value", in any
// spelling an app could read as one of the five, or nothing.
func (id identity) ours(lines []string, label string) string {
	var got []string
	for _, line := range lines {
		if name, _, _ := strings.Cut(line, ":"); strings.HasPrefix(folded(name), "x-service-") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if want := id.lines(label); !slices.Equal(got, want) {
		return fmt.Sprintf("identity %q, not %q", got, want)
	}
	return ""
}

// folded is a field's name as CGI and its kin read it.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		}
		return '-'
	}, name)
}
