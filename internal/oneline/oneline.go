// Package oneline judges what one person writes and another is shown in a mail or on
// a page of ours: one line of plain text in which nothing turns into a link and
// nothing changes the direction of what stands beside it. It decides about text
// alone, and changes nothing of it but the white space. What was not judged goes through
// Printable before a terminal shows it.
package oneline

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"

	"porchlight/internal/words"
)

// How long things may be, in characters.
const (
	maxLine = 200
	maxName = 60
)

// Line is a line that somebody wrote, without white space around it; empty is fine. It
// refuses, with a sentence for whoever wrote it, what is longer than maxLine, is not
// one line of plain text, or holds what a mail program would turn into a link.
func Line(text string) (string, error) {
	text, err := plain(words.Of("line"), text, maxLine)
	if err == nil && linked(text) {
		err = words.Errorf("The line holds a web or mail address, or what a mail program takes for one. Leave it out; a full stop inside a sentence needs a space after it.")
	}
	return text, err
}

// Name is what somebody calls themselves, without white space around it; empty is
// fine. Beyond what Line refuses it holds no @ and no dot, so that it cannot pass for
// an address.
func Name(text string) (string, error) {
	text, err := plain(words.Of("name"), text, maxName)
	switch bare := visible(text); {
	case err != nil:
	case strings.ContainsFunc(bare, func(r rune) bool { return r == '@' || isDot(r) }):
		err = words.Errorf("The name can hold neither an @ nor a dot: it stands beside the mail address and must not look like one.")
	case linked(text):
		err = words.Errorf("The name must not look like a web address.")
	}
	return text, err
}

// Printable drops what could steer a terminal: labels come from other programs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// plain is one line of at most so many characters that people can see.
func plain(what words.Sentence, text string, most int) (string, error) {
	if !utf8.ValidString(text) {
		return "", words.Errorf("The %s is not valid text.", what)
	}
	text = strings.TrimFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || unicode.Is(unicode.Zs, r) })
	for _, r := range text {
		switch {
		case breaks(r):
			return "", words.Errorf("The %s has to be one line.", what)
		case joins(r) || unicode.IsGraphic(r): // letters, marks, numbers, punctuation, symbols, spaces
		default:
			return "", words.Errorf("The %s holds a character that cannot be seen, or that changes the direction of writing. Type it anew.", what)
		}
	}
	if n := utf8.RuneCountInString(text); n > most {
		return "", words.Errorf("The %s can have %d characters, and this one has %d.", what, most, n)
	}
	if text != "" && strings.TrimSpace(visible(text)) == "" {
		return "", words.Errorf("The %s shows nothing.", what)
	}
	return text, nil
}

// breaks says whether a new line begins after a character.
func breaks(r rune) bool {
	return strings.ContainsRune("\n\r\v\f\u0085", r) || unicode.In(r, unicode.Zl, unicode.Zp)
}

// joins says whether a character is one of the two that writing in many languages,
// and some pictures of people, need between letters.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// visible is text as a reader takes it: without what is not drawn, and with the wide
// and narrow forms of a character made one.
func visible(text string) string {
	bare := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, text)
	return norm.NFKC.String(bare)
}

// isDot says whether a character separates the labels of a host (RFC 3490, section
// 3.1). Its wide and narrow forms are one of these after visible.
func isDot(r rune) bool { return r == '.' || r == '。' }

// linked says whether a mail program might turn some of a text into a link: what
// begins with a scheme, a mailbox, a host with a top-level domain, a number of four
// parts. It would rather say so once too often, but lets "10:30", "1.5", "z.B." and
// sentences in languages without spaces be.
func linked(text string) bool {
	for word := range strings.FieldsSeq(visible(text)) {
		runes := []rune(word)
		for i, r := range runes {
			before, after := runes[:i], runes[i+1:]
			switch {
			case r == '@' && len(before) > 0 && len(after) > 0,
				r == ':' && scheme(before, after),
				isDot(r) && host(r, before, after):
				return true
			}
		}
	}
	return false
}

// scheme says whether a colon ends the scheme of an address. Whatever stands before
// "://" counts as one, also what is none by RFC 3986.
func scheme(before, after []rune) bool {
	if len(after) >= 2 && after[0] == '/' && after[1] == '/' {
		return true
	}
	named := len(before) > 0 && strings.ContainsFunc(string(before), isASCIILetter) && isASCII(before[len(before)-1])
	return named && len(after) > 0 && (unicode.IsLetter(after[0]) || unicode.IsDigit(after[0]) || strings.ContainsRune(`/\+?#%`, after[0]))
}

// host says whether a dot stands between a host's labels.
func host(dot rune, before, after []rune) bool {
	if len(before) == 0 || len(after) == 0 || !inLabel(before[len(before)-1]) {
		return false
	}
	label := leading(after, inLabel)
	if strings.EqualFold(string(trailing(before, inLabel)), "www") && len(label) > 0 {
		return true
	}
	if dot != '.' {
		// It ends sentences, too, and no space follows it then.
		return topLevel(label) || topLevel(leading(label, isASCIILabel))
	}
	letters := 0
	for _, r := range label {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 2 && !unicode.IsDigit(label[0]) || fourNumbers(before, after)
}

// topLevel says whether a label is a top-level domain.
func topLevel(label []rune) bool {
	ascii, err := idna.ToASCII(strings.ToLower(string(label)))
	if err != nil || ascii == "" {
		return false
	}
	_, icann := publicsuffix.PublicSuffix("x." + ascii)
	return icann
}

// fourNumbers says whether the last dot of an IPv4 address was found.
func fourNumbers(before, after []rune) bool {
	if !unicode.IsDigit(after[0]) {
		return false
	}
	parts := strings.Split(string(before), ".")
	if len(parts) < 3 {
		return false
	}
	for i, part := range parts[len(parts)-3:] {
		if i == 0 {
			part = string(trailing([]rune(part), unicode.IsDigit))
		}
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsDigit(r) }) {
			return false
		}
	}
	return true
}

func inLabel(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == '-' || r == '_'
}

func isASCII(r rune) bool       { return r < utf8.RuneSelf }
func isASCIILetter(r rune) bool { return isASCII(r) && unicode.IsLetter(r) }
func isASCIILabel(r rune) bool  { return isASCII(r) && inLabel(r) }
func leading(text []rune, in func(rune) bool) []rune {
	n := 0
	for n < len(text) && in(text[n]) {
		n++
	}
	return text[:n]
}

func trailing(text []rune, in func(rune) bool) []rune {
	n := len(text)
	for n > 0 && in(text[n-1]) {
		n--
	}
	return text[n:]
}
