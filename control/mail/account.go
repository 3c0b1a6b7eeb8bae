package mail

import "porchlight/internal/words"

var accountBodies = bodiesOf("account")

// Account is a mail that tells somebody of a change to how they sign in, or how they do.
type Account struct {
	To      string
	Subject words.Sentence
	Says    []words.Sentence // a paragraph each
	Link    string
	Button  words.Sentence // what the link is called
	// Language is that of the page, or of who asked.
	Language words.Language
}

// Message composes the mail.
func (a Account) Message() (Message, error) {
	shown := struct {
		Subject, Link, Button string
		Says                  []string
	}{Subject: a.Language.Tell(a.Subject), Link: a.Link, Button: a.Language.Tell(a.Button)}
	for _, s := range a.Says {
		shown.Says = append(shown.Says, a.Language.Tell(s))
	}
	text, html, err := accountBodies(a.Language).write(shown)
	if err != nil {
		return Message{}, err
	}
	return Message{To: a.To, Subject: shown.Subject, Text: text, HTML: html, Links: []string{a.Link}}, nil
}

// CameFrom says from which network address somebody did something; nothing where it is not
// known.
func CameFrom(address string) []words.Sentence {
	if address == "" {
		return nil
	}
	return []words.Sentence{words.Of("It came from %s.", address)}
}
