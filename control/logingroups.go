package control

import (
	"slices"
	"strings"

	"porchlight/control/controlapi"
)

// Groups of providers. What a provider says of somebody's groups is read at each sign-in, and
// kept in their rows of all computers. An owner's agent hears only of groups that the owner lets
// fill theirs, and decides who is in which.

const (
	maxFills    = 50  // of a computer
	maxFillName = 140 // bytes
)

// provided are the groups that providers say an account is in, sorted.
func (t *txn) provided(accountID string) (all []string) {
	for _, l := range eachLogin(t, accountID) {
		for _, group := range l.Groups {
			all = append(all, l.Provider+"/"+group)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// provide has an account's rows say what provided says now.
func (t *txn) provide(accountID string) {
	all := t.provided(accountID)
	for computerID := range below(t, keyMemberships(accountID)) {
		p, found := get[person](t, keyPerson(computerID, accountID))
		if !found || slices.Equal(p.Provided, all) {
			continue
		}
		next := p
		next.Provided = all
		t.putPerson(computerID, p, next)
	}
}

// filled is what the agent of a computer hears of a person's groups: those that the owner let,
// of providers that still tell of any.
func (s *core) filled(p person, c computer) (out []string) {
	if p.Status == controlapi.PersonRemoved {
		return nil
	}
	for _, group := range c.Fills {
		name, _, _ := strings.Cut(group, "/")
		if from, err := s.providerNamed(name); err == nil && from.Groups != "" && slices.Contains(p.Provided, group) {
			out = append(out, group)
		}
	}
	return out
}

// checkFills refuses what names no groups of providers.
func checkFills(fills []string) error {
	if len(fills) > maxFills || slices.ContainsFunc(fills, func(group string) bool { return !validText(group, maxFillName) }) {
		return refuse(controlapi.CodeInvalid, "Groups of providers can fill at most 50 groups of a computer, and their names have at most 140 visible characters.")
	}
	return nil
}
