// Package export gathers what Porchlight keeps for the owner into one document
// that they can read, keep and carry away: the account, the apps with their
// options, the people and their groups, the connected apps, the app passwords and devices by what they are
// called, the named senders without their secrets, the activity and the settings. The window and the command line
// write the same one.
//
// There is nothing in it that opens anything: no owner secret, no credential of
// this computer, no session, no app password nor its hash, no secret of a sender, and none of the links in the
// local outbox.
package export

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/durable"
	"porchlight/internal/words"
)

const (
	// Format and Version head every document. Version grows when a field comes
	// to mean something else, not when one is added.
	Format  = "porchlight-export"
	Version = 1
)

// Document is what is written, as JSON.
type Document struct {
	Format        string    `json:"format"`
	Version       int       `json:"version"`
	ExportedAt    time.Time `json:"exportedAt"`
	EngineVersion string    `json:"engineVersion"`

	Account  agentapi.Account    `json:"account"`
	Settings agentapi.Settings   `json:"settings"`
	Apps     []App               `json:"apps"`     // by label
	People   []agentapi.Person   `json:"people"`   // removed ones too
	Groups   []agentapi.Group    `json:"groups"`   // by name
	Clients  []agentapi.Grant    `json:"clients"`  // newest first
	Activity []agentapi.Activity `json:"activity"` // newest first, all there is

	Passwords []agentapi.AppPassword `json:"passwords"` // newest first; what they are called, not what they are
	Senders   []agentapi.Sender      `json:"senders"`   // by app and name, without their secrets
	Devices   []agentapi.Device      `json:"devices"`   // newest first; not their certificates
}

// App is an app as it is kept: without what is so only for the moment, such as
// who has it open.
type App struct {
	agentapi.AppSummary
	Paused      bool                `json:"paused"`
	Denials     int                 `json:"denials"`
	RequestedAt time.Time           `json:"requestedAt,omitzero"`
	ApprovedAt  *time.Time          `json:"approvedAt,omitempty"`
	Until       *time.Time          `json:"until,omitempty"`
	Options     agentapi.AppOptions `json:"options"`
}

// Source is the owner tier, as far as the document needs it.
type Source interface {
	State(ctx context.Context) (agentapi.OwnerState, error)
	People(ctx context.Context) (agentapi.People, error)
	Activity(ctx context.Context, limit int) ([]agentapi.Activity, error)
	Settings(ctx context.Context) (agentapi.Settings, error)
	Passwords(ctx context.Context) ([]agentapi.AppPassword, error)
	Senders(ctx context.Context) ([]agentapi.Sender, error)
	Devices(ctx context.Context) ([]agentapi.Device, error)
}

// Gather asks for everything. The parts are asked for one after the other: what
// changes meanwhile is in some of them and not in others.
func Gather(ctx context.Context, from Source, now time.Time) (Document, error) {
	s, err := from.State(ctx)
	if err != nil {
		return Document{}, err
	}
	d := Document{
		Format: Format, Version: Version, ExportedAt: now.UTC().Truncate(time.Second),
		EngineVersion: s.EngineVersion, Account: s.Account, Apps: make([]App, 0, len(s.Apps)), Clients: list(s.Grants), Groups: list(s.Groups),
	}
	for _, a := range s.Apps {
		d.Apps = append(d.Apps, App{a.AppSummary, a.Paused, a.Denials, a.RequestedAt, a.ApprovedAt, a.Until, a.Options})
	}
	people, err := from.People(ctx)
	if err != nil && !nobody(s, err) {
		return Document{}, err
	}
	d.People = list(people.Members)
	if d.Activity, err = from.Activity(ctx, store.MaxActivity); err != nil {
		return Document{}, err
	}
	d.Activity = list(d.Activity)
	if d.Settings, err = from.Settings(ctx); err != nil {
		return Document{}, err
	}
	d.Settings.Quiet, d.Settings.ClientHosts = list(d.Settings.Quiet), list(d.Settings.ClientHosts)
	if d.Passwords, err = from.Passwords(ctx); err != nil && !nobody(s, err) {
		return Document{}, err
	}
	if d.Senders, err = from.Senders(ctx); err != nil {
		return Document{}, err
	}
	d.Senders = list(d.Senders)
	if d.Devices, err = from.Devices(ctx); err != nil {
		return Document{}, err
	}
	d.Passwords, d.Devices = list(d.Passwords), list(d.Devices)
	return d, nil
}

// nobody says of a list of people, or of what is theirs, that it cannot be had because it
// is empty: a computer that was never connected has nobody to ask, and nobody in it.
func nobody(s agentapi.OwnerState, err error) bool {
	return s.Account.Host == "" && s.Account.AuthURL == "" && agentapi.CodeOf(err) == agentapi.CodeUnavailable
}

// list has an empty list written as one, not as null.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// write writes the document for people to read.
func (d Document) write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(d)
}

// Save writes the document to a file that only its owner can read (0600), whole
// or not at all; a file of that name is replaced. Its errors are sentences.
func (d Document) Save(path string) (err error) {
	defer func() {
		if err != nil {
			err = words.Errorf("The export was not saved as %s: %w. Choose another place.", path, durable.Plain(err))
		}
	}()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return words.Errorf("it is not a file")
	}
	return durable.ReplaceWith(path, func(f *os.File) error { return d.write(f) })
}

// FileName is what an export of that time is called, unless the owner says
// otherwise.
func FileName(now time.Time) string { return "porchlight-" + now.Format(time.DateOnly) + ".json" }
