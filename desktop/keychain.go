package desktop

import (
	"errors"

	"porchlight/agent/ownersecret"
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
	"porchlight/internal/words"
)

var (
	errLockedKeychain = words.Errorf("Your keychain is locked. Porchlight goes on when you unlock it.")
	errNoKeychain     = words.Errorf("No keychain answers here, and Porchlight keeps its owner secret in one. Install one (gnome-keyring, KWallet or KeePassXC) and Porchlight goes on by itself, or have the secret kept in a file only you can read.")
)

// onSecretless has the owner asked for what the engine waits for.
func (a *app) onSecretless(why error) {
	reason, n := errLockedKeychain, note{
		key:     keyKeychain,
		title:   language.Say("Your keychain is locked"),
		body:    language.Say("Your apps keep running, and you can take access away. To approve, invite or open, unlock the keychain."),
		buttons: []button{{language.Say("Unlock"), verbs.Action{Verb: verbs.Unlock}}},
		click:   verbs.Action{Verb: verbs.Show},
	}
	if errors.Is(why, ownersecret.ErrUnavailable) {
		reason, n = errNoKeychain, note{
			key:     keyKeychain,
			title:   language.Say("There is no keychain here"),
			body:    language.Say("Porchlight keeps the secret that makes you the owner in one. Install one, and Porchlight goes on by itself, or have the secret kept in a file only you can read."),
			buttons: []button{{language.Say("Keep it in a file"), verbs.Action{Verb: verbs.SecretFile}}},
			click:   verbs.Action{Verb: verbs.Show},
		}
	}
	a.mu.Lock()
	a.secretless = reason
	a.mu.Unlock()
	a.log.Warn(reason.Error())
	a.changed()
	a.tell(n)
}

// unlockKeychain has the keychain ask for its password, where that is waited for.
func (a *app) unlockKeychain() {
	if a.waitsFor() != nil {
		raise(a.unlock)
	}
}

// withoutSecret has a menu say first why the owner secret is not there, and offer
// what helps.
func (f *frame) withoutSecret(why error) {
	f.icon = iconTrouble
	f.trouble = append([]string{f.status}, f.trouble...)
	f.trouble = f.trouble[:min(len(f.trouble), maxTrouble)]
	if errors.Is(why, errNoKeychain) {
		f.status = language.Say("There is no keychain here")
		f.secret = line{text: language.Say("Keep the owner secret in a file"), do: verbs.Action{Verb: verbs.SecretFile}}
		return
	}
	f.status = language.Say("Your keychain is locked")
	f.secret = line{text: language.Say("Unlock…"), do: verbs.Action{Verb: verbs.Unlock}}
}
