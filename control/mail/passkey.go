package mail

import "porchlight/internal/words"

// Passkey is what the mail says that tells somebody of a passkey of theirs: a new one, or
// one of which there may be a copy.
type Passkey struct {
	To      string
	Name    string // what its owner calls it, or the program it was made with
	Copied  bool   // its count went back
	Invited bool   // an invitation's session made it
	From    string // network address it was added or used from, or empty
	Host    string // of the control plane
	Account string // address of the page with all of them
	// Language is that of the page.
	Language words.Language
}

// Message composes the mail. The name is somebody's own words, so it passes safeLabel.
func (p Passkey) Message() (Message, error) {
	name := safeLabel(p.Name)
	out := Account{
		To: p.To, Subject: words.Of("A passkey was added to your account"),
		Says: []words.Sentence{words.Of("“%[1]s” signs you in at %[2]s from now on.", name, p.Host)},
		Link: p.Account, Button: words.Of("Your account"), Language: p.Language,
	}
	not := []words.Sentence{
		words.Of("Was it not you? Open your account, and sign out everywhere else."),
		words.Of("A mail does not remove a passkey: another one of yours does, a recovery code, or “That was not me” on your computer. Without them, ask whoever runs %s.", p.Host),
	}
	switch {
	case p.Copied:
		out.Subject = words.Of("There may be a copy of your passkey")
		out.Says[0] = words.Of("“%[1]s” was used at %[2]s, but its count of uses did not rise: there may be a copy of it. It opens nothing any more. Remove it in your account and add another.", name, p.Host)
		not = []words.Sentence{words.Of("Was it not you? Open your account, remove the passkey, and sign out everywhere else.")}
	case p.Invited:
		out.Says[0] = words.Of("“%[1]s” opens at %[2]s what you were invited to. The invitation’s link made it.", name, p.Host)
		not = []words.Sentence{words.Of("Was it not you? Have a link mailed that signs you in, and remove the passkey in your account.")}
	}
	out.Says = append(out.Says, CameFrom(p.From)...)
	out.Says = append(out.Says, not...)
	return out.Message()
}
