// Package settings keeps what the owner has chosen for the whole computer, as
// opposed to one app. A part that follows a setting reads it each time it matters.
package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/update"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

// Settings is safe for concurrent use.
type Settings struct {
	store   *store.Store
	changes *broadcast.Signal
	changed func() // nil for not

	saving sync.Mutex // held while the settings are changed
	now    atomic.Pointer[agentapi.Settings]
}

const (
	maxQuiet     = 50 // kinds of notifications, those of later versions too
	maxQuietName = 40 // bytes of each
	maxHours     = 24
	maxSocket    = 107 // bytes of a socket's path, the most there can be
)

// New reads the stored settings. changes is raised after they were replaced, and changed
// called when they are others now; nil when nobody follows them.
func New(kept *store.Store, changes *broadcast.Signal, changed func()) (*Settings, error) {
	chosen, err := kept.Settings()
	if err != nil {
		return nil, err
	}
	chosen.Notify = agentapi.LevelOf(set(chosen.Quiet))
	s := &Settings{store: kept, changes: changes, changed: changed}
	s.now.Store(&chosen)
	return s, nil
}

// Get returns the settings in force.
func (s *Settings) Get() agentapi.Settings {
	out := *s.now.Load()
	out.Quiet, out.ClientHosts = slices.Clone(out.Quiet), slices.Clone(out.ClientHosts)
	return out
}

// FailStatic is how long people keep their access while the control plane is away.
func (s *Settings) FailStatic() time.Duration {
	return time.Duration(s.now.Load().FailStaticHours) * time.Hour
}

// Update is the address of the update notice and the key that signs there as the owner
// named them, see agentapi.Settings.UpdateAddress.
func (s *Settings) Update() controlapi.UpdateNotice {
	now := s.now.Load()
	return controlapi.UpdateNotice{Address: now.UpdateAddress, Key: now.UpdateKey}
}

// Language is the one the owner is told things in, and whoever they invite.
func (s *Settings) Language() words.Language {
	if l, ok := words.Named(s.now.Load().Language); ok {
		return l
	}
	return words.System()
}

// Change changes the settings and returns them as they are kept: of two changes at a time
// none is lost. They are in force when it returns.
func (s *Settings) Change(change func(*agentapi.Settings)) (agentapi.Settings, error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	was, next := s.Get(), s.Get()
	change(&next)
	if next.UpdateKey == was.UpdateKey && (next.UpdateAddress == "" || next.UpdateAddress == agentapi.NoAddress) {
		next.UpdateKey = "" // it was the address's that goes
	}
	if next.Notify != "" && next.Notify != was.Notify && slices.Equal(next.Quiet, was.Quiet) { // a list that is given says it all
		quiet, ok := agentapi.QuietAt(next.Notify)
		if !ok {
			return agentapi.Settings{}, agentapi.Errorf(agentapi.CodeInvalid, "%.20q is no level of notifications. Choose waiting, everything or nothing.", next.Notify)
		}
		next.Quiet = quiet
	}
	next, err := clean(next)
	if err != nil {
		return agentapi.Settings{}, err
	}
	next.Notify = "" // what the list means, and never kept
	err = s.store.SaveSettings(next)
	next.Notify = agentapi.LevelOf(next.Quiet)
	if err != nil {
		return agentapi.Settings{}, fmt.Errorf("keep the settings: %w", err)
	}
	s.now.Store(&next)
	if s.changed != nil && !reflect.DeepEqual(was, next) {
		s.changed()
	}
	s.changes.Raise()
	return s.Get(), nil
}

// clean checks settings that came from outside.
func clean(s agentapi.Settings) (_ agentapi.Settings, err error) {
	if s.DisplayName, err = oneline.Name(s.DisplayName); err != nil {
		return s, agentapi.Errorf(agentapi.CodeInvalid, "%s", err)
	}
	if err := update.CheckOwners(controlapi.UpdateNotice{Address: s.UpdateAddress, Key: s.UpdateKey}); err != nil {
		return s, agentapi.Errorf(agentapi.CodeInvalid, "%s", err)
	}
	if l, ok := words.Named(s.Language); s.Language != "" && (!ok || l.Tag() != s.Language) {
		return s, agentapi.Errorf(agentapi.CodeInvalid, "Porchlight speaks no %.20q. Choose en or de, or nothing for the language of the desktop.", s.Language)
	}
	if s.FailStaticHours < 0 || s.FailStaticHours > maxHours {
		return s, agentapi.Errorf(agentapi.CodeInvalid,
			"Access can outlive the control plane for 0 to %d hours, and not for %d.", maxHours, s.FailStaticHours)
	}
	s.Containers = strings.TrimPrefix(s.Containers, "unix://")
	if s.Containers != "" && (!filepath.IsAbs(s.Containers) || len(s.Containers) > maxSocket || strings.ContainsFunc(s.Containers, func(r rune) bool { return !unicode.IsPrint(r) })) {
		return s, agentapi.Errorf(agentapi.CodeInvalid, "A container engine's socket is a whole path, such as /run/docker.sock or /run/user/1000/podman/podman.sock.")
	}
	s.Quiet, s.ClientHosts = set(s.Quiet), set(s.ClientHosts)
	return s, cmp.Or(checkKinds(s.Quiet), checkHosts(s.ClientHosts))
}

// checkKinds refuses what is no list of kinds of notifications.
func checkKinds(kinds []string) error {
	if len(kinds) > maxQuiet {
		return agentapi.Errorf(agentapi.CodeInvalid, "There are not that many kinds of notifications; at most %d can be quiet.", maxQuiet)
	}
	for _, kind := range kinds {
		odd := strings.IndexFunc(kind, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' })
		if kind == "" || len(kind) > maxQuietName || odd >= 0 {
			return agentapi.Errorf(agentapi.CodeInvalid, "%.80q is no kind of notification. A kind is written like access.", kind)
		}
	}
	return nil
}

// checkHosts refuses what is no list of hosts of clients.
func checkHosts(hosts []string) error {
	if len(hosts) > controlapi.MaxClientHosts {
		return agentapi.Errorf(agentapi.CodeInvalid, "No more than %d hosts can be allowed.", controlapi.MaxClientHosts)
	}
	for _, host := range hosts {
		if !controlapi.ValidClientHost(host) {
			return agentapi.Errorf(agentapi.CodeInvalid, "%.80q is no host. A host is a whole name like claude.ai, in lower case, without https:// and port.", host)
		}
	}
	return nil
}

// set is a list sorted, with everything once, and never nil.
func set(list []string) []string {
	list = append([]string{}, list...)
	slices.Sort(list)
	return slices.Compact(list)
}
