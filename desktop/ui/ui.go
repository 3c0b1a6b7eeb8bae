// Package ui is what the window can call, bound into its page as
// window.go.ui.NAME.METHOD: Agent for what the agent does, Desk for the desktop
// app's own, Shell for the program around the page. An error reaches the page as
// its text, so every error here is a sentence for the owner.
package ui

import (
	"context"
	"net/url"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

//go:generate go run porchlight/build/window

// patience bounds a call: a page that waits for ever looks broken.
const patience = 15 * time.Second

// ErrNotReady is returned while there is no agent to ask.
var ErrNotReady = words.Errorf("Porchlight is still starting.")

// Desk is the desktop app, as a page can change it: exactly what Desktop names.
type Desk struct{ Desktop }

// Desktop is what the desktop app does for a page. Its errors are sentences.
type Desktop interface {
	Preferences() Preferences
	// Welcomed notes that the first start was answered: an app was shared in it, or later
	// chosen.
	Welcomed() error
	// TrustOffered notes that the owner said whether browsers are to trust this computer.
	TrustOffered() error
	// StartAtLogin has the app start when the owner logs in, or not.
	StartAtLogin(on bool) error
	// Appearance sets the window's: "", "light" or "dark".
	Appearance(appearance string) error
	// Panel sets what the tray icon is drawn for: "", "light", "dark" or "outline".
	Panel(panel string) error
	// Shortcut has the desktop give keys that open the palette from anywhere, or none. It
	// returns when the owner has answered what the desktop asks of them.
	Shortcut(on bool) error
	// Trust has this computer's browsers trust the local authority, or no longer.
	Trust(trusted bool) error
	// Unlock has the keychain ask for its password.
	Unlock()
	// KeepInFile keeps the owner secret in a file where there is no keychain.
	KeepInFile() error
	// ShowData opens the data directory in the file manager.
	ShowData() error
	// Export saves what Porchlight keeps for the owner where they say, and returns
	// where that was; "" when they rather not.
	Export() (saved string, err error)
	// Open opens an app in the owner's browser, signed in. Where trust is still to be
	// offered, the page is sent to the place "trust" instead, the app being its argument.
	Open(app string) error
	// Quit ends Porchlight: where no panel shows its menu, nothing else does.
	Quit()
}

// Preferences are what the desktop app keeps for itself and what it finds on
// this computer.
type Preferences struct {
	// Welcomed is true once the first start was done.
	Welcomed     bool `json:"welcomed"`
	StartAtLogin bool `json:"startAtLogin"`
	// Appearance is "", "light" or "dark"; empty follows the system.
	Appearance string `json:"appearance"`
	// Panel is what the tray icon is drawn for: "light", "dark", "outline" for any, or
	// empty for what this system tells of its panel.
	Panel string `json:"panel"`
	// NoTray is true where no panel shows the tray icon, as in GNOME.
	NoTray bool `json:"noTray"`
	// Closed is true once the window was closed, and the owner told that Porchlight goes on.
	Closed bool `json:"closed"`
	// Trust says whether browsers here trust this computer's own authority, in
	// local mode.
	Trust Trust `json:"trust"`
	// Shortcut are the keys that open the palette from anywhere.
	Shortcut Shortcut `json:"shortcut"`
	// SecretKept is where the owner secret is: "keychain" or "file"; "locked" while
	// the keychain is, "nowhere" while there is none.
	SecretKept string `json:"secretKept"`
	DataDir    string `json:"dataDir"`
}

// Shortcut is what the desktop gives.
type Shortcut struct {
	// Offered is false where the desktop has no way.
	Offered bool `json:"offered"`
	On      bool `json:"on"`
	// Keys are what the desktop calls them; empty where it does not say.
	Keys string `json:"keys"`
}

// Trust of the local certificate authority.
type Trust struct {
	// Possible is false where this computer offers no way; Problem says why.
	Possible bool   `json:"possible"`
	Trusted  bool   `json:"trusted"`
	Problem  string `json:"problem"`
}

// Shell is what the page asks of the program around it.
type Shell struct{ around Around }

// Around is the program around the page.
type Around struct {
	Version string
	Copy    func(text string) error                     // puts it on the clipboard
	Browse  func(ctx context.Context, url string) error // opens it in the owner's browser
	State   func() agentapi.OwnerState                  // tells which addresses are ours
	Wanted  func() Place                                // where the owner asked to be, outside the window
	Speech  func() Speech                               // what is spoken
	Looks   func() string                               // "light", "dark", or "" where the page sees it
}

// Place is where in the window the owner wants to be.
type Place struct {
	// View is the page's own name for it; empty for where it is.
	View string `json:"view"`
	// Argument is what of the view: an app's name, an address; empty for all of it.
	Argument string `json:"argument"`
}

// Speech is what the window speaks.
type Speech struct {
	// Language is the tag of the words.
	Language string `json:"language"`
	// Locale is the desktop's own, for dates and numbers; empty where it has none.
	Locale string `json:"locale"`
}

// NewShell makes the area.
func NewShell(around Around) *Shell { return &Shell{around} }

// Looks is what the page is to look like, "light" or "dark": what the owner chose, or what
// the desktop looks like where the page cannot see it; "" where it can. The page asks when
// it loads and at each event "looks".
func (s *Shell) Looks() string { return s.around.Looks() }

// Speech is asked for before anything is shown, and is there at once.
func (s *Shell) Speech() Speech { return s.around.Speech() }

// Wanted is where the owner asked to be in the menu or on a notification since the last
// call. The page asks when it has loaded and at each event "show": an event alone would be
// lost on a page that is not there yet.
func (s *Shell) Wanted() Place { return s.around.Wanted() }

// State is the last that is known of everything, so that a page that opens shows it
// at once; its Seq is 0 before there is any.
func (s *Shell) State() agentapi.OwnerState { return s.around.State() }

// Version of this build.
func (s *Shell) Version() string { return s.around.Version }

// Copy puts text on the clipboard.
func (s *Shell) Copy(text string) error { return s.around.Copy(text) }

// OpenURL opens one of Porchlight's own addresses in the owner's browser: this
// computer's, one of its apps', its control plane's, or that of the one it is
// being connected to. Nothing else: the page shows names that other programs
// chose.
func (s *Shell) OpenURL(address string) error {
	if !ours(address, s.around.State()) {
		return words.Errorf("This is not one of Porchlight's addresses.")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.around.Browse(ctx, address)
}

func ours(address string, s agentapi.OwnerState) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Host == "" {
		return false
	}
	controlPlanes := []string{s.Account.AuthURL}
	if s.Connecting != nil && s.Connecting.State == agentapi.ConnectWaiting {
		controlPlanes = append(controlPlanes, s.Connecting.AuthURL)
	}
	for _, plane := range controlPlanes {
		if auth, err := url.Parse(plane); err == nil && auth.Host != "" && strings.EqualFold(u.Host, auth.Host) {
			return true
		}
	}
	host, a := strings.ToLower(u.Host), s.Account
	return a.Host != "" && (host == a.Host || strings.HasSuffix(host, "."+a.Host))
}
