package senders

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/internal/words"
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
	req.Path, req.Secret = "/other", "another secret of tests"
	hangs.Store(true)
	done := make(chan error, 2)
	go func() { _, err := s.Add(t.Context(), req); done <- err }()
	<-atDisk
	go func() { _, err := s.Revoke(t.Context(), lost.ID); done <- err }()
	comesIn := func() bool { _, is := a.SenderAt(notes.ID, "/lost"); return is }
	for until := time.Now().Add(programs.Patience); comesIn() && time.Now().Before(until); {
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

// Weakness: what a sender delivered is forgotten at the disk, and all others wait.
// Attack: fill a sender, and have it deliver once more while the disk does not answer.
// Checked: another sender's delivery waits for nothing; the full one is told as before.
func TestAFullSenderHoldsUpNobody(t *testing.T) {
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
	s := programs.Got(New(Config{Store: db, Access: a, Apps: oneApp{}, Note: func(agentapi.Notice, words.Text) error { return nil }}))(t)
	now := time.Now()
	full, other := store.Sender{ID: "sender-full", AppID: notes.ID}, store.Sender{ID: "sender-other", AppID: notes.ID}
	s.ledger.kept[full.ID] = &count{kept: MostKept}
	hangs.Store(true)
	swept := make(chan error, 1)
	go func() { swept <- s.ledger.begin(store.Delivery{SenderID: full.ID}, now, full) }()
	<-atDisk
	went := make(chan error, 1)
	go func() { went <- s.ledger.begin(store.Delivery{SenderID: other.ID}, now, other) }()
	select {
	case err := <-went:
		programs.Must(t, err)
	case <-time.After(programs.Patience / 10):
		t.Error("another sender waits for the disk")
	}
	close(goOn)
	if err := <-swept; err != nil { // nothing of it was on the disk, so there is room
		t.Errorf("the full one: %v", err)
	}
	if n := len(s.ledger.underWay); n != 2 {
		t.Errorf("%d are under way", n)
	}
}

// Weakness: most kinds sign no path, so what is signed for one sender is right for another.
// Attack: name two with one secret, or change to it, padded as HMAC pads a key.
// Checked: it is refused, whatever the kind, and a sender keeps its own.
func TestNoTwoSendersHaveOneSecret(t *testing.T) {
	t.Parallel()
	db := programs.Got(store.Open(t.TempDir()))(t)
	defer db.Close()
	a := programs.Got(access.New(access.Config{Store: db}))(t)
	s := programs.Got(New(Config{Store: db, Access: a, Activity: activity.New(activity.Config{Store: db}), Apps: oneApp{}}))(t)
	const secret, next = "a secret of tests", "the next secret"
	req := agentapi.SenderRequest{App: "notes", Name: "GitHub", Path: "/push", Kind: agentapi.SenderGitHub, Secret: secret}
	first := programs.Got(s.Add(t.Context(), req))(t)
	req.Path, req.Kind, req.Header = "/paid", agentapi.SenderHMAC, "X-Sig"
	taken := func(what string, err error) {
		t.Helper()
		if agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, same := range []string{secret, secret + "\n", secret + "\x00"} {
		req.Secret = same
		_, err := s.Add(t.Context(), req)
		taken("another sender", err)
	}
	req.Secret = next
	second := programs.Got(s.Add(t.Context(), req))(t)
	_, err := s.ChangeSecret(t.Context(), second.ID, agentapi.SenderSecret{Secret: secret})
	taken("a change", err)
	programs.Got(s.ChangeSecret(t.Context(), first.ID, agentapi.SenderSecret{Secret: "a third secret"}))(t)
	_, err = s.ChangeSecret(t.Context(), second.ID, agentapi.SenderSecret{Secret: secret})
	taken("the older of two", err)
	programs.Got(s.ChangeSecret(t.Context(), first.ID, agentapi.SenderSecret{Secret: secret, Alone: true}))(t) // its own
	programs.Got(s.Revoke(t.Context(), first.ID))(t)
	programs.Got(s.ChangeSecret(t.Context(), second.ID, agentapi.SenderSecret{Secret: secret}))(t)
}

// The owner is told once, over a restart too, that a sender has come to its end. That they are
// is kept only after they were.
func TestAnEndIsTold(t *testing.T) {
	t.Parallel()
	db := programs.Got(store.Open(t.TempDir()))(t)
	defer db.Close()
	now := time.Now()
	clock := func() time.Time { return now }
	a := programs.Got(access.New(access.Config{Store: db, Now: clock}))(t)
	for name, until := range map[string]time.Time{"Ended": now.Add(time.Hour), "Goes on": {}} {
		one := store.Sender{ID: "sender-" + name, AppID: notes.ID, Name: name, Target: "/" + name, Kind: agentapi.SenderGitHub, Secrets: [][]byte{[]byte(name)}, Until: until}
		programs.Must(t, db.PutSender(one))
	}
	lines := activity.New(activity.Config{Store: db})
	var notices []string
	full := true // the disk, at first
	note := func(n agentapi.Notice, said words.Text) error {
		for _, one := range programs.Got(db.Senders())(t) {
			if one.EndTold {
				t.Error("a crash now, and the owner is never told")
			}
		}
		if full {
			full = false
			return errors.New("no space left on device")
		}
		notices = append(notices, n.Kind+" "+n.App+": "+said.String())
		return nil
	}
	told := func() (all []string) {
		s := programs.Got(New(Config{Store: db, Access: a, Activity: lines, Apps: oneApp{}, Note: note, Now: clock}))(t)
		s.tellEnds()
		s.tellEnds()
		for _, line := range programs.Got(lines.Lines(9))(t) {
			all = append(all, line.Kind+" "+line.What+" "+line.App)
		}
		return all
	}
	if got := told(); len(got) > 0 {
		t.Errorf("before its end the owner is told %q", got)
	}
	now = now.Add(2 * time.Hour)
	for range 2 {
		if got := told(); len(got) != 1 || got[0] != agentapi.ActivitySenderEnded+" Ended Notes" {
			t.Errorf("the owner is told %q", got)
		}
		if len(notices) != 1 || !strings.HasPrefix(notices[0], agentapi.ActivitySenderEnded+" notes: Notes ended for Ended. It was until ") {
			t.Errorf("the menu says %q", notices)
		}
	}
}

// Weakness: a sender is revoked while the disk fails, and nothing ever forgets it there.
// Checked: it comes in no more at once, and revoking it again tells the disk.
func TestASenderIsForgottenLater(t *testing.T) {
	t.Parallel()
	good, broken := programs.Got(store.Open(t.TempDir()))(t), programs.Got(store.Open(t.TempDir()))(t)
	defer good.Close()
	programs.Must(t, broken.Close())
	a := programs.Got(access.New(access.Config{Store: good}))(t)
	s := programs.Got(New(Config{Store: good, Access: a, Activity: activity.New(activity.Config{Store: good}), Apps: oneApp{}}))(t)
	made := programs.Got(s.Add(t.Context(), agentapi.SenderRequest{App: "notes", Name: "GitHub", Path: "/push", Kind: agentapi.SenderGitHub, Secret: "a secret of tests"}))(t)
	s.cfg.Store = broken
	if _, err := s.Revoke(t.Context(), made.ID); agentapi.CodeOf(err) != agentapi.CodeInternal {
		t.Errorf("revoked: %v", err)
	}
	if _, is := a.SenderAt(notes.ID, "/push"); is {
		t.Error("it comes in")
	}
	s.cfg.Store = good
	programs.Got(s.Revoke(t.Context(), made.ID))(t)
	if all := programs.Got(good.Senders())(t); len(all) > 0 {
		t.Errorf("kept is %+v", all)
	}
	if _, err := s.Revoke(t.Context(), made.ID); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("a third time: %v", err)
	}
}
