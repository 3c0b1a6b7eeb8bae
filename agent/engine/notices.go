package engine

import (
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// Tell has the owner told of something about people; undo says how to take it
// back, nil where nothing can.
func (a *Apps) Tell(n agentapi.Notice, undo *store.Undo) error {
	return a.changeNotices(func() ([]agentapi.Notice, error) { return a.cfg.Store.AddNotice(n, undo) })
}

// Settle notes that what a notice tells of was undone.
func (a *Apps) Settle(noticeID uint64, sentence string) error {
	return a.changeNotices(func() ([]agentapi.Notice, error) { return a.cfg.Store.SettleNotice(noticeID, sentence) })
}

func (a *Apps) changeNotices(change func() ([]agentapi.Notice, error)) error {
	a.mu.Lock()
	notices, err := change()
	if err == nil {
		a.notices = notices
	}
	a.mu.Unlock()
	if err == nil {
		a.changes.Raise()
	}
	return err
}

// LabelOf names the live app that a process was last seen to answer for, by
// its label; empty for none.
func (a *Apps) LabelOf(pid int, program string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range a.rows {
		if isLive(row.App) && pid > 0 && row.App.Listener.PID == pid && row.App.Listener.Program == program {
			return row.App.Label
		}
	}
	return ""
}
