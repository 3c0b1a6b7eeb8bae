package control

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
)

// Grants: somebody let an OAuth client open, in their name, what they may open on
// one computer (docs/interface.md, States of a grant and its tokens).
//
// A grant is one row, and the hash of its one valid refresh token is in it, so
// using a token is one read and one write of that row, and of many concurrent
// uses one finds the hash it expects. The row lives as long as the token; a
// revoked one stays as long, to say that it was revoked. Indexes find it by
// account, computer and client while it is not revoked.

const (
	// grantLife is how long a grant lasts after its refresh token was last used.
	grantLife = 90 * 24 * time.Hour

	// indexSlide is how often the indexes of a grant in use are written again;
	// they outlive the row by as much.
	indexSlide = 24 * time.Hour

	// maxGrants and maxClientGrants are how many grants one account has, in all
	// and for one client. One more ends one that was not used for long, of the
	// same client if it has any: signing in again and again costs nobody else.
	maxGrants       = 200
	maxClientGrants = 20

	// maxGrantApps is how many apps a grant for some apps may be for, and
	// maxGrantedApps how many those of one computer may be for in all, each of them
	// counted once more: it keeps a snapshot below what a controlapi.Client reads.
	maxGrantApps   = 20
	maxGrantedApps = 10_000
)

// Grants are what people allowed OAuth clients, from the code to the tokens.
type Grants struct {
	*core
	clients *Clients
	parties parties // of grants refreshed lately
}

// grant as stored.
type grant struct {
	ID          string    `json:"id"`
	AccountID   string    `json:"accountId"`
	Email       string    `json:"email"` // as the account's, which never changes
	ClientID    string    `json:"clientId"`
	ClientName  string    `json:"clientName"`
	ComputerID  string    `json:"computerId"`
	RefreshHash string    `json:"refreshHash"`
	CreatedAt   time.Time `json:"createdAt"`
	LastUsedAt  time.Time `json:"lastUsedAt"`
	IndexedAt   time.Time `json:"indexedAt"`
	RevokedAt   time.Time `json:"revokedAt,omitzero"`
	// Apps are the ids of the apps it is for, sorted, where it is not for all: then it is
	// named so (controlapi.IsLimitedGrant), and ends with the last of them.
	Apps []string `json:"apps,omitempty"`
	// Asked are those that the client asked for; empty where it did not say.
	Asked []string `json:"asked,omitempty"`
	// Dropped says that a grant ended without anybody's wish: there were too many
	// of its client, its code was used twice, or another for single apps took its place.
	Dropped bool `json:"dropped,omitempty"`
	// Narrowed is the id of the one for single apps that took its place.
	Narrowed string `json:"narrowed,omitempty"`
}

// samePurpose says whether two grants are shown, and revoked, as one.
func (g grant) samePurpose(other grant) bool {
	return g.ClientID == other.ClientID && g.AccountID == other.AccountID && g.ComputerID == other.ComputerID
}

func (g grant) wire() controlapi.Grant {
	return controlapi.Grant{
		ID: g.ID, ClientID: g.ClientID, ClientName: g.ClientName, AccountID: g.AccountID, Email: g.Email,
		CreatedAt: g.CreatedAt, LastUsedAt: g.LastUsedAt, Apps: g.Apps,
	}
}

// roomForApps refuses when grants for some apps of a computer are for as many as they can
// be, or this one is for too many.
func (t *txn) roomForApps(computerID string, apps []string) error {
	if len(apps) == 0 {
		return nil
	}
	if len(apps) > maxGrantApps {
		return refuse(controlapi.CodeForbidden, "Choose 20 apps at most, or all of that computer.")
	}
	n := 1 + len(apps)
	for g := range eachGrant(t, keyComputerGrants(computerID)) {
		if len(g.Apps) > 0 {
			n += 1 + len(g.Apps)
		}
	}
	if n > maxGrantedApps {
		return refuse(controlapi.CodeForbidden, "As many programs were let into single apps of that computer as can be. Revoke some that are not used any more.")
	}
	return nil
}

// narrow takes apps from a grant for some apps, which ends without any. It is no use of
// the grant.
func (t *txn) narrow(g grant, apps []string) {
	switch {
	case len(apps) == len(g.Apps):
	case len(apps) == 0:
		t.revokeGrant(g.ID)
	default:
		g.Apps = apps
		// The store may keep one a little longer.
		t.put(keyGrant(g.ID), g, max(time.Second, g.LastUsedAt.Add(grantLife).Sub(t.now)))
		t.touch(g.ComputerID)
	}
}

func (g grant) indexes() []string {
	return []string{
		keyAccountGrants(g.AccountID) + g.ID,
		keyComputerGrants(g.ComputerID) + g.ID,
		keyClientGrants(g.ClientID) + g.ID,
	}
}

// putGrant stores a grant that was used now.
func (t *txn) putGrant(g grant) {
	g.LastUsedAt = t.now.UTC()
	if t.now.Sub(g.IndexedAt) >= indexSlide {
		g.IndexedAt = t.now.UTC()
		for _, key := range g.indexes() {
			t.put(key, struct{}{}, grantLife+indexSlide)
		}
		t.touch(g.ComputerID) // see Snapshot.Grants
	}
	t.put(keyGrant(g.ID), g, grantLife)
}

// revokeGrant ends a grant: refreshing is refused from this commit on, and the
// computer's agent is told to refuse the access tokens that are still out. One
// that has ended, or never was, is no error.
func (t *txn) revokeGrant(id string) { t.endGrant(id, false) }

// dropGrant is revokeGrant where nobody wished for it.
func (t *txn) dropGrant(id string) { t.endGrant(id, true) }

// dropGiven is dropGrant of what a code gave, and of what that was narrowed to.
func (t *txn) dropGiven(id string) {
	g, _ := get[grant](t, keyGrant(id))
	t.dropGrant(id)
	if g.Narrowed != "" {
		t.dropGrant(g.Narrowed)
	}
}

func (t *txn) endGrant(id string, dropped bool) {
	g, found := get[grant](t, keyGrant(id))
	if !found || !g.RevokedAt.IsZero() {
		return
	}
	g.RevokedAt, g.Dropped = t.now.UTC(), dropped
	t.put(keyGrant(id), g, grantLife)
	t.delete(g.indexes()...)
	t.note("grant-ended", g.AccountID, g.ID)
	row := controlapi.RevokedGrant{
		ID: g.ID, At: g.RevokedAt, ClientName: cmp.Or(controlapi.ClientHost(g.ClientID), g.ClientName), AccountID: g.AccountID, Email: g.Email, CreatedAt: g.CreatedAt,
	}
	t.put(keyRevokedGrants(g.ComputerID)+g.ID, row, controlapi.GrantMemory)
	t.touch(g.ComputerID)
}

// revokePersonsGrants ends every grant of an account for one computer: a person
// who was removed, and is perhaps invited again, must not find old clients at
// work.
func (t *txn) revokePersonsGrants(computerID, accountID string) {
	for g := range eachGrant(t, keyAccountGrants(accountID)) {
		if g.ComputerID == computerID {
			t.revokeGrant(g.ID)
		}
	}
}

// makeRoom ends a grant that was not used for longest when one more of a client
// would be too many. It ends no more than one: an account may hold more of a
// client from a time when that was allowed, and its devices keep them.
func (t *txn) makeRoom(accountID, clientID string) {
	all := slices.Collect(eachGrant(t, keyAccountGrants(accountID)))
	var same []grant
	for _, g := range all {
		if g.ClientID == clientID {
			same = append(same, g)
		}
	}
	if len(all) < maxGrants && len(same) < maxClientGrants {
		return
	}
	if len(same) > 0 {
		all = same
	}
	t.dropGrant(slices.MinFunc(all, func(a, b grant) int { return a.LastUsedAt.Compare(b.LastUsedAt) }).ID)
}

// eachGrant are the grants an index names.
func eachGrant(tx *txn, index string) iter.Seq[grant] {
	return func(yield func(grant) bool) {
		for _, g := range eachOf[grant](tx, index, keyGrant) {
			if g.RevokedAt.IsZero() && !yield(g) {
				return
			}
		}
	}
}

// AccountGrant is a row of an account's connected clients, with the computer it is
// for.
type AccountGrant struct {
	controlapi.Grant
	Computer controlapi.Computer
	Labels   []string // of Apps, sorted
}

// OfAccount lists what an account has allowed, a row for each client and
// computer, newest first.
func (s *Grants) OfAccount(ctx context.Context, accountID string) ([]AccountGrant, error) {
	return viewed(ctx, s.core, func(tx *txn) (out []AccountGrant, err error) {
		of := map[string][]controlapi.Grant{} // by computer
		for g := range eachGrant(tx, keyAccountGrants(accountID)) {
			of[g.ComputerID] = append(of[g.ComputerID], g.wire())
		}
		for id, grants := range of {
			c, found := get[computer](tx, keyComputer(id))
			if !found {
				continue
			}
			for _, row := range controlapi.FoldGrants(grants) {
				out = append(out, AccountGrant{Grant: row, Computer: s.computer(c), Labels: labelsOf(tx, id, row.Apps)})
			}
		}
		slices.SortFunc(out, func(a, b AccountGrant) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
		return out, nil
	})
}

// labelsOf are what apps of a computer are called, sorted.
func labelsOf(tx *txn, computerID string, ids []string) (labels []string) {
	if len(ids) == 0 {
		return nil
	}
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(computerID))
	for _, a := range apps {
		if slices.Contains(ids, a.ID) {
			labels = append(labels, a.Label)
		}
	}
	slices.Sort(labels)
	return labels
}

// OfComputer lists all grants for a computer, of every person, newest first.
func (s *Grants) OfComputer(ctx context.Context, computerID string) ([]controlapi.Grant, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]controlapi.Grant, error) {
		out := []controlapi.Grant{}
		for g := range eachGrant(tx, keyComputerGrants(computerID)) {
			out = append(out, g.wire())
		}
		slices.SortFunc(out, func(a, b controlapi.Grant) int { return b.CreatedAt.Compare(a.CreatedAt) })
		return out, nil
	})
}

// RevokeForAccount ends all that an account allowed the client of a grant on the
// grant's computer. It refuses with CodeNotFound when the account gave none of
// that id.
func (s *Grants) RevokeForAccount(ctx context.Context, accountID, id string) error {
	return s.revokeIf(ctx, id, func(g grant) bool { return g.AccountID == accountID })
}

// RevokeForComputer is the same for the grants of every person, since it is the
// owner's computer. It refuses with CodeNotFound when there is none of that id.
func (s *Grants) RevokeForComputer(ctx context.Context, computerID string, r controlapi.RevokeGrant) error {
	return s.revokeIf(ctx, r.ID, func(g grant) bool { return g.ComputerID == computerID })
}

func (s *Grants) revokeIf(ctx context.Context, id string, theirs func(grant) bool) error {
	none := refuse(controlapi.CodeNotFound, "That app is not connected any more.")
	if !idPattern.MatchString(id) {
		return none
	}
	return s.update(ctx, func(tx *txn) error {
		g, found := get[grant](tx, keyGrant(id))
		if !found || !theirs(g) {
			return none
		}
		tx.revokeRow(g)
		return nil
	})
}

// revokeRow ends a grant and all others of the same client, person and computer.
// One that was revoked before is done with: what was allowed since was allowed
// anew, and an old word that arrives late must not end it.
func (t *txn) revokeRow(g grant) {
	if !g.RevokedAt.IsZero() && !g.Dropped {
		return
	}
	for other := range eachGrant(t, keyAccountGrants(g.AccountID)) {
		if other.samePurpose(g) {
			t.revokeGrant(other.ID)
		}
	}
}

// parties remembers between whom the grants used lately are, which never
// changes: it saves a round trip and decides nothing. The zero value is ready.
type parties struct {
	mu         sync.Mutex
	young, old map[string]party // by grant, guarded by mu; young becomes old when it is full
}

type party struct{ client, account, computer string }

// maxParties bounds each of the two generations: some 4 MB in all.
const maxParties = 16 << 10

func (p *parties) of(grantID string) (party, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of, ok := p.young[grantID]; ok {
		return of, true
	}
	of, ok := p.old[grantID]
	return of, ok
}

func (p *parties) note(g grant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.young[g.ID]; ok {
		return
	}
	if p.young == nil || len(p.young) >= maxParties {
		p.young, p.old = make(map[string]party), p.young
	}
	p.young[g.ID] = party{g.ClientID, g.AccountID, g.ComputerID}
}
