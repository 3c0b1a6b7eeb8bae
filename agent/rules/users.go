package rules

import (
	"cmp"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

const (
	maxUsers  = 1000 // kept
	maxAsking = 20   // of them without an answer
)

// EverybodyTrusted says whether other users of this computer count as the owner.
func (r *Rules) EverybodyTrusted() bool { return r.settings.Load().TrustEverybody }

// Users lists the other users of this computer that asked or were answered, by
// name.
func (r *Rules) Users() []agentapi.LocalUser {
	r.setting.Lock()
	defer r.setting.Unlock()
	return slices.SortedFunc(maps.Values(r.users), func(a, b agentapi.LocalUser) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

// Standing is how it stands with a user; empty for one who never asked.
func (r *Rules) Standing(userID string) string {
	r.setting.Lock()
	defer r.setting.Unlock()
	return r.users[userID].Standing
}

// UserAsks notes that a program of a user wants to register and has the owner
// asked, once: not again before they answered, and never after they said no.
func (r *Rules) UserAsks(userID, name string) error {
	if userID == "" {
		return nil // nobody whom the owner could say yes to
	}
	if fresh, err := r.noteAsking(userID, name); !fresh || err != nil {
		return err
	}
	r.cfg.OnChange()
	if r.cfg.Tell == nil {
		return nil
	}
	return r.cfg.Tell(agentapi.Notice{
		At: time.Now().UTC(), Kind: agentapi.NoticeUser, User: userID,
		Text: fmt.Sprintf("A program of %s, another user of this computer, wants to see and change who may open your apps. Allow it only if you trust that user with that.", name),
	})
}

func (r *Rules) noteAsking(userID, name string) (fresh bool, err error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	asking := 0
	for _, u := range r.users {
		if u.Standing == agentapi.UserAsks {
			asking++
		}
	}
	if _, known := r.users[userID]; known || asking >= maxAsking || len(r.users) >= maxUsers {
		return false, nil
	}
	return true, r.keepUser(agentapi.LocalUser{ID: userID, Name: name, Standing: agentapi.UserAsks, At: time.Now().UTC()})
}

// AllowUser lets a user's programs register. It takes one who has not asked, too.
func (r *Rules) AllowUser(userID string) (agentapi.LocalUser, error) {
	return r.answer(userID, agentapi.UserAllowed)
}

// DenyUser keeps a user's programs from registering.
func (r *Rules) DenyUser(userID string) (agentapi.LocalUser, error) {
	return r.answer(userID, agentapi.UserDenied)
}

func (r *Rules) answer(userID, standing string) (agentapi.LocalUser, error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	u, known := r.users[userID]
	if !known {
		found, err := user.LookupId(userID)
		if err != nil {
			return agentapi.LocalUser{}, noSuchUser()
		}
		if procinfo.Own(found.Uid) {
			return agentapi.LocalUser{}, agentapi.Errorf(agentapi.CodeInvalid, "This is your own user, or the computer's administrator. Their programs are let in anyway.")
		}
		if len(r.users) >= maxUsers {
			return agentapi.LocalUser{}, agentapi.Errorf(agentapi.CodeConflict, "%d users are kept, which is the most. Forget one first.", maxUsers)
		}
		u = agentapi.LocalUser{ID: found.Uid, Name: found.Username}
	}
	u.Standing, u.At = standing, time.Now().UTC()
	if err := r.keepUser(u); err != nil {
		return agentapi.LocalUser{}, err
	}
	r.cfg.OnChange()
	return u, nil
}

// ForgetUser takes an answer back: the next attempt asks again.
func (r *Rules) ForgetUser(userID string) error {
	r.setting.Lock()
	defer r.setting.Unlock()
	if _, known := r.users[userID]; !known {
		return noSuchUser()
	}
	if err := r.cfg.Store.PutUser(userID, nil); err != nil {
		return fmt.Errorf("forget a user: %w", err)
	}
	delete(r.users, userID)
	r.cfg.OnChange()
	return nil
}

// keepUser stores a row. r.setting is held.
func (r *Rules) keepUser(u agentapi.LocalUser) error {
	if err := r.cfg.Store.PutUser(u.ID, &u); err != nil {
		return fmt.Errorf("keep a user: %w", err)
	}
	r.users[u.ID] = u
	return nil
}

func noSuchUser() error {
	return agentapi.Errorf(agentapi.CodeNotFound, "This computer has no such user.")
}
