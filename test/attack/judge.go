//go:build linux

package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// trial is what a back end was attacked with, by the targets of its requests.
type trial struct {
	who      identity
	mark     string            // in every forged value; no app may see it in a field
	what     map[string]string // every target that may come, and the attack it is of
	tried    int               // attacks that were carried out
	accepted map[string]bool   // targets that were answered with 200
}

func newTrial(who identity, mark string) *trial {
	return &trial{who: who, mark: mark, what: map[string]string{"/": "signing in", "/hello": "signing in"}, accepted: map[string]bool{}}
}

// judge ends a back end and holds what it was sent, byte for byte, and what it
// understood against what it should have been told.
func (tr *trial) judge(b *backend, t *tally) error {
	understood, err := b.understood()
	if err != nil {
		return err
	}
	label := "App " + b.name
	bodies := map[string][]string{} // as sent, by target
	for _, w := range b.tap.messages() {
		if wrong := tr.wrongOnTheWire(w, label); wrong != "" {
			t.got("%s, %s: was sent %s", tr.describe(w.target), b.name, wrong)
		}
		if w.whole {
			target := "/" + strings.TrimLeft(w.target, "/") // as Python reads it
			bodies[target] = append(bodies[target], hex.EncodeToString(w.body))
		}
	}
	times := map[string]int{}
	for _, s := range understood {
		times[s.Target]++
		if wrong := tr.wrongInTheApp(s, label); wrong != "" {
			t.got("%s, %s: understood %s", tr.describe(s.Target), b.name, wrong)
		}
		if !slices.Contains(bodies["/"+strings.TrimLeft(s.Target, "/")], s.Body) {
			t.got("%s, %s: understood a body of %d bytes that was not sent to it", tr.describe(s.Target), b.name, len(s.Body)/2)
		}
	}
	for target := range tr.accepted {
		if times[target] != 1 {
			t.got("%s, %s: answered with 200, and the app saw it %d times", tr.describe(target), b.name, times[target])
		}
	}
	return nil
}

func (tr *trial) describe(target string) string {
	if what, ok := tr.what[target]; ok {
		return target + " " + what
	}
	return fmt.Sprintf("%.60q, which nobody asked for", target)
}

func (tr *trial) wrongOnTheWire(w wire, label string) string {
	switch {
	case w.bad != "":
		return w.bad
	case w.target == "": // not even a head
		return ""
	case tr.what[w.target] == "":
		return fmt.Sprintf("%.200q", w.method+" "+w.target)
	case !w.whole && len(w.fields) == 0:
		return ""
	}
	for _, line := range slices.Concat(w.fields, w.trailers) {
		if strings.Contains(line, tr.mark) {
			return fmt.Sprintf("%.100q", line)
		}
	}
	return tr.who.ours(slices.Concat(w.fields, w.trailers), label)
}

// wrongInTheApp is the same for what an app understood, in which a field may
// come up under several names.
func (tr *trial) wrongInTheApp(s seen, label string) string {
	if tr.what[s.Target] == "" {
		return fmt.Sprintf("%.200q", s.Method+" "+s.Target)
	}
	var lines []string
	for _, field := range slices.Concat(s.Fields, s.Trailers) {
		if strings.Contains(field[0], tr.mark) || strings.Contains(field[1], tr.mark) {
			return fmt.Sprintf("%.100q", field)
		}
		name := strings.TrimPrefix(folded(field[0]), "http-") // $_SERVER of PHP
		for _, known := range tr.who.lines(label) {
			if own, _, _ := strings.Cut(known, ":"); name == folded(own) {
				name = own
			}
		}
		if line := name + ": " + field[1]; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return tr.who.ours(lines, label)
}
