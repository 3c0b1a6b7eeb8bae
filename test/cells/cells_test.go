package cells

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

const (
	manyCells, manyAccounts, manyPeople, manyResolvers = 3, 100, 3, 4
	steps                                              = 20_000
	// patience is for how many ticks an account may take no change while it moves.
	patience = 100
)

// run has everybody take random steps, one account of a hundred at a time on its way, and
// returns the first promise that is broken.
func run(seed uint64, wrong fault) error {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(manyCells, manyAccounts, manyResolvers, wrong)
	truth, changes := make([]map[int]bool, manyAccounts), make([]int, manyAccounts) // what was acknowledged
	for i := range truth {
		truth[i] = map[int]bool{}
	}
	servedAt, applied := make([]int, manyAccounts), make([]int, manyAccounts)
	var movers []*move
	moving := 0 // the account
	step := func() error {
		account := r.IntN(manyAccounts)
		if r.IntN(3) == 0 {
			account = moving // what happens there is what this is about
		}
		switch r.IntN(12) {
		case 0, 1, 2:
			if reached, _ := w.visit(r.IntN(manyResolvers), account, r.IntN(manyPeople)); !reached {
				return fmt.Errorf("a visit to account %d does not reach its computer", account)
			}
		case 3, 4:
			person, granted := r.IntN(manyPeople), r.IntN(2) == 0
			if !w.set(r.IntN(manyResolvers), account, person, granted) {
				break // and tries again
			}
			truth[account] = maps.Clone(truth[account])
			truth[account][person] = granted
			changes[account]++
		case 5, 6, 7:
			w.sync(account)
			c := w.computers[account]
			if c.change < applied[account] {
				return fmt.Errorf("the computer of account %d went back from change %d to %d", account, applied[account], c.change)
			}
			applied[account] = c.change
		case 8:
			w.tick()
			for account := range servedAt {
				if w.owners(account) == 1 {
					servedAt[account] = w.now
				} else if w.now-servedAt[account] > patience {
					return fmt.Errorf("account %d takes no change for %d ticks", account, patience)
				}
			}
		case 9: // somebody begins, or goes on with what another one left
			if len(movers) < 3 {
				m := w.left(r.IntN(manyAccounts))
				if m == nil {
					m = w.begin(r.IntN(manyAccounts), r.IntN(manyCells))
				}
				moving = m.account
				movers = append(movers, m)
			}
		default:
			if len(movers) == 0 {
				break
			}
			// Any of them may be slow for a long time, or die.
			if i := r.IntN(len(movers)); r.IntN(10) == 0 || !w.step(movers[i]) {
				movers = append(movers[:i], movers[i+1:]...)
			}
		}
		if n := w.owners(account); n > 1 {
			return fmt.Errorf("%d cells take changes of account %d", n, account)
		}
		return nil
	}
	for range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return w.settled(truth, changes)
}

// left is a mover for an account that is on its way, looked for from one on.
func (w *world) left(from int) *move {
	for i := range manyAccounts {
		if m := w.resume((from + i) % manyAccounts); m != nil {
			return m
		}
	}
	return nil
}

// owners is how many cells take changes of an account.
func (w *world) owners(account int) (n int) {
	for cell := range w.cells {
		if w.stateIn(cell, account) == serving {
			n++
		}
	}
	return n
}

// settled lets what is on its way arrive, and looks whether everything that was acknowledged
// is there, once, and at the computers.
func (w *world) settled(truth []map[int]bool, changes []int) error {
	for account := range truth {
		for m := w.resume(account); m != nil; m = w.resume(account) {
			for w.step(m) {
			}
		}
	}
	for range 4 * remembered {
		for account := range truth {
			w.sync(account)
		}
		w.tick()
	}
	for account, want := range truth {
		home := w.directory[account].cell
		for cell := range w.cells {
			if s := w.stateIn(cell, account); (cell == home) != (s == serving) || cell != home && s != absent {
				return fmt.Errorf("account %d belongs to cell %d, and in cell %d its state is %d", account, home, cell, s)
			}
		}
		r, c := w.cells[home][account], w.computers[account]
		if r.change != changes[account] || !maps.Equal(r.granted, want) {
			return fmt.Errorf("account %d: %d changes were acknowledged, and %d are there: %v, not %v", account, changes[account], r.change, r.granted, want)
		}
		if c.change != r.change || !maps.Equal(c.granted, want) || len(c.tunnels) != 1 {
			return fmt.Errorf("the computer of account %d has change %d of %d and %d tunnels", account, c.change, r.change, len(c.tunnels))
		}
	}
	return nil
}

const seeds = 40

// While accounts move, whoever moves them may die: no visit fails, no change that was
// acknowledged is lost, and never do two cells take them.
func TestAccountsMove(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		if err := run(seed, ""); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Each of the steps is needed: done wrong, a promise breaks.
func TestWrongStepsAreNoticed(t *testing.T) {
	t.Parallel()
	for _, wrong := range []fault{
		"takes changes while it leaves", "serves before the directory says so", "flips whatever the entry is", "goes back without a word",
		"leaves the old cell at once", "does not wait for the computer",
	} {
		var broken error
		for seed := uint64(0); seed < seeds && broken == nil; seed++ {
			broken = run(seed, wrong)
		}
		if broken == nil {
			t.Errorf("a move that %s breaks nothing", wrong)
		} else {
			t.Logf("%s: %v", wrong, broken)
		}
	}
}
