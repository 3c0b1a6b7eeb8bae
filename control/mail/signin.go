package mail

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	texttemplate "text/template"
	"time"
)

//go:embed templates
var templates embed.FS

var (
	signInText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/signin.txt"))
	signInHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/signin.html"))
)

// SignIn is what the mail of a sign-in says.
type SignIn struct {
	To      string
	Link    string // signs in the browser it is clicked in
	Code    string // for the browser that began, spaced for reading: "123 456"
	Host    string // of the control plane
	Minutes int    // both are valid for
}

// Message composes the mail.
func (s SignIn) Message() (Message, error) {
	var text, html bytes.Buffer
	if err := signInText.Execute(&text, s); err != nil {
		return Message{}, fmt.Errorf("composing the text of a mail: %w", err)
	}
	if err := signInHTML.Execute(&html, s); err != nil {
		return Message{}, fmt.Errorf("composing the HTML of a mail: %w", err)
	}
	return Message{
		To: s.To, Subject: "Your link to sign in",
		Text: text.String(), HTML: html.String(), Links: []string{s.Link},
		Life: time.Duration(s.Minutes) * time.Minute,
	}, nil
}
