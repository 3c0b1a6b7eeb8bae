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
	if Spoken() == words.English {
		return s
	}
	var in agentapi.OwnerState
	raw, err := json.Marshal(s)
	if err != nil || json.Unmarshal(AnswerInWords(raw), &in) != nil {
		return s
	}
	return in
}

// Sentence is an error as the screen says it: a refusal of the agent, or what was written
// as a sentence or part of one.
func Sentence(err error) string {
	said, english := words.InWords(err), err.Error()
	if refusal, ok := errors.AsType[*agentapi.Error](err); ok && Spoken() != words.English {
		said, english = refusal.Words, refusal.Message
	}
	text := UpperFirst(Spoken().Or(said, english))
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}

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
// one without arguments: what ails an app, or what the server refused.
var sentences = []string{"error", "problem", "ailment"}

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
