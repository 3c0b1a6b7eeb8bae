package mail

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	texttemplate "text/template"
	"time"

	"porchlight/internal/words"
)

//go:embed templates
var templates embed.FS

// bodies are the two forms of a mail in one language.
type bodies struct {
	text *texttemplate.Template
	html *htmltemplate.Template
}

// bodiesOf has the bodies of the templates of a name.
func bodiesOf(name string) func(words.Language) bodies {
	return words.InEach(func(l words.Language) bodies {
		text, html := texttemplate.New(name+".txt").Funcs(l.Funcs()), htmltemplate.New(name+".html").Funcs(l.Funcs())
		text = texttemplate.Must(text.ParseFS(templates, "templates/"+name+".txt"))
		for _, one := range text.Templates() {
			l.Fold(one.Tree, nil)
		}
		return bodies{text, l.FoldHTML(htmltemplate.Must(html.ParseFS(templates, "templates/"+name+".html")))}
	})
}

// write fills both in.
func (b bodies) write(shown any) (asText, asHTML string, err error) {
	var text, html bytes.Buffer
	if err := b.text.Execute(&text, shown); err != nil {
		return "", "", fmt.Errorf("composing the text of a mail: %w", err)
	}
	if err := b.html.Execute(&html, shown); err != nil {
		return "", "", fmt.Errorf("composing the HTML of a mail: %w", err)
	}
	return text.String(), html.String(), nil
}

var signInBodies = bodiesOf("signin")

// SignIn is what the mail of a sign-in says.
type SignIn struct {
	To      string
	Link    string // signs in the browser it is clicked in
	Code    string // for the browser that began, spaced for reading: "123 456"
	Host    string // of the control plane
	Minutes int    // both are valid for
	// Language is that of the page it was asked for on.
	Language words.Language
}

// Message composes the mail.
func (s SignIn) Message() (Message, error) {
	text, html, err := signInBodies(s.Language).write(s)
	if err != nil {
		return Message{}, err
	}
	return Message{
		To: s.To, Subject: s.Language.Say("Your link to sign in"),
		Text: text, HTML: html, Links: []string{s.Link},
		Life: time.Duration(s.Minutes) * time.Minute,
	}, nil
}
