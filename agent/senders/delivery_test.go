package senders

import (
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// What an app takes of a sender who was revoked meanwhile is not kept for ever.
func TestNothingIsLeftOfARevokedSender(t *testing.T) {
	t.Parallel()
	db := programs.Got(store.Open(t.TempDir()))(t)
	defer db.Close()
	key := store.Delivery{SenderID: "sender-gone"}
	l := &ledger{s: &Senders{cfg: Config{Store: db}}, underWay: map[store.Delivery]state{key: atApp}, kept: map[string]*count{}}
	l.done(key, time.Now().Add(Kept))
	if _, known, err := db.Delivered(key); len(l.underWay) != 0 || known || err != nil {
		t.Errorf("left: %v, on the disk: %t, %v", l.underWay, known, err)
	}
}

// oneApp is all there is.
type oneApp struct{}

var notes = engine.App{ID: "id-notes", Name: "notes", Label: "Notes", Live: true}

func (oneApp) Lookup(string) (engine.App, bool)  { return notes, true }
func (oneApp) ByLabel(string) (engine.App, bool) { return notes, true }
func (oneApp) ByID(string) (engine.App, bool)    { return notes, true }

// Weakness: a disk that answers late, or not at all, keeps a sender coming in.
// Attack: revoke it while another is being named.
// Checked: it comes in no more before the disk answers, and not afterwards.
func TestASenderEndsBeforeTheDiskAnswers(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	atDisk, goOn := make(chan struct{}), make(chan struct{})
	db := programs.Got(store.Open(t.TempDir(), store.ObserveCommits(func(committing bool) {
		if committing && hangs.CompareAndSwap(true, false) {
			close(atDisk)
			<-goOn
		}
	})))(t)
	defer db.Close()
	a := programs.Got(access.New(access.Config{Store: db}))(t)
	s := programs.Got(New(Config{Store: db, Access: a, Activity: activity.New(activity.Config{Store: db}), Apps: oneApp{}}))(t)
	req := agentapi.SenderRequest{App: "notes", Name: "GitHub", Path: "/lost", Kind: agentapi.SenderGitHub, Secret: "a secret of tests"}
	lost := programs.Got(s.Add(t.Context(), req))(t)
	req.Path = "/other"
	hangs.Store(true)
	done := make(chan error, 2)
	go func() { _, err := s.Add(t.Context(), req); done <- err }()
	<-atDisk
	go func() { _, err := s.Revoke(t.Context(), lost.ID); done <- err }()
	comesIn := func() bool { _, is := a.SenderAt(notes.ID, "/lost"); return is }
	for until := time.Now().Add(5 * time.Second); comesIn() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if comesIn() {
		t.Error("it comes in while the disk does not answer")
	}
	close(goOn)
	for range 2 {
		programs.Must(t, <-done)
	}
	_, other := a.SenderAt(notes.ID, "/other")
	if kept := programs.Got(db.Senders())(t); comesIn() || !other || len(kept) != 1 {
		t.Errorf("afterwards: the revoked one %t, the other %t, kept are %d", comesIn(), other, len(kept))
	}
}
