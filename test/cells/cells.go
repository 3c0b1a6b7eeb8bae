// Package cells is a model of how accounts are spread over cells, each a database and its
// nodes, and of how one moves while people visit it. Nothing of the product is in it: it
// answers whether the steps of a move are right before anybody builds them.
//
// A directory says which cell an account belongs to. Cells say nothing to each other: a
// mover takes the steps, may die after any of them, and another one goes on or goes back
// without knowing whether the first is dead.
//
//	leave   the old cell takes no more changes of the account; it goes on answering
//	copy    the new cell has the rows, and serves nobody
//	call    the computer was told by the old cell, and is connected to the new one as well
//	flip    the directory names the new cell, unless its entry has changed since
//	serve   the new cell has read that in the directory, and takes changes
//	forget  the old cell keeps a note of where the account went, for as long as name
//	        servers may remember the old address, and then nothing
//
// The computer goes on asking the old cell until that has noted where it went, and keeps its
// connection to it for as long: a visitor comes by either.
package cells

import "maps"

// state of an account in one cell.
type state int

const (
	absent state = iota
	serving
	leaving  // answers, and takes no changes
	arriving // was copied here; answers nobody
	noted    // is somewhere else
)

// remembered is how many ticks a name server may go on giving the address it knows.
const remembered = 30

// rows are what a cell keeps of an account.
type rows struct {
	state   state
	change  int          // counts changes
	granted map[int]bool // who may open the computer's app
	to      int          // where it is leaving for
	until   int          // of a note: when it goes
}

// entry of the directory. Its epoch counts changes of it, so that a mover that was given up
// cannot flip what another one has taken back.
type entry struct{ cell, epoch int }

// move is what a mover remembers.
type move struct {
	account, from, to, epoch int
	next                     func(*world, *move) bool // false: it was given up
}

// computer of an account.
type computer struct {
	cell    int         // that it asks for changes
	tunnels map[int]int // the cells it is connected to, until when; 0 for as long as it asks there
	change  int
	granted map[int]bool
}

// answer of a resolver that a visitor or a writer has kept.
type answer struct{ cell, until int }

// fault is a step done wrong on purpose, to see whether the test notices.
type fault string

// world is everything there is.
type world struct {
	now       int
	cells     []map[int]*rows // by account
	directory []entry         // by account
	computers []*computer     // by account
	resolvers []map[int]answer
	fault     fault
}

func newWorld(cells, accounts, resolvers int, wrong fault) *world {
	w := &world{fault: wrong}
	for range cells {
		w.cells = append(w.cells, map[int]*rows{})
	}
	for range resolvers {
		w.resolvers = append(w.resolvers, map[int]answer{})
	}
	for account := range accounts {
		cell := account % cells
		w.cells[cell][account] = &rows{state: serving, granted: map[int]bool{}}
		w.directory = append(w.directory, entry{cell: cell})
		w.computers = append(w.computers, &computer{cell: cell, tunnels: map[int]int{cell: 0}, granted: map[int]bool{}})
	}
	return w
}

func (w *world) stateIn(cell, account int) state {
	if r := w.cells[cell][account]; r != nil {
		return r.state
	}
	return absent
}

// resolve is where a resolver says that an account's names lead; it may have kept that.
func (w *world) resolve(resolver, account int) int {
	kept, ok := w.resolvers[resolver][account]
	if !ok || w.now >= kept.until {
		kept = answer{w.directory[account].cell, w.now + remembered}
		w.resolvers[resolver][account] = kept
	}
	return kept.cell
}

// visit says whether somebody's visit reaches the computer, and whether they are let in.
func (w *world) visit(resolver, account, person int) (reached, letIn bool) {
	c := w.computers[account]
	until, connected := c.tunnels[w.resolve(resolver, account)]
	return connected && (until == 0 || w.now < until), c.granted[person]
}

// set gives somebody the app or takes it away, at the cell that a resolver leads to, and
// says whether that was taken: if not, whoever asked tries again, and gets told where.
func (w *world) set(resolver, account, person int, granted bool) bool {
	cell := w.resolve(resolver, account)
	if s := w.stateIn(cell, account); s == noted || s == absent {
		delete(w.resolvers[resolver], account) // the cell says where it went
		cell = w.resolve(resolver, account)
	}
	r := w.cells[cell][account]
	if r == nil || r.state != serving && (r.state != leaving || w.fault != "takes changes while it leaves") {
		return false
	}
	r.change++
	r.granted = maps.Clone(r.granted)
	r.granted[person] = granted
	return true
}

// sync has a computer ask its cell what is new.
func (w *world) sync(account int) {
	c := w.computers[account]
	r := w.cells[c.cell][account]
	switch {
	case r == nil: // it was off for long: the directory knows
		c.move(w.directory[account].cell, w.now+remembered)
		return
	case r.state == arriving: // again, and it never heard that it left: it is expected here
		c.move(w.directory[account].cell, 0)
		return
	case r.state == noted && w.fault == "leaves the old cell at once":
		c.move(w.directory[account].cell, w.now)
		return
	case r.state == noted:
		c.move(w.directory[account].cell, w.now+remembered)
		return
	case r.state == leaving:
		c.tunnels[r.to] = 0
	default: // a move was given up, or led there and back
		for cell, until := range c.tunnels {
			if until == 0 && cell != c.cell {
				c.tunnels[cell] = w.now + remembered
			}
		}
	}
	if r.change >= c.change || w.fault == "believes what is older" {
		c.change, c.granted = r.change, r.granted
	}
}

// move has a computer ask another cell, and be connected to the one before until then.
func (c *computer) move(to, until int) {
	c.tunnels[c.cell] = until
	c.cell = to
	c.tunnels[to] = 0
}

// tick lets time pass, and what has had its time go.
func (w *world) tick() {
	w.now++
	for _, cell := range w.cells {
		maps.DeleteFunc(cell, func(_ int, r *rows) bool { return r.state == noted && w.now >= r.until })
	}
	for _, c := range w.computers {
		maps.DeleteFunc(c.tunnels, func(_, until int) bool { return until != 0 && w.now >= until })
	}
}
