package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
	"porchlight/control/dnslook"
	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

const (
	// lookEvery is how often it is asked which domains are due.
	lookEvery = 5 * time.Second
	// looksAtOnce and looksBatch bound the looks of one node.
	looksAtOnce = 16
	looksBatch  = 256
	// lookLease is how long another node leaves one alone that is being looked at.
	lookLease = 2 * time.Minute
	// mostLooks are those at once, beside these, that somebody waits for: each has several
	// sockets open while resolvers are silent, and nobody waits longer than lookTurn to begin.
	mostLooks = 64
	lookTurn  = 3 * time.Second
)

// dueDomain is one line of the index of domains by when they are looked at.
type dueDomain struct{ key, computer, name string }

func (s *Domains) lookSoon() { broadcast.Raise(s.wake) }

// run looks at what is due, until ctx is done.
func (s *Domains) run(ctx context.Context) error {
	if s.looker == nil {
		return nil
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := s.lookAtDue(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("looking at own domains failed; it is tried again", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.wake:
		}
	}
}

// lookAtDue looks at everything whose time has come.
func (s *Domains) lookAtDue(ctx context.Context) error {
	for {
		due, err := s.due(ctx)
		if err != nil || len(due) == 0 {
			return err
		}
		var g errgroup.Group // one that fails ends no other
		g.SetLimit(looksAtOnce)
		for _, d := range due {
			g.Go(func() error { return s.carryOut(ctx, d) })
		}
		if err := g.Wait(); err != nil || len(due) < looksBatch {
			return err
		}
	}
}

func (s *Domains) due(ctx context.Context) ([]dueDomain, error) {
	first, err := viewedOf(ctx, s.core, kv.Rows{First: []string{keyDomainsDue}}, func(tx *txn) ([]dueDomain, error) {
		return dueDomains(tx, 1), nil
	})
	if err != nil || len(first) == 0 {
		return nil, err
	}
	return viewed(ctx, s.core, func(tx *txn) ([]dueDomain, error) { return dueDomains(tx, looksBatch), nil })
}

// dueDomains are the first rows of the index, as far as their time has come.
func dueDomains(tx *txn, most int) (due []dueDomain) {
	for _, it := range tx.scan(keyDomainsDue, "", most) {
		parts := strings.Split(it.Key[len(keyDomainsDue):], "/")
		if at, err := time.Parse(endTime, parts[0]); len(parts) == 3 && err == nil && at.After(tx.now) {
			break
		}
		d := dueDomain{key: it.Key}
		if len(parts) == 3 {
			d.computer, d.name = parts[1], parts[2]
		}
		due = append(due, d)
	}
	return due
}

// carryOut looks at one domain that is due, if no other node does. Its next look is put off
// first, so that a crash or a slow resolver costs one look.
func (s *Domains) carryOut(ctx context.Context, due dueDomain) error {
	leased, err := updated(ctx, s.core, func(tx *txn) (bool, error) {
		if _, found := get[struct{}](tx, due.key); !found {
			return false, nil // another node was sooner
		}
		all, _ := get[[]domain](tx, keyComputerDomains(due.computer))
		i := domainOf(all, due.name)
		if i < 0 || keyDomainDue(all[i].Next, due.computer, due.name) != due.key {
			tx.delete(due.key)
			return false, nil
		}
		if !all[i].routed(tx.now) { // one that is routed is looked at whatever was spent
			if tx.spend(budgetDomains.of(due.computer)) != nil {
				tx.leaseDomain(due.computer, all, i, lookAgain)
				return false, nil
			}
		}
		tx.leaseDomain(due.computer, all, i, lookLease)
		return true, nil
	})
	if err != nil || !leased {
		return err
	}
	_, err = s.look(ctx, due.computer, due.name)
	if IsRefusal(err, controlapi.CodeNotFound) {
		return nil // removed meanwhile
	}
	return err
}

// leaseDomain puts the next look at a domain off. Its agent is told nothing.
func (t *txn) leaseDomain(computerID string, all []domain, i int, by time.Duration) {
	after := slices.Clone(all)
	after[i].Next = t.now.Add(by)
	t.putUntold(computerID, all, after, i)
}

// putUntold is putDomains where one has changed in nothing that its agent is told.
func (t *txn) putUntold(computerID string, before, after []domain, i int) {
	t.delete(keyDomainDue(before[i].Next, computerID, before[i].Name))
	t.put(keyDomainDue(after[i].Next, computerID, after[i].Name), struct{}{}, 0)
	t.put(keyComputerDomains(computerID), after, 0)
}

// question is what a look was begun with.
type question struct {
	domain domain
	holder string // the computer that had the name then; empty for none
	wanted dnslook.Wanted
}

// look asks the resolvers for a domain, and has what they say count.
func (s *Domains) look(ctx context.Context, computerID, name string) (controlapi.Domain, error) {
	asking, err := viewed(ctx, s.core, func(tx *txn) (question, error) {
		c, _ := get[computer](tx, keyComputer(computerID))
		apps, _ := get[[]controlapi.App](tx, keyComputerApps(computerID))
		all, _ := get[[]domain](tx, keyComputerDomains(computerID))
		i := domainOf(all, name)
		if i < 0 {
			return question{}, noSuchDomain()
		}
		app, _ := appOf(apps, all[i].AppID)
		holder, _ := get[domainHolder](tx, keyDomain(name))
		return question{all[i], holder.ComputerID, s.wanted(c, all[i], app)}, nil
	})
	if err != nil {
		return controlapi.Domain{}, err
	}
	found := s.looker.Look(ctx, asking.wanted)
	if err := ctx.Err(); err != nil { // not answered, for a reason that is ours
		return controlapi.Domain{}, err
	}
	return s.looked(ctx, computerID, asking, found)
}

// looked writes what a look found, unless the domain is another one by now. Where another
// computer was proven to have the name meanwhile, what was found is older than that, and
// counts for nothing.
func (s *Domains) looked(ctx context.Context, computerID string, asked question, found dnslook.Found) (controlapi.Domain, error) {
	before := asked.domain
	defer s.routes.forget(before.Name)
	return updated(ctx, s.core, func(tx *txn) (controlapi.Domain, error) {
		c, _ := get[computer](tx, keyComputer(computerID))
		apps, _ := get[[]controlapi.App](tx, keyComputerApps(computerID))
		all, _ := get[[]domain](tx, keyComputerDomains(computerID))
		i := domainOf(all, before.Name)
		if i < 0 || all[i].Bits != before.Bits {
			return controlapi.Domain{}, noSuchDomain()
		}
		if holder, _ := get[domainHolder](tx, keyDomain(before.Name)); holder.ComputerID != "" && holder.ComputerID != computerID && holder.ComputerID != asked.holder {
			return s.wireDomain(c, all[i], apps), nil
		}
		after := slices.Clone(all)
		after[i] = all[i].next(found, tx.now)
		switch was, is := all[i].State, after[i].State; {
		case was != is && is == controlapi.DomainProven:
			tx.note("domain-proven", c.OwnerID, before.Name+" at "+c.ID)
		case was != is && is == controlapi.DomainWaiting:
			tx.note("domain-ended", c.OwnerID, before.Name+" at "+c.ID)
		}
		if sameToAgent(all[i], after[i]) {
			tx.putUntold(computerID, all, after, i)
		} else {
			tx.putDomains(computerID, all, after)
		}
		return s.wireDomain(c, after[i], apps), nil
	})
}

// sameToAgent says whether two states of a domain look the same to its agent.
func sameToAgent(a, b domain) bool {
	return a.State == b.State && a.Since.Equal(b.Since) && a.Held.Equal(b.Held) && a.Why == b.Why && slices.Equal(a.CAA, b.CAA) && (a.CAA == nil) == (b.CAA == nil)
}

// Look carries out POST PathDomainsLook: before each certificate, and when the owner asks.
func (s *Domains) Look(ctx context.Context, computerID string, named controlapi.NamedDomain) (controlapi.Domain, error) {
	if err := s.offered(); err != nil {
		return controlapi.Domain{}, err
	}
	name := spelt(named.Name)
	err := s.update(ctx, func(tx *txn) error {
		all, _ := get[[]domain](tx, keyComputerDomains(computerID))
		i := domainOf(all, name)
		switch {
		case i < 0:
			return noSuchDomain()
		case all[i].routed(tx.now):
			return tx.spend(budgetDomain.of(computerID, name))
		}
		return tx.spend(budgetDomains.of(computerID))
	})
	if err != nil {
		return controlapi.Domain{}, err
	}
	return s.lookInTurn(ctx, computerID, name)
}

// lookInTurn is look for somebody who waits for it. Many are refused.
func (s *Domains) lookInTurn(ctx context.Context, computerID, name string) (controlapi.Domain, error) {
	late := time.NewTimer(lookTurn)
	defer late.Stop()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
		return s.look(ctx, computerID, name)
	case <-late.C:
		return controlapi.Domain{}, &controlapi.Error{Code: controlapi.CodeUnavailable, Message: busySentence, RetryAfter: lookTurn}
	case <-ctx.Done():
		return controlapi.Domain{}, ctx.Err()
	}
}

// lookAtHolder has the DNS asked anew whether a name is still that of the computer which has
// it, when another one claims it.
func (s *Domains) lookAtHolder(ctx context.Context, computerID, name string) error {
	holder, err := viewed(ctx, s.core, func(tx *txn) (string, error) {
		holder, _ := get[domainHolder](tx, keyDomain(name))
		return holder.ComputerID, nil
	})
	if err != nil || holder == "" || holder == computerID {
		return err
	}
	if err := s.update(ctx, func(tx *txn) error { return tx.spend(budgetDomains.of(computerID)) }); err != nil {
		return err
	}
	_, err = s.lookInTurn(ctx, holder, name)
	if IsRefusal(err, controlapi.CodeNotFound) {
		return nil
	}
	return err
}
