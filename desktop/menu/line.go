package menu

import (
	"slices"

	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// How many of a kind the menu lists before "and N more…".
const (
	maxRequests = 5 // of apps, of people who knock, and of other users
	maxAsking   = 2 // other users of the computer, in the places of requests
	maxHere     = 5
	maxApps     = 15
	maxTicks    = 15 // of people who may or might open an app
	maxClients  = 10

	// maxTrouble is how many lines what is wrong may fill, below the status.
	maxTrouble = 3
)

// Menu is everything the tray shows, drawn from one picture. The tray can
// append lines and hide them, but not move a separator. So a place in a menu is
// a separator always or never: everything that may be absent has a place, with
// no text while it is, and only what comes last in its menu may vary in number.
// For the same reason what is often absent stands between no separators of its own.
type Menu struct {
	Icon  string
	Tip   string // what the icon says when it is pointed at
	Lines []Line
}

// Line is one line of the menu: hidden where it has no text, greyed where it has
// neither an action nor lines below it.
type Line struct {
	Text string
	Do   verbs.Action
	Mark Mark
	Sub  []Line // not nil, if empty, where lines may come to be below it
	Rule bool   // a separator
}

// Mark is the tick of a line that is on or off.
type Mark int

const (
	NoMark Mark = iota
	markOff
	MarkOn
)

// marked is the mark of what is on, or off.
func marked(on bool) Mark {
	if on {
		return MarkOn
	}
	return markOff
}

var separator = Line{Rule: true}

// maxAbout is how many lines tell what is asked for.
const maxAbout = 12

// question is the submenu of whatever waits for the owner: what it is, up to four
// answers, and a last line. All have this shape, because they take each other's places.
func question(title string, about []string, answers [4]Line, last Line) Line {
	sub := make([]Line, maxAbout, maxAbout+7)
	for i := range min(len(about), maxAbout) {
		sub[i].Text = about[i]
	}
	return Line{Text: title, Sub: append(sub, separator, answers[0], answers[1], answers[2], answers[3], separator, last)}
}

// confirmed asks once, without a window: the consequence, then the yes.
func confirmed(title, yes string, do verbs.Action, consequence ...string) Line {
	l := Line{Text: title}
	for _, c := range consequence {
		l.Sub = append(l.Sub, Line{Text: c})
	}
	l.Sub = append(l.Sub, separator, Line{Text: yes, Do: do})
	return l
}

// more is the line after those listed, or none.
func more(n int, view string) Line {
	if n <= 0 {
		return Line{}
	}
	return Line{Text: language.Say("and %d more…", n), Do: verbs.Action{Verb: verbs.Show, View: view}}
}

// padded keeps the places of what is not there.
func padded(lines []Line, places int) []Line {
	lines = slices.Clip(lines)
	for len(lines) < places {
		lines = append(lines, Line{Sub: []Line{}})
	}
	return lines
}
