package words

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

// Language is one that sentences can be said in. The zero Language is English.
type Language struct{ tag string }

// The languages there are. Pseudo is English with accents, brackets and more
// letters: what stands outside of its brackets was never said through this package,
// and what breaks at its length will break in some language.
var (
	English = Language{}
	German  = Language{"de"}
	Pseudo  = Language{"en-XA"}
)

// dictionaries has the sentences of each language, by the English ones; those of a
// room are in a file of their own.
var dictionaries = map[Language][]map[string]string{
	German: {germanCommon, germanPages, germanRefusals, germanInvitations, germanKnock, germanPasskeys, germanProviders, germanAdmin, germanGroups, germanDomains, germanProxy, germanMails, germanAgent, germanDesktop, germanDoctor, germanErrors, germanOwner, germanLoopback, germanStart},
}

// All are the languages that people can choose, English first.
func All() []Language { return []Language{English, German} }

// Tag is the language's BCP 47 tag, as <html lang> has it.
func (l Language) Tag() string {
	if l.tag == "" {
		return "en"
	}
	return l.tag
}

// Name is what the language calls itself.
func (l Language) Name() string {
	switch l {
	case German:
		return "Deutsch"
	case Pseudo:
		return "[Þšéûðö]"
	}
	return "English"
}

// Say says a sentence. Arguments stand in it by fmt's verbs, in another order by
// %[2]s. %d writes a number the way the language does (8,010 or 8.010), so ports,
// ids and years are strings.
func (l Language) Say(sentence string, args ...any) string {
	said := make([]any, len(args))
	for i, arg := range args {
		said[i] = l.inWords(arg)
	}
	if l == Pseudo {
		sentence = pseudo(sentence)
	}
	return printers()[l].Sprintf(sentence, said...)
}

// Count says a sentence about n of something, one or many of it. n is the first of
// the arguments.
func (l Language) Count(n int, one, many string, more ...any) string {
	if n == 1 {
		many = one
	}
	return l.Say(many, append([]any{n}, more...)...)
}

// Tenths is a number with one digit behind the point, or the comma.
func (l Language) Tenths(n float64) string { return printers()[l].Sprintf("%.1f", n) }

// Day is a day in words: "2 January".
func (l Language) Day(t time.Time) string {
	return l.Say("%[1]s %[2]s", fmt.Sprint(t.Day()), l.month(t))
}

// DayOfYear is a day in words, with its year: "2 January 2026".
func (l Language) DayOfYear(t time.Time) string {
	return l.Day(t) + " " + fmt.Sprint(t.Year())
}

func (l Language) month(t time.Time) string { return l.Say(t.Month().String()) }

// printers has what writes each language. They are made when the first sentence is
// said, not when the program starts.
var printers = sync.OnceValue(func() map[Language]*message.Printer {
	all := catalog.NewBuilder()
	made := map[Language]*message.Printer{}
	for _, l := range []Language{English, German, Pseudo} {
		tag := language.MustParse(l.Tag())
		for key, said := range known()[l] {
			if err := all.SetString(tag, key, said); err != nil {
				panic(fmt.Sprintf("words: %q cannot be said: %v", key, err)) // a test says every one
			}
		}
		made[l] = message.NewPrinter(tag, message.Catalog(all))
	}
	return made
})

// known has all that each language says, by the English sentences.
var known = sync.OnceValue(func() map[Language]map[string]string {
	out := map[Language]map[string]string{}
	for l, parts := range dictionaries {
		out[l] = map[string]string{}
		for _, part := range parts {
			maps.Copy(out[l], part)
		}
	}
	return out
})

// Named is the language that a tag or the name of a locale means ("de", "de-AT",
// "de_DE.UTF-8"), and whether there is one.
func Named(name string) (Language, bool) {
	name, _, _ = strings.Cut(name, ".")
	name, _, _ = strings.Cut(name, "@")
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	for _, l := range append(All(), Pseudo) {
		if strings.EqualFold(name, l.Tag()) {
			return l, true
		}
	}
	base, _, _ := strings.Cut(name, "-")
	for _, l := range All() {
		if base == l.Tag() {
			return l, true
		}
	}
	return English, false
}
