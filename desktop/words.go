package desktop

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
)

// maxWords is the longest text of a menu line, in characters.
const maxWords = 48

// wants is the title of a request, in the menu and in a notification. One that was
// approved before has an address; what it wants is another yes.
func wants(a agentapi.OwnerApp) string {
	if a.AsksAgain() {
		return say("%s has changed", named(a.Label))
	}
	return say("%s wants an address", named(a.Label))
}

// askedBy tells that a program of another user asks; empty for the owner's own.
func askedBy(a agentapi.OwnerApp) string {
	if a.AskedBy == "" {
		return ""
	}
	return say("Asked for by %s, another user.", named(a.AskedBy))
}

// whoListens tells who would be reached: "port 8010: python3, run by maya".
func whoListens(a agentapi.OwnerApp) string {
	port := strconv.Itoa(a.LocalPort)
	switch l := a.Listener; {
	case l.Program == "" && l.User == "":
		return say("port %s: no program seen there", port)
	case l.Program == "": // another user's, whose name the system hides
		return say("port %[1]s: run by %[2]s", port, named(l.User))
	case l.User == "":
		return say("port %[1]s: %[2]s", port, named(l.Program))
	default:
		return say("port %[1]s: %[2]s, run by %[3]s", port, named(l.Program), named(l.User))
	}
}

// named is a name from elsewhere, fit to stand in a sentence.
func named(s string) string { return isolate(shorten(s)) }

// hostOf is the address an app has, or would have.
func hostOf(a agentapi.OwnerApp, rootHost string) string {
	if a.Host != "" {
		return a.Host
	}
	if rootHost == "" {
		return a.Name
	}
	return a.Name + "." + rootHost
}

// closedWords tells what an end of access closed: "3 connections closed, 0.4 s."
func closedWords(c agentapi.Closed) string {
	if c.Closed == 0 {
		return say("Nothing was open.")
	}
	if c.Milliseconds < 100 {
		return sayCount(c.Closed, "%[1]d connection closed, less than %[2]s s.", "%[1]d connections closed, less than %[2]s s.", language().Tenths(0.1))
	}
	return sayCount(c.Closed, "%[1]d connection closed, %[2]s s.", "%[1]d connections closed, %[2]s s.", language().Tenths(float64(c.Milliseconds)/1000))
}

// shorten makes one printable line of at most maxWords characters. Labels and
// program names come from other programs, addresses and clients' names from a
// control plane; the agent has looked at most of them. None may reverse the
// words around it, also where the agent let it through.
func shorten(s string) string { return shortenTo(s, maxWords) }

func shortenTo(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		return strings.TrimRightFunc(string(r[:most-1]), unicode.IsSpace) + "…"
	}
	return s
}

// wrap breaks a text into lines of at most maxWords characters, each sentence on
// a line of its own; there is at least one.
func wrap(text string) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		joined := strings.TrimPrefix(*last+" "+word, " ")
		if *last == "" || !strings.HasSuffix(*last, ".") && len([]rune(joined)) <= maxWords {
			*last = joined
		} else {
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = shorten(lines[i])
	}
	return lines
}

// isolate keeps the letters of a right-to-left label from reordering the words
// around it. GTK takes a line's direction from its first letter, isolated or not;
// the mark in front is that letter.
func isolate(s string) string {
	for _, r := range s {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
			return "\u200e\u2068" + s + "\u2069"
		}
	}
	return s
}

func upperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}
