package mail

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

var invitationBodies = bodiesOf("invitation")

// App is an app as an invitation names it.
type App struct {
	Label string    // as the owner's computer says it: not trusted
	Name  string    // first label of its host, which stands in for an unusable Label
	Until time.Time // when it ends for them; zero for never
}

// Invitation is what the mail of an invitation says.
type Invitation struct {
	To    string // canonical address
	Owner string // canonical address of who invites, where answers go
	From  string // what they call themselves, to stand beside the address, or empty
	Line  string // what they wrote, or empty; checked by oneline.Line like From by Name
	Apps  []App  // at least one; the first is what the link opens
	Link  string
	Until time.Time // when the link ends
	End   time.Time // when the apps end for them; zero for never
	// Language is the owner's.
	Language words.Language
}

const (
	maxLabel = 60 // characters of a label in a mail
	maxNamed = 4  // labels in a mail; the rest are counted
)

// Message composes the mail.
func (i Invitation) Message() (Message, error) {
	if len(i.Apps) == 0 {
		return Message{}, fmt.Errorf("composing an invitation: no app is named")
	}
	// Whoever puts one in has checked both. This mail is ours, so it looks itself.
	from, err := oneline.Name(i.From)
	if err != nil {
		return Message{}, fmt.Errorf("composing an invitation: %w", err)
	}
	line, err := oneline.Line(i.Line)
	if err != nil {
		return Message{}, fmt.Errorf("composing an invitation: %w", err)
	}
	i.From, i.Line = from, line
	named := make([]string, len(i.Apps))
	for n, a := range i.Apps {
		if named[n] = safeLabel(a.Label); named[n] == "" {
			named[n] = a.Name
		}
	}
	shown := struct {
		Invitation
		Subject, First, Named, Day string
		Ends                       []ending
	}{
		Invitation: i, Ends: i.ends(named),
		Subject: i.Language.Say("%[1]s shares %[2]s with you", i.Who(), named[0]),
		First:   named[0], Named: i.Language.List(named, maxNamed),
		Day: i.Language.Day(i.Until.UTC()),
	}
	if !i.End.IsZero() && i.End.Before(i.Until) {
		shown.Day = i.Language.Day(i.End.UTC()) + i.End.UTC().Format(", 15:04 UTC")
	}
	text, html, err := invitationBodies(i.Language).write(shown)
	if err != nil {
		return Message{}, err
	}
	return Message{
		To: i.To, Subject: shown.Subject, ReplyTo: i.Owner,
		Text: text, HTML: html, Links: []string{i.Link},
	}, nil
}

// ending is when some of the apps end.
type ending struct{ Named, At string }

// ends are those of the apps, the first maxNamed of them.
func (i Invitation) ends(named []string) (all []ending) {
	at := map[time.Time][]string{}
	var order []time.Time
	for n, app := range i.Apps {
		end := app.Until.UTC()
		if end.IsZero() {
			continue
		}
		if at[end] == nil {
			order = append(order, end)
		}
		at[end] = append(at[end], named[n])
	}
	for _, end := range order[:min(len(order), maxNamed)] {
		all = append(all, ending{i.Language.List(at[end], maxNamed), i.Language.DayOfYear(end) + end.Format(", 15:04 UTC")})
	}
	return all
}

// Who is who invites: what they call themselves, and always the address.
func (i Invitation) Who() string {
	if i.From == "" {
		return i.Owner
	}
	return i.From + " (" + i.Owner + ")"
}

// safeLabel makes a label fit for a mail that this service answers for: one
// line without control and direction characters, without anything a mail program
// would turn into a link, at most maxLabel characters. It may leave nothing.
func safeLabel(label string) string {
	label = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case !unicode.IsPrint(r): // control, format (direction, joiners), unassigned
			return -1
		}
		return r
	}, strings.ToValidUTF8(label, ""))
	var kept []string
	for word := range strings.FieldsSeq(label) {
		if !looksLikeLink(word) {
			kept = append(kept, word)
		}
	}
	runes := []rune(strings.Join(kept, " "))
	if len(runes) > maxLabel {
		return strings.TrimRightFunc(string(runes[:maxLabel-1]), unicode.IsSpace) + "…"
	}
	return string(runes)
}

// looksLikeLink says whether a mail program might turn a word into a link: an
// address with a scheme or of a mailbox, a number of four parts, or a dot with a
// letter after it, as between a host and its domain.
func looksLikeLink(word string) bool {
	if strings.ContainsRune(word, '@') || schemePattern.MatchString(word) {
		return true
	}
	// The full-width and ideographic dots separate host labels, too (IDNA).
	parts := strings.FieldsFunc(word, func(r rune) bool { return r == '.' || r == '．' || r == '。' || r == '｡' })
	for i, part := range parts {
		r, _ := utf8.DecodeRuneInString(part)
		if i > 0 && (unicode.IsLetter(r) || i == 3) {
			return true
		}
	}
	return false
}

// schemePattern finds "https://", "mailto:x" and their like, not "Note:" or "10:30".
// Whatever stands before "://" counts as a scheme, also what is none by RFC 3986.
var schemePattern = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*:\S|://`)
