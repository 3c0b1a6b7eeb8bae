package desktop

import (
	"sync/atomic"

	"porchlight/desktop/ui"
	"porchlight/internal/words"
)

// spoken is the language of the menu and the notifications: one for the process, as
// its locale is.
var spoken atomic.Pointer[words.Language]

// speak chooses the language: what the owner prefers, a tag, or else the system's.
func speak(preferred string) {
	l, ok := words.Named(preferred)
	if !ok {
		l = words.System()
	}
	spoken.Store(&l)
}

// language is the one chosen; English before.
func language() words.Language {
	if l := spoken.Load(); l != nil {
		return *l
	}
	return words.English
}

// say says a sentence to the owner.
func say(sentence string, args ...any) string { return language().Say(sentence, args...) }

// sayCount says a sentence about n of something; see words.Language.Count.
func sayCount(n int, one, many string, more ...any) string {
	return language().Count(n, one, many, more...)
}

// speech is what the window speaks: the same.
func speech() ui.Speech { return ui.Speech{Language: language().Tag(), Locale: words.Locale()} }
