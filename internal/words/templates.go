package words

import (
	"html/template"
	"sync"
	"time"
)

// InEach has make called for a language when something is first said in it: most
// processes never say what they have templates for, or say it in one language.
func InEach[T any](make func(Language) T) func(Language) T {
	made := map[Language]func() T{}
	for _, l := range append(All(), Pseudo) {
		made[l] = sync.OnceValue(func() T { return make(l) })
	}
	return func(l Language) T { return made[l]() }
}

// Funcs are what templates say sentences with, one set for each language:
//
//	{{say "Leave %s?" .Host}}           text, escaped like any other
//	{{rich "Leave <b>%s</b>?" .Host}}   the sentence's own marks stand; what is put in is escaped
//	{{count .N "%d app" "%d apps"}}     one or many
//	{{list .Labels 5}}                  what a rich sentence names, the rest counted
//	{{time .At "5 May, 15:04 UTC"}}     what a rich sentence says of a time; zero for the words alone
//	{{language}}                        for <html lang>
func (l Language) Funcs() template.FuncMap {
	return template.FuncMap{
		"say":      l.Say,
		"rich":     l.rich,
		"count":    l.Count,
		"tell":     l.Tell,
		"tellAll":  l.TellAll,
		"language": l.Tag,
		"list":     l.bold,
		"time":     timed("<time"),
		"since":    timed("<time data-since"),
	}
}

// bold names at most so many labels of other programs, each of them bold and with its
// own direction.
func (l Language) bold(labels []string, most int) template.HTML {
	shown := make([]string, min(len(labels), most))
	for i := range shown {
		shown[i] = `<b><bdi dir="auto">` + template.HTMLEscapeString(labels[i]) + `</bdi></b>`
	}
	if rest := len(labels) - most; rest > 0 {
		shown = append(shown, l.Count(rest, "%d more", "%d more"))
	}
	return template.HTML(l.And(shown...))
}

// timed are times in words, which a script can say in the reader's own time: an end, which
// may be that of a whole day, or since when something is, which never is.
func timed(tag string) func(at time.Time, said string) template.HTML {
	return func(at time.Time, said string) template.HTML {
		text := template.HTMLEscapeString(said)
		if !at.IsZero() {
			text = tag + ` datetime="` + at.UTC().Format(time.RFC3339) + `">` + text + `</time>`
		}
		return template.HTML(text)
	}
}

// rich says a sentence that has marks of HTML in it, in the place of text. The sentence
// is a constant of a template or of a dictionary; a test holds that its marks are the
// few harmless ones and the same in each language. Whatever is put in is escaped here.
func (l Language) rich(sentence string, args ...any) template.HTML {
	escaped := make([]any, len(args))
	for i, arg := range args {
		switch said := l.inWords(arg).(type) {
		case int:
			escaped[i] = said
		case template.HTML: // said by rich
			escaped[i] = said
		default:
			escaped[i] = template.HTMLEscaper(said)
		}
	}
	return template.HTML(l.Say(sentence, escaped...))
}
