package cells

import "maps"

// begin is a mover that is to take account to another cell.
func (w *world) begin(account, to int) *move {
	at := w.directory[account]
	return &move{account: account, from: at.cell, to: to, epoch: at.epoch, next: (*world).leave}
}

// resume is a mover that finds an account on its way, and nobody who says so: it goes back
// where the directory has not changed, and on where it has. nil where there is nothing to do.
func (w *world) resume(account int) *move {
	at := w.directory[account]
	m := &move{account: account, from: at.cell, to: at.cell, epoch: at.epoch}
	for cell := range w.cells {
		if s := w.stateIn(cell, account); cell != at.cell && (s == leaving || s == serving) {
			m.from = cell
		}
	}
	switch {
	case w.stateIn(at.cell, account) == leaving:
		m.next = (*world).back
	case w.stateIn(at.cell, account) == arriving:
		m.next = (*world).serve
	case m.from != at.cell:
		m.next = (*world).forget
	default:
		return nil
	}
	return m
}

// step takes the next one, and says whether there is another.
func (w *world) step(m *move) bool { return m.next != nil && m.next(w, m) && m.next != nil }

func (w *world) leave(m *move) bool {
	if w.directory[m.account] != (entry{m.from, m.epoch}) || w.stateIn(m.from, m.account) != serving || m.to == m.from {
		return false
	}
	w.cells[m.from][m.account].state, w.cells[m.from][m.account].to = leaving, m.to
	m.next = (*world).copy
	return true
}

func (w *world) copy(m *move) bool {
	old := w.cells[m.from][m.account]
	if old == nil || old.state != leaving {
		return false
	}
	// A cell that has a newer copy, or the account itself, keeps that: this mover was given up.
	if s := w.stateIn(m.to, m.account); s == serving || s == leaving || w.directory[m.account] != (entry{m.from, m.epoch}) {
		return false
	}
	w.cells[m.to][m.account] = &rows{state: arriving, change: old.change, granted: maps.Clone(old.granted)}
	if w.fault == "serves before the directory says so" {
		w.cells[m.to][m.account].state = serving
	}
	if m.next = (*world).call; w.fault == "does not wait for the computer" {
		m.next = (*world).flip
	}
	return true
}

// call waits until the computer is connected to the new cell. One that is off nobody visits,
// and it comes when it is on: here all are.
func (w *world) call(m *move) bool {
	if until, ok := w.computers[m.account].tunnels[m.to]; ok && until == 0 {
		m.next = (*world).flip
	}
	return w.directory[m.account] == (entry{m.from, m.epoch})
}

// flip is the one step that counts: the directory changes an entry only if it is still the
// one that the mover began with.
func (w *world) flip(m *move) bool {
	at := &w.directory[m.account]
	if *at != (entry{m.from, m.epoch}) && w.fault != "flips whatever the entry is" {
		return false
	}
	*at = entry{m.to, at.epoch + 1}
	m.epoch, m.next = at.epoch, (*world).serve
	return true
}

func (w *world) serve(m *move) bool {
	if w.directory[m.account] != (entry{m.to, m.epoch}) || w.stateIn(m.to, m.account) != arriving {
		return false
	}
	w.cells[m.to][m.account].state = serving
	m.next = (*world).forget
	return true
}

func (w *world) forget(m *move) bool {
	if w.directory[m.account].cell == m.from {
		return false
	}
	if s := w.stateIn(m.from, m.account); s == leaving || s == serving {
		// As long again as the computer keeps its connection here after it has heard.
		w.cells[m.from][m.account] = &rows{state: noted, until: w.now + 2*remembered}
	}
	m.next = nil
	return true
}

// back has the old cell serve again. The entry's epoch comes first: a mover that is not dead
// but slow flips no more.
func (w *world) back(m *move) bool {
	at := &w.directory[m.account]
	if *at != (entry{m.from, m.epoch}) || w.stateIn(m.from, m.account) != leaving {
		return false
	}
	if at.epoch++; w.fault == "goes back without a word" {
		at.epoch--
	}
	m.epoch = at.epoch
	m.next = (*world).again
	return true
}

func (w *world) again(m *move) bool {
	if w.directory[m.account] != (entry{m.from, m.epoch}) || w.stateIn(m.from, m.account) != leaving {
		return false
	}
	for cell, all := range w.cells {
		if cell != m.from && w.stateIn(cell, m.account) == arriving {
			delete(all, m.account)
		}
	}
	w.cells[m.from][m.account].state = serving
	m.next = nil
	return true
}
