package control

import (
	"context"
	"time"

	"porchlight/control/controlapi"
)

// Export is what is kept of an account, for its person. Secrets are kept as hashes only, which
// are of no use to them, and are left out.
type Export struct {
	Email     string             `json:"email"`
	CreatedAt time.Time          `json:"createdAt"`
	MailOff   bool               `json:"mailOff"` // mail does not sign them in
	Codes     int                `json:"recoveryCodesLeft"`
	Computers []ExportedComputer `json:"computers"`
	Shared    []ExportedShare    `json:"shared"`
	Passkeys  []ExportedKey      `json:"passkeys"`
	Providers []ExportedKey      `json:"providers"`
	Passwords []ExportedKey      `json:"appPasswords"`
	Clients   []ExportedKey      `json:"connectedApps"`
	Sessions  []ExportedSession  `json:"sessions"`
}

// ExportedComputer is one of their own.
type ExportedComputer struct {
	Address   string              `json:"address"`
	Machine   string              `json:"machine"`
	Platform  string              `json:"platform"`
	CreatedAt time.Time           `json:"createdAt"`
	LastSeen  time.Time           `json:"lastSeenAt,omitzero"`
	People    []controlapi.Person `json:"people"`
	Domains   []controlapi.Domain `json:"ownDomains"`
	Carried   []UsageDay          `json:"carried"`
}

// ExportedShare is what somebody shares with them.
type ExportedShare struct {
	Address string                  `json:"address"`
	Owner   string                  `json:"owner"`
	Status  controlapi.PersonStatus `json:"status"`
	Apps    []string                `json:"apps"`
}

// ExportedKey is a way in: what it is called, and where it leads.
type ExportedKey struct {
	Name       string    `json:"name"`
	For        string    `json:"for,omitempty"` // a computer's address, an app's, or of mail at a provider
	Apps       []string  `json:"apps,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
}

// ExportedSession is a browser that is signed in.
type ExportedSession struct {
	Browser    string           `json:"browser"`
	System     string           `json:"system"`
	Address    string           `json:"address"` // that it signed in from
	Proof      controlapi.Proof `json:"proof"`
	CreatedAt  time.Time        `json:"createdAt"`
	LastUsedAt time.Time        `json:"lastUsedAt"`
}

// Export is Kept for its person to take along.
func (s *Accounts) Export(ctx context.Context, session Session) (Export, error) {
	out, err := s.Kept(ctx, session)
	if err == nil {
		s.noteOften("exported", session.Account.ID, "")
	}
	return out, err
}

// Kept is what is kept of the account of a session. It refuses with CodeUnauthorized one that
// is not fresh: it names everybody the account has to do with.
func (s *Accounts) Kept(ctx context.Context, session Session) (Export, error) {
	return viewed(ctx, s.core, func(tx *txn) (Export, error) {
		if !tx.stillFresh(session) {
			return Export{}, refuse(controlapi.CodeUnauthorized, "Your data is exported after a sign-in from the last ten minutes. Sign in again.")
		}
		account, err := find[Account](tx, keyAccount(session.Account.ID), noSession())
		if err != nil {
			return Export{}, err
		}
		codes, _ := get[recovery](tx, keyRecovery(account.Email))
		out := Export{
			Email: account.Email, CreatedAt: account.CreatedAt, MailOff: account.MailOff, Codes: len(codes.Hashes),
			Computers: []ExportedComputer{}, Shared: []ExportedShare{}, Passkeys: []ExportedKey{}, Providers: []ExportedKey{}, Passwords: []ExportedKey{}, Clients: []ExportedKey{}, Sessions: []ExportedSession{},
		}
		for computerID := range below(tx, keyMemberships(account.ID)) {
			s.exportComputer(tx, &out, account, computerID)
		}
		for _, row := range eachPasskey(tx, account.ID) {
			out.Passkeys = append(out.Passkeys, ExportedKey{Name: row.Name, CreatedAt: row.CreatedAt, LastUsedAt: row.LastUsedAt})
		}
		for _, row := range eachLogin(tx, account.ID) {
			out.Providers = append(out.Providers, ExportedKey{Name: s.label(row), For: row.Email, CreatedAt: row.CreatedAt, LastUsedAt: row.LastUsedAt})
		}
		for g := range eachGrant(tx, keyAccountGrants(account.ID)) {
			c, _ := get[computer](tx, keyComputer(g.ComputerID))
			wire := g.wire()
			out.Clients = append(out.Clients, ExportedKey{
				Name: wire.ClientName, For: s.computer(c).URL, Apps: labelsOf(tx, c.ID, wire.Apps), CreatedAt: wire.CreatedAt, LastUsedAt: wire.LastUsedAt,
			})
		}
		for _, row := range eachSession(tx, account.ID) {
			out.Sessions = append(out.Sessions, ExportedSession{
				Browser: row.Device.Browser, System: row.Device.System, Address: row.Client, Proof: row.of(account).Proof, CreatedAt: row.CreatedAt, LastUsedAt: row.LastUsedAt,
			})
		}
		return out, nil
	})
}

// exportComputer adds one computer that the account has to do with, and its passwords there.
func (s *core) exportComputer(tx *txn, out *Export, account Account, computerID string) {
	c, found := get[computer](tx, keyComputer(computerID))
	p, _ := get[person](tx, keyPerson(computerID, account.ID))
	if !found {
		return
	}
	if c.OwnerID == account.ID {
		own := ExportedComputer{Address: s.computer(c).URL, Machine: c.Machine, Platform: c.Platform, CreatedAt: c.CreatedAt, People: []controlapi.Person{}, Domains: s.wireDomains(tx, c), Carried: tx.usage(c.ID)}
		own.LastSeen, _ = get[time.Time](tx, keyComputerSeen(c.ID))
		for _, other := range each[person](tx, keyPersons(c.ID)) {
			own.People = append(own.People, other.wire(tx.now))
		}
		out.Computers = append(out.Computers, own)
	} else {
		owner, _ := get[Account](tx, keyAccount(c.OwnerID))
		apps := p.asOf(tx.now).Apps
		out.Shared = append(out.Shared, ExportedShare{Address: s.computer(c).URL, Owner: owner.Email, Status: p.Status, Apps: append([]string{}, labelsOf(tx, c.ID, apps)...)})
	}
	for _, row := range each[appPassword](tx, keyPersonPasswords(c.ID, account.ID)) {
		out.Passwords = append(out.Passwords, ExportedKey{
			Name: row.Name, For: s.computer(c).URL, Apps: labelsOf(tx, c.ID, []string{row.AppID}), CreatedAt: row.CreatedAt,
		})
	}
}
