package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

const (
	maxUsers  = 1000 // kept
	maxAsking = 20   // of them without an answer
)

var (
	// ErrManyAsk is of Ask, for as long as too many users wait for the owner's answer.
	ErrManyAsk = errors.New("too many users wait for an answer")
	// ErrManyKept is of Ask, until the owner forgets a user.
	ErrManyKept = errors.New("too many users are kept")
)

// Users keeps which other users of this computer may have their programs register
// here. It is safe for concurrent use.
type Users struct {
	store    *store.Store
	apps     *Apps     // through which the owner is asked
	registry *Registry // whose registrations end with the permission

	mu    sync.Mutex
	users map[string]agentapi.LocalUser // guarded by mu; by the system's id
}

// NewUsers reads who asked and who was answered.
func NewUsers(kept *store.Store, apps *Apps, registry *Registry) (*Users, error) {
	users, err := kept.Users()
	if err != nil {
		return nil, err
	}
	return &Users{store: kept, apps: apps, registry: registry, users: users}, nil
}

// List returns the other users of this computer that asked or were answered, by
// name.
func (u *Users) List() []agentapi.LocalUser {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.AppendSeq(make([]agentapi.LocalUser, 0, len(u.users)), maps.Values(u.users))
	slices.SortFunc(all, func(a, b agentapi.LocalUser) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Standing says what the owner answered about a user; empty for one who never
// asked.
func (u *Users) Standing(userID string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.users[userID].Standing
}

// Ask has the owner asked about a user whose program wants to register, once: not
// again before they answered, and never after they said no. It is ErrManyAsk or
// ErrManyKept where nobody is asked.
func (u *Users) Ask(userID, name string) error {
	if userID == "" {
		return nil // nobody whom the owner could say yes to
	}
	if first, err := u.noteAsking(userID, name); !first || err != nil {
		return err
	}
	asks := words.Of("A program of %s, another user of this computer, wants to see and change who may open your apps. Allow it only if you trust that user with that.", name)
	_, err := u.apps.Tell(agentapi.Notice{
		At: time.Now().UTC(), Kind: agentapi.NoticeUser, User: userID, Text: asks.String(), Words: words.Text{asks},
	}, nil)
	return err
}

func (u *Users) noteAsking(userID, name string) (first bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.users[userID]; there {
		return false, nil
	}
	if len(u.users) >= maxUsers {
		return false, ErrManyKept
	}
	asking := 0
	for _, other := range u.users {
		if other.Standing == agentapi.UserAsks {
			asking++
		}
	}
	if asking >= maxAsking {
		return false, ErrManyAsk
	}
	return true, u.keep(agentapi.LocalUser{ID: userID, Name: name, Standing: agentapi.UserAsks, At: time.Now().UTC()})
}

// Allow lets a user's programs register. It takes one who has not asked, too.
func (u *Users) Allow(userID string) (agentapi.LocalUser, error) {
	return u.answer(userID, agentapi.UserAllowed, agentapi.ActivityUserAllowed)
}

// Deny keeps a user's programs from registering, and ends what they registered.
func (u *Users) Deny(userID string) (agentapi.LocalUser, error) {
	denied, err := u.answer(userID, agentapi.UserDenied, agentapi.ActivityUserDenied)
	if err == nil {
		u.registry.endUser(denied.ID)
	}
	return denied, err
}

func (u *Users) answer(userID, standing, happened string) (agentapi.LocalUser, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answered, there := u.users[userID]
	if !there {
		found, err := user.LookupId(userID)
		if err != nil {
			return agentapi.LocalUser{}, noSuchUser()
		}
		if procinfo.Own(found.Uid) {
			return agentapi.LocalUser{}, agentapi.Errorf(agentapi.CodeInvalid, "This is your own user, or the computer's administrator. Their programs are let in anyway.")
		}
		if len(u.users) >= maxUsers {
			return agentapi.LocalUser{}, agentapi.Errorf(agentapi.CodeConflict, "%d users are kept, which is the most. Forget one first.", maxUsers)
		}
		answered = agentapi.LocalUser{ID: found.Uid, Name: found.Username}
	}
	answered.Standing, answered.At = standing, time.Now().UTC()
	err := u.keep(answered)
	if err == nil {
		u.apps.tellHappened(agentapi.Activity{Kind: happened, Owner: true, What: answered.Name})
	}
	return answered, err
}

// Forget takes an answer back and ends what the user's programs registered: the
// next attempt asks again.
func (u *Users) Forget(userID string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.users[userID]; !there {
		return noSuchUser()
	}
	if err := u.store.PutUser(userID, nil); err != nil {
		return fmt.Errorf("forget a user: %w", err)
	}
	delete(u.users, userID)
	u.registry.endUser(userID)
	u.apps.cfg.Changes.Raise()
	return nil
}

// keep stores a user. u.mu is held.
func (u *Users) keep(row agentapi.LocalUser) error {
	if err := u.store.PutUser(row.ID, &row); err != nil {
		return fmt.Errorf("keep a user: %w", err)
	}
	u.users[row.ID] = row
	u.apps.cfg.Changes.Raise()
	return nil
}

func noSuchUser() error {
	return agentapi.Errorf(agentapi.CodeNotFound, "This computer has no such user.")
}
