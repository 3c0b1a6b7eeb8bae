package control

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

// Agents are what computers ask, with their device credentials.
type Agents struct {
	*core
	keys    *Keys
	devices *feed.Pace // how often they asked this node
	hints   feed.Hints
	untold  atomic.Bool // a change was told to nobody, and is not looked for yet
	// sweepVersions is how often versions are read though nothing seems to be missed.
	sweepVersions time.Duration
	lastUntold    string // the version of the last change that was told to nobody; of the goroutine that looks
}

// EndCredential ends a device credential: requests with it are refused, waiting
// ones end, and so does the tunnel it opened. The computer's short name, its
// people and their apps are kept. It refuses with CodeUnauthorized when the
// credential is over.
func (s *Agents) EndCredential(ctx context.Context, credential string) error {
	hash := hashOf(purposeCredential, credential)
	return s.update(ctx, func(tx *txn) error {
		c, err := computerByCredential(tx, hash)
		if err != nil {
			return err
		}
		tx.endCredential(&c)
		return nil
	})
}

// readEndedEvery is how often a node looks at most for what others ended.
const readEndedEvery = 250 * time.Millisecond

// tellEnded reports credentials that other nodes ended since the last call; seen is
// what had ended before.
func (s *Agents) tellEnded(ctx context.Context, seen map[string]bool) error {
	now, err := viewedOf(ctx, s.core, kv.Rows{Prefixes: []string{keyEndedCredentials}}, func(tx *txn) (map[string]string, error) {
		return maps.Collect(each[string](tx, keyEndedCredentials)), nil
	})
	if err != nil {
		return err
	}
	var suspended []string
	for event, id := range anew(now, seen) {
		if strings.HasPrefix(event, suspensionEvent) {
			suspended = append(suspended, id)
			continue
		}
		if _, here := s.endedHere.LoadAndDelete(event); !here {
			s.credentialEnded(id)
		}
	}
	return s.tellSuspended(ctx, suspended)
}

// anew are those events of now that are not among seen, which is brought up to date.
func anew(now map[string]string, seen map[string]bool) map[string]string {
	maps.DeleteFunc(seen, func(event string, _ bool) bool { _, still := now[event]; return !still })
	maps.DeleteFunc(now, func(event, _ string) bool { return seen[event] })
	for event := range now {
		seen[event] = true
	}
	return now
}

// Authenticate finds the computer a device credential belongs to, or refuses
// with CodeUnauthorized.
func (s *Agents) Authenticate(ctx context.Context, credential string) (controlapi.Computer, error) {
	if len(credential) != tokenLen {
		return controlapi.Computer{}, credentialUnknown()
	}
	hash := hashOf(purposeCredential, credential)
	return s.authenticate(credentialTurn(ctx, hash), hash)
}

// AuthenticateFrom is Authenticate for a request that came from client: it also
// refuses with CodeTooMany and RetryAfter when the computer asks too often, or
// when too many credentials from that network were refused. visits is whether a
// visitor had the computer ask, which counts by itself. The only computer of local
// mode is its operator's own and may ask as it likes.
func (s *Agents) AuthenticateFrom(ctx context.Context, credential string, client netip.Addr, visits bool) (computer controlapi.Computer, err error) {
	err = s.paced(ctx, credential, client, visits, func(ctx context.Context, hash string) (err error) {
		computer, err = s.authenticate(ctx, hash)
		return err
	})
	return computer, err
}

// paced has ask look at the credential with this hash, as often as that may be, in the
// computer's turn at the store.
func (s *Agents) paced(ctx context.Context, credential string, client netip.Addr, visits bool, ask func(ctx context.Context, hash string) error) error {
	if len(credential) != tokenLen {
		// It costs the store nothing. Were it counted, any web page could have its
		// visitors' browsers use up what is for their networks: without a credential
		// they may ask across sites.
		return credentialUnknown()
	}
	hash, network := hashOf(purposeCredential, credential), clientKey(client)
	if visits {
		ctx = kv.WithTurn(ctx, "visits with "+hash)
	} else {
		ctx = credentialTurn(ctx, hash)
	}
	if s.cfg.Local() {
		return ask(ctx, hash)
	}
	return s.devices.Ask(ctx, hash, network, visits, func() error { return ask(ctx, hash) })
}

// credentialTurn has what one computer asks of the store wait in one turn.
func credentialTurn(ctx context.Context, hash string) context.Context {
	return kv.WithTries(ctx, "credential "+hash)
}

// authenticate is Authenticate for the credential with this hash.
func (s *Agents) authenticate(ctx context.Context, hash string) (controlapi.Computer, error) {
	rows := kv.Rows{Keys: []string{keyCredential(hash)}}
	if id, known := s.hints.Get(hash); known {
		rows.Keys = append(rows.Keys, keyComputer(id))
	}
	c, err := viewedOf(ctx, s.core, rows, func(tx *txn) (controlapi.Computer, error) {
		c, err := computerByCredential(tx, hash)
		return s.computer(c), err
	})
	s.hints.Learn(hash, c.ID, s.now(), err)
	return c, err
}

// runEndedReader reports device credentials that other nodes ended. It looks when a
// node tells of a change, and whenever the versions are read.
func (s *Agents) runEndedReader(ctx context.Context) error {
	seen := map[string]bool{}
	for {
		if err := s.tellEnded(ctx, seen); err != nil && ctx.Err() == nil {
			s.log.Warn("reading the credentials that ended failed", "err", err)
			broadcast.Raise(s.endedWake) // again
		}
		select { // however much is told, it looks a few times a second
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readEndedEvery):
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.endedWake:
		}
	}
}

// PutApps replaces what a computer reports, all of it or nothing, and tells its agent that
// it has it. What is reported again changes nothing.
func (s *Agents) PutApps(ctx context.Context, computerID string, reported controlapi.Apps) error {
	if err := errors.Join(checkApps(reported.Apps), checkGroups(reported.Groups), checkFills(reported.Fills), checkCertificateEnds(reported.CertificateEnds)); err != nil {
		return err
	}
	return s.update(ctx, func(tx *txn) error {
		// Together, because all computers may report at once after an update of theirs.
		tx.getAll(keyComputer(computerID), keyComputerApps(computerID), keyComputerKnocks(computerID), keyChange(computerID))
		if c, found := get[computer](tx, keyComputer(computerID)); found { // else it was removed meanwhile
			wasGrouped, otherEnd := c.Grouped, tx.certificateEnds(&c, reported.CertificateEnds)
			if c.Grouped = len(reported.Groups) > 0; otherEnd || c.TellOff != reported.TellOff || c.Grouped != wasGrouped || !slices.Equal(c.Fills, reported.Fills) {
				c.TellOff, c.Fills = reported.TellOff, reported.Fills
				tx.put(keyComputer(computerID), c, 0)
				tx.touch(computerID)
			}
			tx.takeKnocks(computerID, reported.Knocks)
			tx.replaceApps(computerID, reported.Apps)
			if c.Grouped || wasGrouped {
				tx.takeGroups(computerID, reported)
			}
		}
		return nil
	})
}

// NoteAppGrants keeps whether the agent of a computer knows grants for some apps.
func (s *Agents) NoteAppGrants(ctx context.Context, computerID string, knows bool) error {
	return s.update(ctx, func(tx *txn) error {
		c, found := get[computer](tx, keyComputer(computerID))
		if found && c.AppGrants != knows { // else it was removed meanwhile, or told by another node
			c.AppGrants = knows
			tx.put(keyComputer(computerID), c, 0)
		}
		return nil
	})
}

// checkApps refuses a list of apps that cannot be published.
func checkApps(apps []controlapi.App) error {
	if len(apps) > MaxApps {
		return refuse(controlapi.CodeInvalid, "A computer can have at most 500 approved apps.")
	}
	ids, names := make(map[string]bool, len(apps)), make(map[string]bool, len(apps))
	for _, a := range apps {
		if !appIDPattern.MatchString(a.ID) || !controlapi.ValidLabel(a.Name) || controlapi.Reserved(a.Name) || !validText(a.Label, maxLabel) {
			return refuse(controlapi.CodeInvalid, "The list of apps holds one that cannot be published: names are of 1 to 63 lower-case letters, digits and hyphens, labels of 1 to 100 visible characters on one line.")
		}
		if ids[a.ID] || names[a.Name] {
			return refuse(controlapi.CodeInvalid, "The list of apps holds the same app twice.")
		}
		ids[a.ID], names[a.Name] = true, true
	}
	return nil
}

// checkGroups refuses more than groups may open.
func checkGroups(groups map[string]map[string]time.Time) error {
	all := 0
	for _, apps := range groups {
		all += len(apps)
	}
	if all > controlapi.MaxByGroup {
		return refuse(controlapi.CodeInvalid, "The groups of a computer can open at most 5,000 apps, counted once for each person.")
	}
	return nil
}

// takeGroups has the people of a computer open what its groups open to them, and nothing
// else by a group. Whom the list does not know, or knows as removed, they open nothing.
func (t *txn) takeGroups(computerID string, reported controlapi.Apps) {
	there := map[string]bool{}
	for _, a := range reported.Apps {
		there[a.ID] = true
	}
	for _, p := range each[person](t, keyPersons(computerID)) {
		next, gained, lost := p, []string{}, []string{}
		next.ByGroup = nil
		if p.known() && p.Role != controlapi.RoleOwner {
			next.ByGroup = dropped(reported.Groups[p.AccountID], func(id string) bool { return !there[id] })
		}
		for id := range next.ByGroup {
			if _, had := p.ByGroup[id]; !had {
				gained = append(gained, id)
			}
		}
		for id := range p.ByGroup {
			if _, has := next.ByGroup[id]; !has && !slices.Contains(p.Apps, id) {
				lost = append(lost, id)
			}
		}
		if sameEnds(next.ByGroup, p.ByGroup) {
			continue
		}
		t.endWith(personGiven, computerID, p.AccountID, gained)
		t.endWith(personWithdrawn, computerID, p.AccountID, lost)
		t.putPerson(computerID, p, next)
	}
}

// replaceApps has a computer have these apps. Those that are no longer among them take
// their grants along, so that a name approved later starts with nobody (P7).
func (t *txn) replaceApps(computerID string, apps []controlapi.App) {
	if apps == nil {
		apps = []controlapi.App{}
	}
	before, _ := get[[]controlapi.App](t, keyComputerApps(computerID))
	if slices.Equal(before, apps) {
		return
	}
	t.put(keyComputerApps(computerID), apps, 0)
	t.touch(computerID)
	gone := map[string]bool{}
	for _, a := range before {
		gone[a.ID] = true
	}
	for _, a := range apps {
		delete(gone, a.ID)
	}
	t.forgetApps(computerID, gone)
	if len(gone) > 0 {
		t.dropDomains(computerID, apps)
	}
}
