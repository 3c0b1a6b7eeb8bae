package oneline

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// longestLine is how long a line may be.
const longestLine = maxLine

func TestLinked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"The pictures from Lisbon are in. Have a look.",
		"Um 10:30 am 21.11.2026, z.B. im Garten, u.Ä.",
		"e.g. this, i.e. that, at 9 a.m. in the U.S.A.",
		"Version 1.2.3 costs 3.50", "Wow...und dann", "Wow…und dann", "Freu mich:)", "Look:", "PS: bring cake", "a/b",
		"meet @ 8", "@maya look", "照片好了。来看看吧。", "写真です。見てね", "やった。OK", "我们到了。公司很忙",
		"\U0001F469\u200d\U0001F467 ❤️", "می\u200cخواهم", "3:0", "1:1 chat", "50%.", ".hidden", "über: alles",
	} {
		if linked(text) {
			t.Errorf("%q is taken for a link", text)
		}
	}
	for _, text := range []string{
		"see https://evil.example", "HTTPS://EVIL", "写://x", "0://", "ftp:x", "mailto:a", "tel:+49", "javascript:alert(1)", "x:\\\\host",
		"evil.example", "(evil.example)", "go to evil.example/path.", "Evil.COM!", "evil.example:8080", "a.b.co.uk", "\"evil.io\"",
		"www.x", "WWW.example", "www.7",
		"bob@example.com", "bob@host", "bob＠example．com", "x@[192.0.2.1]",
		"evil。com", "evil．com", "evil｡com", "evil․com", "ｅｖｉｌ．ｃｏｍ", "evil。comだよ", "例え。みんな", "例子.中国", "例子。中国",
		"xn--e1afmkfd.xn--p1ai", "пример.рф", "müller.de", "e\u200cvil.\u200dcom", "evil.\ufe0fcom", "evil\u00ad.c\u00adom", "evil.c\u0332om",
		"192.0.2.1", "at 192.0.2.1:80", "(10.0.0.1)", "Lisbon.Have a look",
	} {
		if !linked(text) {
			t.Errorf("%q is not taken for a link", text)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "",
		"  Have a look. \u00a0":            "Have a look.",
		strings.Repeat("é", longestLine):   strings.Repeat("é", longestLine),
		"שלום, \U0001F469\u200d\U0001F467": "שלום, \U0001F469\u200d\U0001F467",
		"<b>&amp; \"quotes\"</b>":          "<b>&amp; \"quotes\"</b>",
	} {
		if got, err := Line(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for what, text := range map[string]string{
		"too long": strings.Repeat("é", longestLine+1), "two lines": "a\nb", "a carriage return": "a\r\nBcc: eve", "another line break": "a\u2028b",
		"NEL": "a\u0085b", "NUL": "a\x00b", "escape": "a\x1b[31mb", "a tab": "a\tb", "RLO": "a\u202eb", "RLI": "a\u2067b", "LRM": "a\u200eb", "ALM": "a\u061cb",
		"soft hyphen": "a\u00adb", "BOM": "a\ufeffb", "zero width space": "a\u200bb", "a tag": "a\U000e0041b", "private use": "a\ue000b",
		"not UTF-8": "a\xffb", "nothing to see": "\u200d\u200c", "only fillers": "\u3164\u3164", "a link": "see evil.example",
	} {
		if got, err := Line(text); err == nil || got != "" && what != "a link" || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "Maya", "Maya Müller-Okafor", "O'Neil", "מאיה", "李 雷", "Maya 🌻", "می\u200cنا", strings.Repeat("é", maxName)} {
		if got, err := Name(text); got != text || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for what, text := range map[string]string{
		"too long": strings.Repeat("é", maxName+1), "an @": "maya@home", "a lonely @": "@", "a wide @": "maya＠home", "a small @": "maya﹫home",
		"a dot": "Dr. Maya", "a wide dot": "a．b", "an ideographic dot": "a。b", "a narrow one": "a｡b", "a leader": "a․b", "three dots": "a…b",
		"a scheme": "https://localhost", "a header": "Maya\r\nBcc: eve", "bidi": "Maya\u202e", "control": "Ma\x07ya", "nothing": "\u200d",
	} {
		if got, err := Name(text); err == nil || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// What is accepted is one plain line whatever came in, and is accepted as it is when
// it comes again.
func FuzzLine(f *testing.F) {
	f.Add("Have a look.")
	f.Add("x\r\nBcc: a@b.example https://evil.example \u202e")
	f.Add("0://。.@:")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := Name(text)
		if err == nil && strings.ContainsAny(name, "@.") {
			t.Fatalf("%q became %q", text, name)
		}
		line, err := Line(text)
		if err != nil {
			return
		}
		if !utf8.ValidString(line) || utf8.RuneCountInString(line) > longestLine || strings.Contains(line, "://") ||
			strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Fatalf("%q became %q", text, line)
		}
		if again, err := Line(line); again != line || err != nil {
			t.Fatalf("%q became %q, %v", line, again, err)
		}
	})
}

// What another program calls itself cannot colour, move or reverse what a terminal shows.
func TestPrintable(t *testing.T) {
	t.Parallel()
	if got := Printable("a\x1b[31mb\u202ec\nd é 日"); got != "a[31mbcd é 日" {
		t.Errorf("%q", got)
	}
}
