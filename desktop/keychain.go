package desktop

import (
	"errors"

	"porchlight/agent/ownersecret"
	"porchlight/desktop/language"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/internal/broadcast"
)

// onSecretless has the owner asked for what the engine waits for.
func (a *app) onSecretless(why error) {
	reason, n := "Your keychain is locked. Porchlight goes on when you unlock it.", notes.Note{
		Key:     notes.KeyKeychain,
		Title:   language.Say("Your keychain is locked"),
		Body:    language.Say("Your apps keep running, and you can take access away. To approve, invite or open, unlock the keychain."),
		Buttons: []notes.Button{{Text: language.Say("Unlock"), Do: verbs.Action{Verb: verbs.Unlock}}},
		Click:   verbs.Action{Verb: verbs.Show},
	}
	if errors.Is(why, ownersecret.ErrUnavailable) {
		reason, n = "No keychain answers here, and Porchlight keeps its owner secret in one. Install one (gnome-keyring, KWallet or KeePassXC) and Porchlight goes on by itself, or have the secret kept in a file only you can read.", notes.Note{
			Key:     notes.KeyKeychain,
			Title:   language.Say("There is no keychain here"),
			Body:    language.Say("Porchlight keeps the secret that makes you the owner in one. Install one, and Porchlight goes on by itself, or have the secret kept in a file only you can read."),
			Buttons: []notes.Button{{Text: language.Say("Keep it in a file"), Do: verbs.Action{Verb: verbs.SecretFile}}},
			Click:   verbs.Action{Verb: verbs.Show},
		}
	}
	a.mu.Lock()
	a.secretless = why
	a.mu.Unlock()
	a.log.Warn(reason)
	a.changed()
	a.tell(n)
}

// unlockKeychain has the keychain ask for its password, where that is waited for.
func (a *app) unlockKeychain() {
	if a.waitsFor() != nil {
		broadcast.Raise(a.unlock)
	}
}
