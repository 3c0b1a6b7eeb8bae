package ui

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/export"
)

// Preferences are what the desktop app keeps for itself and what it finds on
// this computer.
type Preferences struct {
	// Welcomed is true once the owner has chosen how to begin.
	Welcomed     bool `json:"welcomed"`
	StartAtLogin bool `json:"startAtLogin"`
	// Appearance is "", "light" or "dark"; empty follows the system.
	Appearance string `json:"appearance"`
	// Trust says whether browsers here trust this computer's own authority, in
	// local mode.
	Trust Trust `json:"trust"`
	// SecretKept is where the owner secret is: "keychain" or "file"; "locked" while
	// the keychain is, "nowhere" while there is none.
	SecretKept string `json:"secretKept"`
	DataDir    string `json:"dataDir"`
}

// Trust of the local certificate authority.
type Trust struct {
	// Possible is false where this computer offers no way; Problem says why.
	Possible bool   `json:"possible"`
	Trusted  bool   `json:"trusted"`
	Problem  string `json:"problem"`
}

// Desk is the desktop app, as the settings page changes it. Its errors are
// sentences.
type Desk interface {
	Preferences(ctx context.Context) Preferences
	SetWelcomed() error
	SetStartAtLogin(on bool) error
	SetAppearance(appearance string) error
	SetTrust(ctx context.Context, trusted bool) error
	// KeepInFile keeps the owner secret in a file where there is no keychain.
	KeepInFile() error
	// ShowData opens the data directory in the file manager.
	ShowData(ctx context.Context) error
}

// Settings is the area of the agent's and the desktop's settings, of the
// connection to a control plane, and of the export.
type Settings struct {
	agent Source
	desk  Desk
	place func(name string) (path string, err error)

	unlock func()
}

// NewSettings makes the area. unlock has the keychain ask for its password. place asks the owner where to save a file, name
// being what it is called unless they say otherwise; "" when they rather not.
func NewSettings(agent Source, desk Desk, place func(name string) (path string, err error), unlock func()) *Settings {
	return &Settings{agent, desk, place, unlock}
}

// Export saves what Porchlight keeps for the owner where they say, and returns
// where that was; "" when they rather not.
func (s *Settings) Export() (saved string, err error) {
	now := time.Now()
	// Asked for first: nobody should choose a place for what cannot be had.
	all, err := ask(s.agent, func(ctx context.Context, g Agent) (export.Document, error) { return export.Gather(ctx, g, now) })
	if err != nil {
		return "", err
	}
	path, err := s.place(export.FileName(now))
	if err != nil || path == "" {
		return "", err
	}
	return path, all.Save(path)
}

// Get is the agent's settings.
func (s *Settings) Get() (agentapi.Settings, error) {
	return ask(s.agent, func(ctx context.Context, g Agent) (agentapi.Settings, error) { return g.Settings(ctx) })
}

// Set replaces the agent's settings.
func (s *Settings) Set(v agentapi.Settings) (agentapi.Settings, error) {
	return ask(s.agent, func(ctx context.Context, g Agent) (agentapi.Settings, error) { return g.SetSettings(ctx, v) })
}

// AllowUser lets programs of another user of this computer register.
func (s *Settings) AllowUser(id string) error {
	return tell(s.agent, func(ctx context.Context, g Agent) error {
		_, err := g.AllowUser(ctx, id)
		return err
	})
}

// DenyUser keeps them out, and asks no more.
func (s *Settings) DenyUser(id string) error {
	return tell(s.agent, func(ctx context.Context, g Agent) error {
		_, err := g.DenyUser(ctx, id)
		return err
	})
}

// ForgetUser takes an answer back: the next attempt asks again.
func (s *Settings) ForgetUser(id string) error {
	return tell(s.agent, func(ctx context.Context, g Agent) error { return g.ForgetUser(ctx, id) })
}

// Preferences is what the desktop app keeps.
func (s *Settings) Preferences() Preferences {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.desk.Preferences(ctx)
}

// Welcomed notes that the owner has chosen how to begin.
func (s *Settings) Welcomed() error { return s.desk.SetWelcomed() }

// StartAtLogin has the app start when the owner logs in, or not.
func (s *Settings) StartAtLogin(on bool) error { return s.desk.SetStartAtLogin(on) }

// Appearance sets the window's: "", "light" or "dark".
func (s *Settings) Appearance(appearance string) error { return s.desk.SetAppearance(appearance) }

// Trust has this computer's browsers trust the local authority, or no longer.
func (s *Settings) Trust(trusted bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.desk.SetTrust(ctx, trusted)
}

// KeepInFile keeps the owner secret in a file where there is no keychain.
func (s *Settings) KeepInFile() error { return s.desk.KeepInFile() }

// Unlock has the keychain ask for its password.
func (s *Settings) Unlock() { s.unlock() }

// ShowData opens the data directory in the file manager.
func (s *Settings) ShowData() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.desk.ShowData(ctx)
}

// Connect begins to connect this computer to a control plane; the snapshot's
// connecting tells how it goes on.
func (s *Settings) Connect(url, name string) (agentapi.Connecting, error) {
	return ask(s.agent, func(ctx context.Context, g Agent) (agentapi.Connecting, error) {
		return g.Connect(ctx, agentapi.ConnectRequest{URL: url, Name: name})
	})
}

// CancelConnect gives a connection up that waits.
func (s *Settings) CancelConnect() error {
	return tell(s.agent, func(ctx context.Context, g Agent) error { return g.CancelConnect(ctx) })
}

// Disconnect returns this computer to itself alone.
func (s *Settings) Disconnect() error {
	return tell(s.agent, func(ctx context.Context, g Agent) error { return g.Disconnect(ctx) })
}
