package desktop

import (
	"fmt"
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
		return isolate(shorten(a.Label)) + " has changed"
	}
	return isolate(shorten(a.Label)) + " wants an address"
}

// askedBy tells that a program of another user asks; empty for the owner's own.
func askedBy(a agentapi.OwnerApp) string {
	if a.AskedBy == "" {
		return ""
	}
	return "Asked for by " + named(a.AskedBy) + ", another user."
}

// whoListens tells who would be reached: "port 8010: python3, run by maya".
func whoListens(a agentapi.OwnerApp) string {
	s := fmt.Sprintf("port %d", a.LocalPort)
	switch l := a.Listener; {
	case l.Program == "" && l.User == "":
		return s + ": no program seen there"
	case l.Program == "": // another user's, whose name the system hides
		return s + ": run by " + isolate(shorten(l.User))
	case l.User == "":
		return s + ": " + isolate(shorten(l.Program))
	default:
		return s + ": " + isolate(shorten(l.Program)) + ", run by " + isolate(shorten(l.User))
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
		return "Nothing was open."
	}
	took := fmt.Sprintf("%.1f s", float64(c.Milliseconds)/1000)
	if c.Milliseconds < 100 {
		took = "less than 0.1 s"
	}
	return count(c.Closed, "connection", "connections") + " closed, " + took + "."
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
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
