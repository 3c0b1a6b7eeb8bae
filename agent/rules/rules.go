// Package rules is what the owner decides about everything at once: closing it
// all, how long access outlives the control plane, what raises a notification,
// the record of who opened what, and which other users of this computer may
// register their programs.
//
// Settings come in from the owner tier, are stored, and only then take effect.
// The package decides about no single app and no single person.
package rules

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// Config of New. All of it is required but Tell and Log.
type Config struct {
	Store  *store.Store
	Access *access.Access
	// Away says whether the control plane does not answer now.
	Away func() bool
	// OnChange is called after anything the owner sees has changed.
	OnChange func()
	// Tell has the owner told of something; nil for nobody.
	Tell func(agentapi.Notice) error
	Log  *slog.Logger // discarded when nil
}

// Rules is safe for concurrent use.
type Rules struct {
	cfg Config

	setting  sync.Mutex // held while settings are replaced
	settings atomic.Pointer[agentapi.Settings]
	users    map[string]agentapi.LocalUser // by the system's id; guarded by setting
}

const (
	maxQuiet     = 50 // kinds of notifications, those of later versions too
	maxQuietName = 40 // bytes of each
	maxHours     = 24
)

// New reads the stored settings and puts them into force.
func New(cfg Config) (*Rules, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Rules{cfg: cfg}
	s, ok, err := cfg.Store.Settings()
	if err != nil {
		return nil, err
	}
	if !ok {
		s = agentapi.Settings{FailStaticHours: maxHours, Quiet: []string{}}
	}
	r.settings.Store(&s)
	if r.users, err = cfg.Store.Users(); err != nil {
		return nil, err
	}
	cfg.Access.SetFailStatic(failStatic(s))
	return r, nil
}

func failStatic(s agentapi.Settings) time.Duration {
	return time.Duration(s.FailStaticHours) * time.Hour
}

// Settings are those in force.
func (r *Rules) Settings() agentapi.Settings {
	s := *r.settings.Load()
	s.Quiet = slices.Clone(s.Quiet)
	return s
}

// SetSettings replaces them and returns them as kept. A shorter FailStaticHours
// ends at once what it does not cover.
func (r *Rules) SetSettings(s agentapi.Settings) (agentapi.Settings, error) {
	s, err := clean(s)
	if err != nil {
		return agentapi.Settings{}, err
	}
	r.setting.Lock()
	defer r.setting.Unlock()
	if err := r.cfg.Store.SaveSettings(s); err != nil {
		return agentapi.Settings{}, fmt.Errorf("keep the settings: %w", err)
	}
	r.settings.Store(&s)
	r.cfg.Access.SetFailStatic(failStatic(s))
	r.cfg.OnChange()
	return r.Settings(), nil
}

// clean checks settings that came from outside.
func clean(s agentapi.Settings) (agentapi.Settings, error) {
	if s.FailStaticHours < 0 || s.FailStaticHours > maxHours {
		return s, agentapi.Errorf(agentapi.CodeInvalid,
			"Access can outlive the control plane for 0 to %d hours, and not for %d.", maxHours, s.FailStaticHours)
	}
	quiet := slices.Clone(s.Quiet)
	slices.Sort(quiet)
	s.Quiet = slices.Compact(quiet)
	if s.Quiet == nil {
		s.Quiet = []string{}
	}
	if len(s.Quiet) > maxQuiet {
		return s, agentapi.Errorf(agentapi.CodeInvalid, "There are not that many kinds of notifications; at most %d can be quiet.", maxQuiet)
	}
	for _, kind := range s.Quiet {
		odd := strings.IndexFunc(kind, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' })
		if kind == "" || len(kind) > maxQuietName || odd >= 0 {
			return s, agentapi.Errorf(agentapi.CodeInvalid, "%.80q is no kind of notification. A kind is written like access.", kind)
		}
	}
	return s, nil
}

// GoDark closes everything; see access.GoDark.
func (r *Rules) GoDark() (agentapi.Closed, error) {
	began := time.Now()
	n, err := r.cfg.Access.GoDark()
	r.cfg.OnChange()
	if err != nil {
		r.cfg.Log.Error("everything is closed, but not over a restart", "err", err)
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeInternal,
			"Everything is closed, but Porchlight could not write that to its data directory, so it would open again after a restart. Is the disk full?")
	}
	return agentapi.Closed{OK: true, Closed: n, Milliseconds: int(time.Since(began).Milliseconds())}, nil
}

// LightUp takes a GoDark back.
func (r *Rules) LightUp() error {
	if err := r.cfg.Access.LightUp(); err != nil {
		r.cfg.Log.Error("everything stays closed", "err", err)
		return agentapi.Errorf(agentapi.CodeInternal,
			"Porchlight could not write to its data directory, so everything stays closed. Is the disk full?")
	}
	r.cfg.OnChange()
	return nil
}

// DarkSince is when the owner closed everything; nil when they have not.
func (r *Rules) DarkSince() *time.Time { return r.cfg.Access.DarkSince() }

// AccessUntil is when access ends for everybody unless the control plane answers
// before; nil while it answers, and when access has ended.
func (r *Rules) AccessUntil() *time.Time {
	if !r.cfg.Away() {
		return nil
	}
	until, ok := r.cfg.Access.AccessUntil()
	if !ok {
		return nil
	}
	return &until
}

// Here says who has something open; see access.Here.
func (r *Rules) Here() (byApp map[string][]string, people int) { return r.cfg.Access.Here() }

// Activity lists what happened, newest first, at most limit lines.
func (r *Rules) Activity(limit int) ([]agentapi.Activity, error) { return r.cfg.Access.Activity(limit) }

// ClearActivity forgets all of it.
func (r *Rules) ClearActivity() error { return r.cfg.Access.ClearActivity() }
