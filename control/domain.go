package control

import (
	"context"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"time"

	"crypto/rand"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"porchlight/control/controlapi"
	"porchlight/control/dnslook"
	"porchlight/internal/words"
)

// Own domains. A computer's owner claims a DNS name for one of their apps and is given
// records; whoever can write those into the DNS of the name has it. Several computers may
// claim one name, and claiming brings nothing: the name is a computer's (keyDomain) from a
// look that found its records until a look that did not, see next. So whatever was freed,
// forgotten or left pointing here is proven anew by who has it now, with bits that nobody
// had before.
//
// domainlook.go looks, domainroute.go says whose a name is.

// Domains are those of all computers.
type Domains struct {
	*core
	looker *dnslook.Looker // nil where they are not offered
	wake   chan struct{}   // there is one to look at
	turns  chan struct{}   // one of each look that somebody waits for
	routes domainRoutes
}

// domain as stored: a row of a computer has all of its own.
type domain struct {
	Name  string                 `json:"name"`
	AppID string                 `json:"appId"`
	Bits  string                 `json:"bits"` // what its record TXT says; anybody may read it
	State controlapi.DomainState `json:"state"`
	Since time.Time              `json:"since,omitzero"` // of DomainGone and DomainUnsure
	Why   controlapi.DomainWhy   `json:"why,omitempty"`
	CAA   []string               `json:"caa,omitzero"`
	Next  time.Time              `json:"next"` // when it is looked at again
	Tries int                    `json:"tries,omitempty"`
	Held  time.Time              `json:"held,omitzero"`  // see controlapi.Domain
	Found time.Time              `json:"found,omitzero"` // when its records were found last
}

// domainHolder says whose a name is.
type domainHolder struct {
	ComputerID string `json:"computerId"`
}

func newDomains(s *core) *Domains {
	d := &Domains{core: s, wake: make(chan struct{}, 1), turns: make(chan struct{}, mostLooks)}
	if len(s.cfg.Resolvers) > 1 {
		d.looker = dnslook.New(s.cfg.Resolvers)
	}
	return d
}

const (
	// goneFor and unsureFor are how long a name is routed after its records were last found.
	goneFor   = 24 * time.Hour
	unsureFor = 7 * 24 * time.Hour
	// overdueFor is how long a proven one is routed whose next look does not come.
	overdueFor = 24 * time.Hour
	// lookDaily is how often a proven name is looked at, lookAgain one in trouble.
	lookDaily = 24 * time.Hour
	lookAgain = time.Hour
	// firstLook is the wait after the first look in vain; it doubles up to lookDaily.
	firstLook = 30 * time.Second
	// maxOwnName is what isHostName takes: nobody could sign in at a longer one. It leaves room
	// for controlapi.DomainPrefix.
	maxOwnName = 200
)

// ends is when visitors stop being brought unless it is looked at before: zero where none are.
func (d domain) ends() time.Time {
	if d.State == controlapi.DomainProven {
		return d.Found.Add(lookDaily + overdueFor)
	}
	return d.until()
}

// until is when a domain that is not proven stops being routed.
func (d domain) until() time.Time {
	switch d.State {
	case controlapi.DomainGone:
		return d.Since.Add(goneFor)
	case controlapi.DomainUnsure:
		return d.Since.Add(unsureFor)
	}
	return time.Time{}
}

// routed says whether visitors of the name are brought to its computer.
func (d domain) routed(now time.Time) bool {
	return d.State != controlapi.DomainWaiting && now.Before(d.ends())
}

// next is a domain after a look: the one place that decides its state.
func (d domain) next(found dnslook.Found, now time.Time) domain {
	was := d
	d.Why, d.CAA, d.Tries = found.Why, found.CAA, was.Tries+1
	switch {
	case found.Verdict == dnslook.Proven:
		d.State, d.Since, d.Found, d.Tries = controlapi.DomainProven, time.Time{}, now, 0
		if !was.routed(now) {
			d.Held = now
		}
	case found.Verdict == dnslook.Elsewhere, !was.routed(now):
		d.State, d.Since = controlapi.DomainWaiting, time.Time{}
	case found.Verdict == dnslook.Gone && was.State != controlapi.DomainGone:
		d.State, d.Since = controlapi.DomainGone, now
	case found.Verdict == dnslook.Unsure && was.State == controlapi.DomainProven:
		d.State, d.Since = controlapi.DomainUnsure, now
	}
	if found.Verdict == dnslook.Gone && found.Why.Astray() && !was.Why.Astray() {
		d.Held = now // somebody else's, for as long as it may be
	}
	switch d.State {
	case controlapi.DomainProven:
		d.Next = now.Add(lookDaily)
	case controlapi.DomainWaiting:
		d.Next = now.Add(min(lookDaily, firstLook<<min(d.Tries, 20)))
	default: // no later than when it is over
		d.Next = now.Add(lookAgain)
		if end := d.until(); end.Before(d.Next) {
			d.Next = end
		}
	}
	return d
}

// offered refuses where own domains are not looked up.
func (s *Domains) offered() error {
	if s.looker == nil {
		return refuse(controlapi.CodeForbidden, "This server offers no own domains: it was not told which resolvers to ask.")
	}
	return nil
}

// unadorned is a name as people write one, without what does not belong to it.
func unadorned(name string) string { return strings.TrimSuffix(strings.TrimSpace(name), ".") }

// spelt is how a name is kept that was written in another spelling of it.
func spelt(name string) string {
	name = unadorned(name)
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		return ascii
	}
	return strings.ToLower(name)
}

// clean is a name as it is kept, or a refusal of what cannot be an own domain.
func (s *Domains) clean(name string) (string, error) {
	invalid := func(sentence string) (string, error) { return "", refuse(controlapi.CodeInvalid, sentence) }
	name = unadorned(name)
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return invalid("An IP address cannot be an own domain. Give a name, like notes.example.org.")
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil || !isHostName(ascii) || !strings.Contains(ascii, ".") || endsInNumber(ascii) {
		return invalid("That is not a domain name, like notes.example.org.")
	}
	if suffix, _ := publicsuffix.PublicSuffix(ascii); suffix == ascii {
		return invalid("That is no name of one owner: others have names below it. Give a name below it that is yours.")
	}
	for _, own := range []string{s.cfg.Domain, s.cfg.AuthHost} {
		if ascii == own || strings.HasSuffix(ascii, "."+own) || strings.HasSuffix(own, "."+ascii) {
			return invalid("That name is this server's own.")
		}
	}
	return ascii, nil
}

// endsInNumber says whether browsers take a name for an address (WHATWG URL, "ends in a number").
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	hex, is := strings.CutPrefix(last, "0x")
	return strings.Trim(last, "0123456789") == "" || is && strings.Trim(hex, "0123456789abcdef") == ""
}

// wanted is what the DNS has to say of a domain.
func (s *Domains) wanted(c computer, d domain, app controlapi.App) dnslook.Wanted {
	root := c.Name + "." + s.cfg.Domain
	return dnslook.Wanted{Name: d.Name, Text: d.Bits, Host: app.Name + "." + root, Root: root, Domain: s.cfg.Domain}
}

// wireDomain is a domain as its agent is told it.
func (s *core) wireDomain(c computer, d domain, apps []controlapi.App) controlapi.Domain {
	out := controlapi.Domain{Name: d.Name, AppID: d.AppID, State: d.State, Until: d.until(), Held: d.Held, Why: d.Why, CAA: d.CAA}
	out.Records = []controlapi.DNSRecord{{Type: "TXT", Name: controlapi.DomainPrefix + d.Name, Value: d.Bits}}
	if app, found := appOf(apps, d.AppID); found {
		out.Records = append(out.Records, controlapi.DNSRecord{Type: "CNAME", Name: d.Name, Value: app.Name + "." + c.Name + "." + s.cfg.Domain})
	}
	return out
}

func appOf(apps []controlapi.App, id string) (controlapi.App, bool) {
	i := slices.IndexFunc(apps, func(a controlapi.App) bool { return a.ID == id })
	if i < 0 {
		return controlapi.App{}, false
	}
	return apps[i], true
}

func domainOf(all []domain, name string) int {
	return slices.IndexFunc(all, func(d domain) bool { return d.Name == name })
}

func noSuchDomain() error {
	return refuse(controlapi.CodeNotFound, "This computer has no such own domain.")
}

// List carries out GET PathDomains.
func (s *Domains) List(ctx context.Context, computerID string) (controlapi.Domains, error) {
	return viewed(ctx, s.core, func(tx *txn) (controlapi.Domains, error) {
		c, _ := get[computer](tx, keyComputer(computerID))
		return controlapi.Domains{Domains: s.wireDomains(tx, c)}, nil
	})
}

// wireDomains are all of a computer, by name.
func (s *core) wireDomains(tx *txn, c computer) []controlapi.Domain {
	out := []controlapi.Domain{}
	all, _ := get[[]domain](tx, keyComputerDomains(c.ID))
	if len(all) == 0 {
		return out
	}
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	for _, d := range all {
		out = append(out, s.wireDomain(c, d, apps))
	}
	return out
}

// Add carries out POST PathDomains.
func (s *Domains) Add(ctx context.Context, computerID string, add controlapi.AddDomain) (controlapi.Domain, error) {
	if err := s.offered(); err != nil {
		return controlapi.Domain{}, err
	}
	name, err := s.clean(add.Name)
	if err != nil {
		return controlapi.Domain{}, err
	}
	if err := s.lookAtHolder(ctx, computerID, name); err != nil {
		return controlapi.Domain{}, err
	}
	var raw [16]byte
	rand.Read(raw[:])
	bits := base64.RawURLEncoding.EncodeToString(raw[:])
	out, err := updated(ctx, s.core, func(tx *txn) (controlapi.Domain, error) {
		c, err := find[computer](tx, keyComputer(computerID), credentialUnknown())
		if err != nil {
			return controlapi.Domain{}, err
		}
		apps, _ := get[[]controlapi.App](tx, keyComputerApps(computerID))
		if _, found := appOf(apps, add.AppID); !found {
			return controlapi.Domain{}, refuse(controlapi.CodeInvalid, "This computer has no such app.")
		}
		all, _ := get[[]domain](tx, keyComputerDomains(computerID))
		if i := domainOf(all, name); i >= 0 {
			if all[i].AppID != add.AppID {
				return controlapi.Domain{}, controlapi.Refuse(controlapi.CodeInvalid, words.Of("%s is for another app of this computer. Remove it first.", name))
			}
			return s.wireDomain(c, all[i], apps), nil
		}
		if err := s.mayClaim(tx, c, name, len(all)); err != nil {
			return controlapi.Domain{}, err
		}
		d := domain{Name: name, AppID: add.AppID, Bits: bits, State: controlapi.DomainWaiting, Next: tx.now}
		tx.putDomains(computerID, all, append(slices.Clone(all), d))
		tx.note("domain-added", c.OwnerID, name+" at "+c.ID)
		return s.wireDomain(c, d, apps), nil
	})
	if err == nil {
		s.lookSoon()
	}
	return out, err
}

// mayClaim refuses one domain too many, one try too many, and what another's computer has.
func (s *Domains) mayClaim(tx *txn, c computer, name string, have int) error {
	if have >= controlapi.MaxDomains {
		return refuse(controlapi.CodeForbidden, "This computer has as many own domains as a computer can have. Remove one first.")
	}
	if holder, found := get[domainHolder](tx, keyDomain(name)); found {
		if other, _ := get[computer](tx, keyComputer(holder.ComputerID)); other.OwnerID != c.OwnerID {
			return controlapi.Refuse(controlapi.CodeForbidden, words.Of("%s leads to somebody else's computer. If it is yours now, let it lead to your app first.", name))
		}
	}
	return tx.spend(budgetDomains.of(c.ID))
}

// Remove carries out POST PathDomainsRemove.
func (s *Domains) Remove(ctx context.Context, computerID string, named controlapi.NamedDomain) error {
	name := spelt(named.Name)
	defer s.routes.forget(name)
	return s.update(ctx, func(tx *txn) error {
		all, _ := get[[]domain](tx, keyComputerDomains(computerID))
		i := domainOf(all, name)
		if i < 0 {
			return noSuchDomain()
		}
		c, _ := get[computer](tx, keyComputer(computerID))
		tx.putDomains(computerID, all, slices.Delete(slices.Clone(all), i, i+1))
		tx.note("domain-removed", c.OwnerID, name+" at "+c.ID)
		return nil
	})
}

// dropDomains ends the own domains of a computer whose app is none of these.
func (t *txn) dropDomains(computerID string, apps []controlapi.App) {
	all, found := get[[]domain](t, keyComputerDomains(computerID))
	if !found {
		return
	}
	left := slices.DeleteFunc(slices.Clone(all), func(d domain) bool { _, there := appOf(apps, d.AppID); return !there })
	if len(left) < len(all) {
		t.putDomains(computerID, all, left)
	}
}

// putDomains writes the own domains of a computer, whose names are its from now on or not
// any more, and when each is looked at. A name that is here now is no other computer's.
func (t *txn) putDomains(computerID string, before, after []domain) {
	slices.SortFunc(after, func(a, b domain) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range before {
		t.delete(keyDomainDue(d.Next, computerID, d.Name))
		if i := domainOf(after, d.Name); i < 0 || after[i].State == controlapi.DomainWaiting {
			if holder, _ := get[domainHolder](t, keyDomain(d.Name)); holder.ComputerID == computerID {
				t.delete(keyDomain(d.Name))
			}
		}
	}
	for _, d := range after {
		t.put(keyDomainDue(d.Next, computerID, d.Name), struct{}{}, 0)
		if d.State != controlapi.DomainWaiting {
			t.takeDomain(computerID, d.Name)
		}
	}
	if len(after) == 0 {
		t.delete(keyComputerDomains(computerID))
	} else {
		t.put(keyComputerDomains(computerID), after, 0)
	}
	t.touch(computerID)
}

// takeDomain makes a name a computer's, and takes it off the one that had it.
func (t *txn) takeDomain(computerID, name string) {
	holder, found := get[domainHolder](t, keyDomain(name))
	if found && holder.ComputerID == computerID {
		return
	}
	t.put(keyDomain(name), domainHolder{computerID}, 0)
	if !found {
		return
	}
	all, _ := get[[]domain](t, keyComputerDomains(holder.ComputerID))
	if i := domainOf(all, name); i >= 0 {
		lost := slices.Clone(all)
		lost[i].State, lost[i].Since, lost[i].Why = controlapi.DomainWaiting, time.Time{}, controlapi.DomainOtherOfOurs
		lost[i].Next, lost[i].Tries = t.now.Add(firstLook), 0
		loser, _ := get[computer](t, keyComputer(holder.ComputerID))
		t.note("domain-ended", loser.OwnerID, name+" at "+loser.ID)
		t.putDomains(holder.ComputerID, all, lost)
	}
}
