package engine

import (
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

// Tell has the owner told of something about people; undo says how to take it
// back, nil where nothing can. It takes the place of the notices of with; see
// store.AddNotice. It returns the number of the notice.
func (a *Apps) Tell(n agentapi.Notice, undo *store.Undo, with ...uint64) (id uint64, err error) {
	err = a.changeNotices(func() ([]agentapi.Notice, error) {
		notices, err := a.cfg.Store.AddNotice(n, undo, with)
		if len(notices) > 0 {
			id = notices[len(notices)-1].ID
		}
		return notices, err
	})
	return id, err
}

// Note is Tell of what nothing can take back, in these words. Where it cannot be kept,
// the log says so, and it is an error.
func (a *Apps) Note(n agentapi.Notice, said words.Text) error {
	n.Text, n.Words = said.String(), said
	_, err := a.Tell(n, nil)
	if err != nil {
		a.cfg.Log.Error("the owner could not be told of something", "about", n.Kind, "err", err)
	}
	return err
}

// MarkUndone notes that what a notice is about was undone, in a sentence that it says
// from now on, too.
func (a *Apps) MarkUndone(noticeID uint64, said words.Sentence) error {
	return a.changeNotices(func() ([]agentapi.Notice, error) { return a.cfg.Store.MarkNoticeUndone(noticeID, said) })
}

// Notices returns what the owner should be told, oldest first.
func (a *Apps) Notices() []agentapi.Notice {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.notices)
}

// SeenNotices is the id of the newest notice that the owner has seen.
func (a *Apps) SeenNotices() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// SeeNotices notes that the owner has seen the notices up to id, which may then be
// dropped for others.
func (a *Apps) SeeNotices(id uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.notices); n == 0 || id > a.notices[n-1].ID {
		return agentapi.Errorf(agentapi.CodeNotFound, "There is no such notice yet.")
	}
	if id <= a.seen {
		return nil
	}
	if err := a.cfg.Store.SeeNotices(id); err != nil {
		return err
	}
	a.seen = id
	a.cfg.Changes.Raise()
	return nil
}

// Unseen counts the notices that have to wait for the owner.
func (a *Apps) Unseen() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	count := 0
	for _, n := range a.notices {
		if store.MustStay(n, a.seen) {
			count++
		}
	}
	return count
}

// readSeen is part of NewApps. In a store of a version that did not keep what was
// seen, all notices count as seen.
func (a *Apps) readSeen() error {
	seen, known, err := a.cfg.Store.SeenNotices()
	if err != nil {
		return err
	}
	if n := len(a.notices); !known && n > 0 {
		seen = a.notices[n-1].ID
	}
	if !known {
		err = a.cfg.Store.SeeNotices(seen)
	}
	a.seen = seen
	return err
}

func (a *Apps) changeNotices(change func() ([]agentapi.Notice, error)) error {
	a.mu.Lock()
	notices, err := change()
	if err == nil {
		a.notices = notices
	}
	a.mu.Unlock()
	if err == nil {
		a.cfg.Changes.Raise()
	}
	return err
}

// LabelOf names the live app that a process was last seen to answer for, by
// its label; empty for none.
func (a *Apps) LabelOf(pid int, program string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range a.rows {
		if row.App != nil && row.App.Status == agentapi.StatusLive && pid > 0 && row.App.Listener.PID == pid && row.App.Listener.Program == program {
			return row.App.Label
		}
	}
	return ""
}
