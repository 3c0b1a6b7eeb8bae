package desktop

import (
	"errors"

	"porchlight/agent/ownersecret"
)

var (
	errLockedKeychain = errors.New("Your keychain is locked. Porchlight goes on when you unlock it.")
	errNoKeychain     = errors.New("No keychain answers here, and Porchlight keeps its owner secret in one. Install one (gnome-keyring, KWallet or KeePassXC) and Porchlight goes on by itself, or have the secret kept in a file only you can read.")
)

// onSecretless has the owner asked for what the engine waits for.
func (a *app) onSecretless(why error) {
	reason, n := errLockedKeychain, note{
		key:   keyKeychain,
		title: "Your keychain is locked",
		body:  "Your apps keep running. To approve or revoke one, unlock the keychain; Porchlight notices by itself.",
		click: action{verb: doShow},
	}
	if errors.Is(why, ownersecret.ErrUnavailable) {
		reason, n = errNoKeychain, note{
			key:     keyKeychain,
			title:   "There is no keychain here",
			body:    "Porchlight keeps the secret that makes you the owner in one. Install one, and Porchlight goes on by itself, or have the secret kept in a file only you can read.",
			buttons: []button{{"Keep it in a file", action{verb: doSecretFile}}},
			click:   action{verb: doShow},
		}
	}
	a.mu.Lock()
	a.client, a.reason, a.known = nil, reason, false
	a.mu.Unlock()
	a.log.Warn(reason.Error())
	a.draw()
	a.window.emit("problem", reason.Error())
	a.tell(n)
}

// noKeychainMenu is the menu while no keychain answers.
func noKeychainMenu(atLogin bool) menu {
	f := plainFrame(iconTrouble, "There is no keychain here")
	f.address = line{text: "Keep the owner secret in a file", do: action{verb: doSecretFile}}
	return f.draw(atLogin)
}
