package words_test

import (
	"encoding/json"
	"html/template"
	"strings"
	"testing"
	"time"

	"porchlight/internal/words"
	"porchlight/test/programs"
)

func TestSay(t *testing.T) {
	t.Parallel()
	morning := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{words.English.And("Notes", "Photos", "Wiki"), "Notes, Photos and Wiki"},
		{words.German.And("Notes", "Photos", "Wiki"), "Notes, Photos und Wiki"},
		{words.German.List([]string{"A", "B", "C", "D"}, 3), "A, B und 2 weitere"},
		{words.English.Day(morning), "28 November"},
		{words.German.Day(morning), "28. November"},
		{words.German.DayOfYear(morning), "28. November 2026"},
		{words.Language{}.Say("No such sentence of %s.", "ours"), "No such sentence of ours."},
		{words.German.Say("No such sentence of %s.", "ours"), "No such sentence of ours."},
		{words.English.Say("%d apps, on port %s", 8010, "8010"), "8,010 apps, on port 8010"},
		{words.German.Say("%d apps, on port %s", 8010, "8010"), "8.010 apps, on port 8010"},
		{words.English.Count(1, "%d app", "%d apps"), "1 app"},
		{words.English.Count(2, "%d app", "%d apps"), "2 apps"},
		{words.English.Say("100 %%"), "100 %"},
		{words.English.Say("Leave %s?", "50 %s %d"), "Leave 50 %s %d?"},
	} {
		if c.got != c.want {
			t.Errorf("said %q, want %q", c.got, c.want)
		}
	}
}

func TestPseudoLeavesVerbsAndMarksAlone(t *testing.T) {
	t.Parallel()
	got := words.Pseudo.Say("Leave <b>%[1]s</b>? 100 %%", "notes")
	if want := "[Léåvé <b>notes</b>? 100 % ~~~~]"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestSentencesTravel(t *testing.T) {
	t.Parallel()
	morning := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	made := words.Of("%[1]s %[2]s %[3]s %[4]s %[5]d", "a", words.Names{Names: []string{"Notes", "Photos"}, More: 3}, words.Day{Day: morning}, words.Of("%[1]s and %[2]s", "x", "y"), 8010)
	raw := programs.Got(json.Marshal(made))(t)
	var read words.Sentence
	programs.Must(t, json.Unmarshal(raw, &read))
	if got, want := words.German.Tell(read), "a Notes, Photos und 3 weitere 28. November x und y 8.010"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if read.String() != made.String() {
		t.Errorf("English is %q, and was %q", read, made)
	}
	for _, odd := range []string{`{"key":"%s","args":[null]}`, `{"key":"%s","args":[{"x":1}]}`, `{"key":"%s","args":[[1]]}`, `{"key":1}`} {
		if err := json.Unmarshal([]byte(odd), &read); err == nil {
			t.Errorf("%s was read", odd)
		}
	}
}

func TestTextJoinsWhatThereIs(t *testing.T) {
	t.Parallel()
	text := words.Text{words.Of("One."), {}, words.Counted(2, "%d thing.", "%d things.")}
	if got := text.String(); got != "One. 2 things." {
		t.Errorf("said %q", got)
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]words.Language{
		"":                               words.English,
		"de":                             words.German,
		"de-AT,de;q=0.9,en;q=0.8":        words.German,
		"fr-FR,fr;q=0.9":                 words.English,
		"fr;q=0.9,de;q=0.8,en;q=0.5":     words.German,
		"en-US,en;q=0.9,de;q=0.8":        words.English,
		"*":                              words.English,
		"\x00;;;,,,":                     words.English,
		"en-XA":                          words.Pseudo,
		strings.Repeat("fr,", 1000):      words.English,
		strings.Repeat("x", 5000):        words.English,
		"de," + strings.Repeat("-", 1e5): words.German,
	} {
		if got := words.Accepted(header); got != want {
			t.Errorf("%.40q: %v, want %v", header, got.Tag(), want.Tag())
		}
	}
}

func TestSystem(t *testing.T) {
	for _, c := range []struct {
		all, messages, lang string
		want                words.Language
		locale              string
	}{
		{"", "", "de_DE.UTF-8", words.German, "de-DE"},
		{"", "de_AT@euro", "en_US.UTF-8", words.German, "de-AT"},
		{"C.UTF-8", "de_DE.UTF-8", "de_DE.UTF-8", words.English, ""},
		{"", "", "fr_FR", words.English, "fr-FR"},
		{"", "", "", words.English, ""},
		{"en_XA.UTF-8", "", "", words.Pseudo, "en-XA"},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_MESSAGES", c.messages)
		t.Setenv("LANG", c.lang)
		if got, locale := words.System(), words.Locale(); got != c.want || locale != c.locale {
			t.Errorf("%+v: %q and %q", c, got.Tag(), locale)
		}
	}
}

func TestTemplatesEscapeWhatIsPutIn(t *testing.T) {
	t.Parallel()
	page := template.Must(template.New("").Funcs(words.German.Funcs()).Parse(
		`<p lang="{{language}}" title="{{say "%[1]s and %[2]s" .X .X}}">{{rich "<b>%s</b>, %s" .X (rich "<i>%s</i>" .X)}}</p>{{count 2 "%d <x>" "%d <y>"}}`))
	var b strings.Builder
	programs.Must(t, page.Execute(&b, map[string]string{"X": `<a href="x">'&`}))
	const x = "&lt;a href=&#34;x&#34;&gt;&#39;&amp;"
	if want := `<p lang="de" title="` + x + ` und ` + x + `"><b>` + x + `</b>, <i>` + x + `</i></p>2 &lt;y&gt;`; b.String() != want {
		t.Errorf("wrote %s\nwant  %s", b.String(), want)
	}
}
