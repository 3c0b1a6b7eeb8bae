package mail

import "porchlight/internal/words"

var passkeyBodies = bodiesOf("passkey")

// Passkey is what the mail says that tells somebody of a passkey of theirs: a new one, or
// one of which there may be a copy.
type Passkey struct {
	To      string
	Name    string // what its owner calls it, or the program it was made with
	Copied  bool   // its count went back
	From    string // network address it was added or used from, or empty
	Host    string // of the control plane
	Account string // address of the page with all of them
	// Language is that of the page.
	Language words.Language
}

// Subject is the mail's.
func (p Passkey) Subject() string {
	if p.Copied {
		return p.Language.Say("There may be a copy of your passkey")
	}
	return p.Language.Say("A passkey was added to your account")
}

// Message composes the mail. The name is somebody's own words, so it passes safeLabel.
func (p Passkey) Message() (Message, error) {
	p.Name = safeLabel(p.Name)
	text, html, err := passkeyBodies(p.Language).write(p)
	if err != nil {
		return Message{}, err
	}
	return Message{To: p.To, Subject: p.Subject(), Text: text, HTML: html, Links: []string{p.Account}}, nil
}
