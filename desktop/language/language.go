// Package language is what menu, notifications and window say, in the owner's language:
// sentences, days, and the names of apps and people, cut to one line that nobody outside
// can turn around. It decides nothing.
package language

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// spoken is the language of the menu and the notifications: one for the process, as
// its locale is.
var spoken atomic.Pointer[words.Language]

// Speak chooses the language: what the owner prefers, a tag, or else the system's.
func Speak(preferred string) {
	l, ok := words.Named(preferred)
	if !ok {
		l = words.System()
	}
	spoken.Store(&l)
}

// Spoken is the one chosen; English before.
func Spoken() words.Language {
	if l := spoken.Load(); l != nil {
		return *l
	}
	return words.English
}

// Say says a sentence to the owner.
func Say(sentence string, args ...any) string { return Spoken().Say(sentence, args...) }

// Count says a sentence about n of something; see words.Language.Count.
func Count(n int, one, many string, more ...any) string {
	return Spoken().Count(n, one, many, more...)
}

// InWords is a state with what the agent says in the language of the screen: menu,
// notifications and window show it as it is here.
func InWords(s agentapi.OwnerState) agentapi.OwnerState {
	l := Spoken()
	if l == words.English {
		return s
	}
	s.Trouble = tellText(l, s.TroubleWords, s.Trouble)
	if c := s.Connecting; c != nil {
		in := *c
		in.Problem = tellText(l, c.Words, c.Problem)
		s.Connecting = &in
	}
	if u := s.Update; u != nil {
		in := *u
		in.Problem = tellText(l, u.Words, u.Problem)
		s.Update = &in
	}
	s.Notices = slices.Clone(s.Notices)
	for i, n := range s.Notices {
		s.Notices[i].Text = tellText(l, n.Words, n.Text)
	}
	s.Apps = slices.Clone(s.Apps)
	for i, app := range s.Apps {
		s.Apps[i].Ailment = l.Tell(words.Plain(app.Ailment))
		s.Apps[i].HealthDetail = tellText(l, app.HealthWords, app.HealthDetail)
		s.Apps[i].NetworkDetail = tellText(l, app.NetworkWords, app.NetworkDetail)
		if last := app.LastError; last != nil {
			in := *last
			in.Text = tellText(l, last.Words, last.Text)
			s.Apps[i].LastError = &in
		}
		if c := app.Certificate; c != nil {
			in := *c
			in.Problem = tellText(l, c.Words, c.Problem)
			s.Apps[i].Certificate = &in
		}
	}
	return s
}

// ErrorInWords is an error in the language of the screen: a refusal of the agent, or a
// sentence of the desktop's own.
func ErrorInWords(err error) error {
	if err == nil || Spoken() == words.English {
		return err
	}
	if refusal, ok := errors.AsType[*agentapi.Error](err); ok {
		in := *refusal
		in.Message = Spoken().Or(refusal.Words, refusal.Message)
		return &in
	}
	return inItsWords{Spoken().Or(words.InWords(err), err.Error()), err}
}

// inItsWords is an error as the screen says it.
type inItsWords struct {
	text string
	error
}

func (s inItsWords) Error() string { return Sentence(errors.New(s.text)) }

func (s inItsWords) Unwrap() error { return s.error }

// tellText says a text where the language has words for all of it, and the English
// otherwise.
func tellText(l words.Language, t words.Text, english string) string {
	if len(t) == 0 {
		return l.Or(words.Sentence{}, english)
	}
	said := make([]string, len(t))
	for i, s := range t {
		if said[i] = l.Or(s, ""); said[i] == "" {
			return english
		}
	}
	return strings.Join(said, " ")
}

// wordsOf is what a field is called that has the words of another: text and textWords.
const wordsOf = "Words"

// mayTell says whether an answer may hold a sentence.
func mayTell(raw string) bool {
	return strings.Contains(raw, wordsOf+`"`) || slices.ContainsFunc(sentences, func(name string) bool { return strings.Contains(raw, `"`+name+`"`) })
}

// AnswerInWords is an answer of the agent with each text that came with its words said in
// the language of the screen.
func AnswerInWords(raw json.RawMessage) json.RawMessage {
	if Spoken() == words.English || !mayTell(string(raw)) {
		return raw
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var all any
	if decoder.Decode(&all) != nil {
		return raw
	}
	tellWithin(Spoken(), all)
	out, err := json.Marshal(all)
	if err != nil {
		return raw
	}
	return out
}

// sentences are the fields that have a sentence without its words beside it, where it is
// one without arguments: what ailed an app, or what the server refused.
var sentences = []string{"error", "problem"}

func tellWithin(l words.Language, value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			tellWithin(l, each)
		}
	case map[string]any:
		for name, each := range value {
			if text, ok := each.(string); ok && slices.Contains(sentences, name) && value[name+wordsOf] == nil {
				value[name] = l.Or(words.Sentence{}, text)
			}
			english, isText := value[strings.TrimSuffix(name, wordsOf)].(string)
			if !strings.HasSuffix(name, wordsOf) || !isText {
				tellWithin(l, each)
				continue
			}
			raw, err := json.Marshal(each)
			var text words.Text
			if err == nil && json.Unmarshal(raw, &text) == nil {
				value[strings.TrimSuffix(name, wordsOf)] = tellText(l, text, english)
			}
		}
	}
}
