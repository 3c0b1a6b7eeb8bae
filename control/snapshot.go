package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// firstSnapshot is what an agent is to be told first, which is found before what may change is
// read. It refuses as AuthenticateFrom does.
//
// Credential, computer and all that the snapshot holds are read by one statement and
// of one moment: with PostgreSQL one round trip for a computer that this node knows
// (see feed.Hints), and two for one that it does not.
func (s *Agents) firstSnapshot(ctx context.Context, credential string, client netip.Addr, found func(feed.Credential)) (out controlapi.Snapshot, err error) {
	err = s.paced(ctx, credential, client, false, func(ctx context.Context, hash string) error {
		id, err := s.computerOf(ctx, hash)
		if err != nil {
			return err
		}
		c := feed.Credential{Hash: hash, Computer: id}
		found(c)
		out, err = s.readSnapshot(ctx, c)
		return err
	})
	return out, err
}

// nextSnapshot is firstSnapshot for who was told already, and does not count as asking.
func (s *Agents) nextSnapshot(ctx context.Context, c feed.Credential) (controlapi.Snapshot, error) {
	return s.readSnapshot(credentialTurn(ctx, c.Hash), c)
}

// computerOf is whose credential has this hash, if it is good: to be looked at again
// with whatever is decided.
func (s *Agents) computerOf(ctx context.Context, hash string) (id string, err error) {
	if id, ok := s.hints.Get(hash); ok {
		return id, nil
	}
	return viewedOf(ctx, s.core, kv.Rows{Keys: []string{keyCredential(hash)}}, func(tx *txn) (string, error) {
		return find[string](tx, keyCredential(hash), credentialUnknown())
	})
}

// readSnapshot is the snapshot for the computer of a credential, if that is its own.
func (s *Agents) readSnapshot(ctx context.Context, from feed.Credential) (controlapi.Snapshot, error) {
	rows := snapshotRows(from.Computer)
	rows.Keys = append(rows.Keys, keyCredential(from.Hash))
	reading := s.reading(from.Computer)
	out, err := viewedOf(ctx, s.core, rows, func(tx *txn) (controlapi.Snapshot, error) {
		c, err := computerByCredential(tx, from.Hash)
		if err == nil && c.ID != from.Computer {
			err = credentialUnknown()
		}
		if err != nil {
			return controlapi.Snapshot{}, err
		}
		return reading.snapshot(tx, c)
	})
	s.hints.Learn(from.Hash, from.Computer, s.now(), err)
	return out, err
}

// snapshotRows are the rows of a snapshot.
func snapshotRows(computerID string) kv.Rows {
	return kv.Rows{
		Keys: []string{keyComputer(computerID), keyComputerApps(computerID), keyComputerKnocks(computerID), keyChange(computerID), keyComputerPasskeys(computerID), keyComputerDomains(computerID)},
		Prefixes: []string{
			keyRevokedGrants(computerID), keyPersons(computerID), keyPasswords(computerID),
			keyKnocks(computerID), mail.UndeliveredRows(computerID), keySuspended(SuspendClient, ""),
		},
		Indexes: []kv.Index{{Prefix: keyComputerGrants(computerID), Row: keyGrant("")}},
	}
}

// relaysUsed is to how many relays an agent is connected; the others are spare.
const relaysUsed = 2

// reading is what a snapshot has that is not in the store.
type reading struct {
	*Agents
	relays []controlapi.Relay
	now    time.Time
}

func (s *Agents) reading(id string) reading { return reading{s, s.relaysFor(id), s.now()} }

// snapshot is everything the agent of c needs to decide who may open what. Its version is a hash of its content, so that whatever
// changes it, a new relay address as well as a person, makes it another version.
func (s reading) snapshot(tx *txn, c computer) (out controlapi.Snapshot, err error) {
	out = controlapi.Snapshot{
		Computer:   s.computer(c),
		PublicKeys: s.keys.Public(),
		Billing:    controlapi.Billing{Plan: "self-hosted", Standing: "good"},
		Relays:     s.relays[:min(relaysUsed, len(s.relays))],

		UpdateNotice: s.cfg.UpdateNotice,
		Challenges:   s.cfg.Challenges,
	}
	if len(s.relays) > relaysUsed {
		out.SpareRelays = s.relays[relaysUsed:]
	}
	out.RevokedGrants = rows[controlapi.RevokedGrant](tx, keyRevokedGrants(c.ID))
	out.People = []controlapi.Person{}
	people, reported := map[string]person{}, controlapi.Apps{}
	for _, row := range each[person](tx, keyPersons(c.ID)) {
		p := row.asOf(s.now)
		wire := p.wire(s.now)
		wire.Filled = s.filled(row, c)
		out.People, people[p.AccountID] = append(out.People, wire), p
		if len(row.ByGroup) > 0 {
			if reported.Groups == nil {
				reported.Groups = map[string]map[string]time.Time{}
			}
			reported.Groups[p.AccountID] = row.ByGroup
		}
	}
	suspended := map[string]time.Time{} // clients
	for _, row := range each[Suspension](tx, keySuspended(SuspendClient, "")) {
		suspended[row.ID] = row.At
	}
	grants := sha256.New()
	for g := range eachGrant(tx, keyComputerGrants(c.ID)) {
		// All else of a grant never changes, or with each use.
		fmt.Fprintf(grants, "%s %d%s\n", g.ID, g.IndexedAt.Unix(), strings.Join(append([]string{""}, g.Apps...), " "))
		out.Grants = hex.EncodeToString(grants.Sum(nil)[:8])
		// While one of its three is suspended; so agents that know of no suspension refuse it, too.
		if since := cmp.Or(suspended[g.ClientID], people[g.AccountID].Suspended, c.Suspended); !since.IsZero() {
			out.RevokedGrants = append(out.RevokedGrants, controlapi.RevokedGrant{ID: g.ID, At: since})
		}
		if controlapi.IsLimitedGrant(g.ID) {
			if out.GrantApps == nil {
				out.GrantApps = map[string][]string{}
			}
			out.GrantApps[g.ID] = g.Apps
		}
	}
	tx.do(func(in kv.Tx) (err error) {
		out.Undelivered, err = mail.Undelivered(in, c.ID)
		return err
	})
	if out.Passwords = snapshotPasswords(tx, c.ID, people); !c.Suspended.IsZero() {
		out.Passwords, out.Suspended = nil, new(s.Suspended(c.Suspended))
	}
	out.Passkeys, _ = get[[]controlapi.AddedPasskey](tx, keyComputerPasskeys(c.ID))
	if s.now.Before(c.Recovering) {
		waits, _ := get[recovering](tx, keyRecovering(c.OwnerID))
		out.Recovering = waits.Until
	}
	for _, p := range s.cfg.Providers {
		out.Providers = append(out.Providers, p.Name)
	}
	out.Domains = s.wireDomains(tx, c)
	out.Knocks, out.Knocking = snapshotKnocks(tx, c.ID, people)
	reported.Apps, _ = get[[]controlapi.App](tx, keyComputerApps(c.ID))
	reported.Knocks, reported.TellOff, reported.Fills, reported.CertificateEnds = out.Knocking, c.TellOff, c.Fills, c.CertificateEnds
	out.Reported = reported.Digest()
	b, err := json.Marshal(out)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(b)
	out.Version = hex.EncodeToString(sum[:16])
	// No content, so no part of the version.
	out.Line = *s.line.Load()
	out.Change, _ = get[int64](tx, keyChange(c.ID))
	return out, nil
}
