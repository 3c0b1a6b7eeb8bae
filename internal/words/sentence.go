package words

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sentence is one that is said later, where the language is known: its English
// format and its arguments. It travels beside the English text it makes. An argument
// is a string, a number, another Sentence, Names or a Day.
type Sentence struct {
	Key  string `json:"key"`
	Args []any  `json:"args,omitempty"`
}

// Names are what a sentence names, joined as its language joins them. More says how
// many are not shown.
type Names struct {
	Names []string `json:"names"`
	More  int      `json:"more,omitempty"`
}

// ListOf is Names of which at most so many items are shown: the last counts the rest.
func ListOf(names []string, most int) Names {
	if rest := len(names) - most; rest > 0 {
		return Names{slices.Clone(names[:most-1]), rest + 1}
	}
	return Names{Names: names}
}

// Day is a time of which a sentence tells the day.
type Day struct {
	Day  time.Time `json:"day"`
	Year bool      `json:"year,omitempty"` // says that, too
}

// Of is a sentence to be said later.
func Of(key string, args ...any) Sentence { return Sentence{key, args} }

// Counted is a sentence about n of something, one or many of it, to be said later. n
// is the first of its arguments.
func Counted(n int, one, many string, more ...any) Sentence {
	if n == 1 {
		many = one
	}
	return Sentence{many, append([]any{n}, more...)}
}

// Plain is a text that may be a sentence of ours without arguments, or anybody's.
func Plain(text string) Sentence { return Sentence{Key: strings.ReplaceAll(text, "%", "%%")} }

// String is the sentence in English.
func (s Sentence) String() string { return English.Tell(s) }

// IsZero says whether there is nothing to say.
func (s Sentence) IsZero() bool { return s.Key == "" }

// Tell says a sentence that was made before.
func (l Language) Tell(s Sentence) string {
	if s.Key == "" {
		return ""
	}
	return l.Say(s.Key, append([]any(nil), s.Args...)...)
}

// Text is sentences that stand one after the other.
type Text []Sentence

// String is the text in English.
func (t Text) String() string { return English.TellAll(t) }

// TellAll says sentences one after the other.
func (l Language) TellAll(t Text) string {
	said := make([]string, 0, len(t))
	for _, s := range t {
		if text := l.Tell(s); text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, " ")
}

// inWords is an argument as the language has it.
func (l Language) inWords(arg any) any {
	switch arg := arg.(type) {
	case Sentence:
		return l.Tell(arg)
	case Text:
		return l.TellAll(arg)
	case Names:
		return l.list(arg)
	case Day:
		if arg.Year {
			return l.DayOfYear(arg.Day)
		}
		return l.Day(arg.Day)
	}
	return arg
}

// UnmarshalJSON reads a sentence as it travels. What has another shape is refused:
// it would be said wrongly.
func (s *Sentence) UnmarshalJSON(raw []byte) error {
	var wire struct {
		Key  string            `json:"key"`
		Args []json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	out := Sentence{Key: wire.Key}
	for _, raw := range wire.Args {
		arg, err := argument(raw)
		if err != nil {
			return err
		}
		out.Args = append(out.Args, arg)
	}
	*s = out
	return nil
}

func argument(raw json.RawMessage) (any, error) {
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, err
	}
	switch v := plain.(type) {
	case string:
		return v, nil
	case float64:
		if v == math.Trunc(v) {
			return int(v), nil
		}
		return v, nil
	case map[string]any:
		return named(raw, v)
	}
	return nil, fmt.Errorf("an argument of a sentence is %.40q", raw)
}

func named(raw json.RawMessage, fields map[string]any) (any, error) {
	switch {
	case fields["key"] != nil:
		var s Sentence
		err := json.Unmarshal(raw, &s)
		return s, err
	case fields["names"] != nil:
		var n Names
		err := json.Unmarshal(raw, &n)
		return n, err
	case fields["day"] != nil:
		var d Day
		err := json.Unmarshal(raw, &d)
		return d, err
	}
	return nil, fmt.Errorf("an argument of a sentence is %.40q", raw)
}

// Or says a sentence that came from elsewhere, or in its place the English text that
// came with it, where the language has no words for it: what others send is never a
// format.
func (l Language) Or(s Sentence, english string) string {
	if s.IsZero() {
		s = Plain(english)
	}
	switch {
	case l == English:
		return english
	case l.knows(s):
		return l.Tell(s)
	}
	return l.reason(english)
}

// reason is a clause for why something failed, said as a sentence: other sentences have
// it within them. What was seen may stand in brackets behind it.
func (l Language) reason(english string) string {
	clause, end := strings.CutSuffix(english, ".")
	seen := ""
	if bracket := strings.Index(clause, " ("); bracket > 0 && strings.HasSuffix(clause, ")") {
		clause, seen = clause[:bracket], clause[bracket:]
	}
	first, size := utf8.DecodeRuneInString(clause)
	s := Plain(string(unicode.ToLower(first)) + clause[size:])
	if !end || !l.knows(s) {
		return english
	}
	said := l.Tell(s)
	first, size = utf8.DecodeRuneInString(said)
	return string(unicode.ToUpper(first)) + said[size:] + seen + "."
}

// knows says whether the language has words for a sentence and for those within it.
func (l Language) knows(s Sentence) bool {
	if l == Pseudo {
		l = German // which has all there are
	}
	if _, ok := known()[l][s.Key]; !ok && strings.ContainsFunc(printed.ReplaceAllString(s.Key, ""), unicode.IsLetter) {
		return false
	}
	for _, arg := range s.Args {
		if within, ok := arg.(Sentence); ok && !l.knows(within) {
			return false
		}
	}
	return true
}
