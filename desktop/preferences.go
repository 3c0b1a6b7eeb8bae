package desktop

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
	"porchlight/agent/trust"
	"porchlight/desktop/language"
	"porchlight/desktop/ui"
	"porchlight/internal/autostart"
	"porchlight/internal/words"
)

// preferences is what the settings page changes of the desktop app of a data
// directory.
type preferences struct {
	settings   *settings
	dataDir    string
	secretFile bool
	inFile     ownersecret.Store                            // the file of KeepInFile
	show       func(ctx context.Context, path string) error // in the file manager
}

// Preferences looks at this computer anew each time: what starts at login and
// what browsers trust can be changed behind the app's back.
func (p *preferences) Preferences() ui.Preferences {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kept := p.settings.get()
	out := ui.Preferences{
		Welcomed:     kept.Welcomed,
		StartAtLogin: startsAtLogin(),
		Appearance:   kept.Appearance,
		Panel:        kept.Panel,
		Closed:       kept.Closed,
		Trust:        p.trusted(ctx),
		SecretKept:   "keychain",
		DataDir:      p.dataDir,
	}
	if p.secretFile || kept.SecretFile {
		out.SecretKept = "file"
	}
	return out
}

func (p *preferences) trusted(ctx context.Context) ui.Trust {
	authority, err := trust.Open(local.RootCAPath(p.dataDir))
	if err != nil {
		return ui.Trust{} // no local mode here so far
	}
	trusted, err := authority.Trusted(ctx)
	if err != nil {
		return ui.Trust{Problem: language.Sentence(err)}
	}
	return ui.Trust{Possible: true, Trusted: trusted}
}

// Welcomed notes that the first start was done.
func (p *preferences) Welcomed() error {
	return p.settings.change(func(v *settingsValues) { v.Welcomed = true })
}

// TrustOffered notes that the owner was asked for trust, whatever they said.
func (p *preferences) TrustOffered() error {
	return p.settings.change(func(v *settingsValues) { v.TrustOffered = true })
}

// offersTrust says whether an app is not to be opened before trust was offered: browsers
// would warn of it, and nobody told the owner why.
func (p *preferences) offersTrust(ctx context.Context) bool {
	if p.settings.get().TrustOffered {
		return false
	}
	now := p.trusted(ctx)
	return now.Possible && !now.Trusted
}

// StartAtLogin has this program start at login, or none.
func (p *preferences) StartAtLogin(on bool) error {
	if !on {
		if err := autostart.Disable(); err != nil {
			return err
		}
		return p.settings.change(func(v *settingsValues) { v.AtLogin = "" })
	}
	program, err := program()
	if err != nil {
		return err
	}
	if err := autostart.Enable(program); err != nil {
		return err
	}
	return p.settings.change(func(v *settingsValues) { v.AtLogin = program })
}

// followMove has this program start at login where the one that the owner asked
// for is gone: it was moved, or came back under another name. An entry that
// somebody changed or switched off by hand stays as it is, and so does one whose
// program is still there.
func (p *preferences) followMove() error {
	was := p.settings.get().AtLogin
	if was == "" {
		return nil
	}
	now, err := program()
	if err != nil || now == was {
		return err
	}
	if _, err := os.Stat(was); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if on, err := autostart.Enabled(was); err != nil || !on {
		return err
	}
	return p.StartAtLogin(true)
}

// KeepInFile keeps the owner secret in a file, now and at every later start. The
// secret is made first: where it cannot be kept, the apps are served on as they
// are, and the next start does not fail on it.
func (p *preferences) KeepInFile() error {
	if _, err := ownersecret.Ensure(context.Background(), p.inFile); err != nil {
		return err
	}
	return p.settings.change(func(v *settingsValues) { v.SecretFile = true })
}

// Appearance keeps what the window looks like.
func (p *preferences) Appearance(appearance string) error {
	switch appearance {
	case "", "light", "dark":
		return p.settings.change(func(v *settingsValues) { v.Appearance = appearance })
	}
	return words.Errorf("The window is light, dark or like the system, not %q.", appearance)
}

// Panel keeps what the tray icon is drawn for.
func (p *preferences) Panel(panel string) error {
	switch panel {
	case "", "light", "dark", "outline":
		return p.settings.change(func(v *settingsValues) { v.Panel = panel })
	}
	return words.Errorf("The icon is drawn for a light panel, a dark one or any, not %q.", panel)
}

// Trust has the browsers of this computer trust its authority, or no longer.
func (p *preferences) Trust(trusted bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	authority, err := trust.Open(local.RootCAPath(p.dataDir))
	if err != nil {
		return words.Errorf("This computer has no authority of its own to trust.")
	}
	if trusted {
		return authority.Trust(ctx)
	}
	return authority.Distrust(ctx)
}

// ShowData opens the data directory in the file manager.
func (p *preferences) ShowData() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.show(ctx, p.dataDir)
}

// program is the file this process was started from; an AppImage's is the image.
func program() (string, error) {
	if image := os.Getenv("APPIMAGE"); image != "" {
		return image, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", words.Errorf("Porchlight cannot tell where it was started from: %w", err)
	}
	return path, nil
}
