package people

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// maxNamed is how many apps a notice names.
const maxNamed = 3

// tellInvited tells the owner about an invitation that a program sent. Undoing it takes
// back what it added: all, for somebody who could open nothing before.
func (p *People) tellInvited(by Actor, before, after controlapi.Person, apps []engine.App) {
	undo := &store.Undo{AccountID: after.AccountID, Newcomer: before.Status == "" || before.Status == controlapi.PersonRemoved}
	for _, app := range apps {
		if undo.Newcomer || adds(before, after, app.ID) {
			undo.Apps = append(undo.Apps, app.ID)
		}
	}
	if len(undo.Apps) == 0 {
		undo = nil // only a mail was sent
	}
	p.tell(by, agentapi.Activity{Kind: agentapi.ActivityInvited}, after, apps, undo)
}

// tellEnded tells the owner about access that a program took away, if there was any. A
// removal is undone by nothing but a new invitation, which only the invited can accept.
// byGroup says that groups had opened an app.
func (p *People) tellEnded(by Actor, before controlapi.Person, c store.PendingChange, closed int, byGroup bool) {
	if c.AppID == "" {
		if before.Status != controlapi.PersonRemoved {
			p.tell(by, agentapi.Activity{Kind: agentapi.ActivityRemoved, Closed: closed}, before, nil, nil)
		}
		return
	}
	before = p.cfg.Access.AsNow(before)
	given := slices.Contains(before.Apps, c.AppID)
	line, undo := agentapi.Activity{Kind: agentapi.ActivityWithdrawn, Closed: closed}, &store.Undo{AccountID: c.AccountID}
	switch {
	case given && byGroup:
		line.ByGroup = agentapi.ByGroupToo
	case byGroup:
		line.ByGroup = agentapi.ByGroupOnly
	case !given:
		return
	}
	if given {
		undo.Apps = []string{c.AppID}
	}
	if byGroup {
		undo.ByGroup = []string{c.AppID}
	}
	if at, ends := before.Until[c.AppID]; ends {
		undo.Until = map[string]time.Time{c.AppID: at}
	}
	if apps := p.namedApps(c.AppID); len(apps) > 0 {
		p.tell(by, line, before, apps, undo)
	}
}

// tell writes down what somebody did, and tells the owner what a program did.
func (p *People) tell(by Actor, line agentapi.Activity, who controlapi.Person, apps []engine.App, undo *store.Undo) {
	p.wake.Raise()
	if line.Owner = by.Owner; by.Owner {
		p.happened(line, who, apps)
		return
	}
	kind := line.Kind
	p.telling.Lock()
	defer p.telling.Unlock()
	name, listed := by.Name, apps
	if name.IsZero() {
		name = words.Of("A program on this computer")
	}
	takes := kind == agentapi.ActivityWithdrawn || kind == agentapi.ActivityRemoved
	together := takes && p.took.add(name, who.AccountID, p.cfg.Apps.SeenNotices())
	if undo != nil {
		undo.Kind, undo.Program = kind, by.Process
	}
	if undo != nil && !together {
		listed = p.fold(undo, apps)
	}
	text := words.Text{noticeOf(kind, name, who.Email, named(listed))}
	said := text.String()
	if undo != nil && undo.Times > 1 {
		said = fmt.Sprintf("%s, in %d steps.", strings.TrimSuffix(said, "."), undo.Times)
		text = append(text, words.Of("Those were %d steps.", undo.Times))
	}
	var with []uint64
	if together {
		text = words.Text{words.Of("%[1]s took access away %[2]d times, from %[3]d people. Activity lists each.", p.took.by, p.took.times, len(p.took.people))}
		said, with = text.String(), p.took.notices
	}
	id, err := p.cfg.Apps.Tell(agentapi.Notice{At: p.cfg.Now().UTC(), Kind: kind, Text: said, Words: text, By: by.Program}, undo, with...)
	if err != nil {
		p.cfg.Log.Error("the owner could not be told of what a program did", "err", err, "kind", kind)
	}
	if takes {
		p.took.addNotice(id, with)
	}
	line.By, line.Notice = name.String(), id
	p.happened(line, who, apps)
}

// noticeOf says what a program did about somebody.
func noticeOf(kind string, name words.Sentence, email string, apps any) words.Sentence {
	switch kind {
	case agentapi.ActivityInvited:
		return words.Of("%[1]s invited %[2]s to %[3]s.", name, email, apps)
	case agentapi.ActivityGiven:
		return words.Of("%[1]s let %[2]s open %[3]s.", name, email, apps)
	case agentapi.ActivityWithdrawn:
		return words.Of("%[1]s took %[2]s away from %[3]s.", name, apps, email)
	case agentapi.ActivityRemoved:
		return words.Of("%[1]s removed %[2]s from this computer. To let them in again, invite them.", name, email)
	}
	return words.Sentence{}
}

// fold has a notice take the place of one that the owner has not seen, about the same
// kind of change by the same process to the same person. It returns the apps that the
// notice then names: all that undoing it takes back. p.telling is held.
func (p *People) fold(undo *store.Undo, apps []engine.App) []engine.App {
	id, before, ok, err := p.cfg.Store.FoldOf(*undo)
	if err != nil {
		p.cfg.Log.Error("a notice could not be told together with another", "err", err)
	}
	// One that tells of several people, as before a restart, stays.
	ofOne := func(n agentapi.Notice) bool { return n.ID == id && n.Undo }
	if !ok || !slices.ContainsFunc(p.cfg.Apps.Notices(), ofOne) {
		return apps
	}
	undo.Join(id, before)
	listed := slices.Clone(apps)
	named := slices.Concat(undo.Apps, undo.ByGroup)
	for _, app := range p.cfg.Apps.Approved() {
		if slices.Contains(named, app.ID) && !slices.ContainsFunc(listed, func(a engine.App) bool { return a.ID == app.ID }) {
			listed = append(listed, app)
		}
	}
	return listed
}

// tookAway is what programs took away since the owner last looked at a notice of it. What
// they took from several people is one notice; each has its Undo in the timeline.
type tookAway struct {
	by      words.Sentence
	people  map[string]bool // account ids
	times   int
	notices []uint64 // that tell of it
}

// add counts what a program of that name took from somebody, and says whether it is told
// together with what was taken from others. seen is the newest notice that the owner saw.
func (t *tookAway) add(by words.Sentence, accountID string, seen uint64) (together bool) {
	if n := len(t.notices); n == 0 || t.notices[n-1] <= seen {
		*t = tookAway{by: by, people: map[string]bool{}}
	}
	if t.by.String() != by.String() {
		t.by = words.Of("More than one program")
	}
	t.people[accountID] = true
	t.times++
	return len(t.people) > 1
}

// addNotice notes the notice that tells of it, in the place of others or beside them.
func (t *tookAway) addNotice(id uint64, instead []uint64) {
	if len(instead) > 0 {
		t.notices = nil
	}
	t.notices = append(t.notices, id)
	t.notices = t.notices[max(0, len(t.notices)-store.MaxUndos):]
}

// reserveNotice keeps a place for the notice about what a program is about to give, until
// release is called. It refuses while too many notices of that wait for the owner to see
// them: otherwise the first of them could be buried. To take away needs none.
func (p *People) reserveNotice(by Actor) (release func(), err error) {
	if by.Owner {
		return func() {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Apps.Unseen()+p.changing >= store.MaxUndos {
		return nil, &agentapi.Error{
			Code: agentapi.CodeTooMany, RetryAfter: time.Minute,
			Message: "The owner of this Porchlight has many changes by programs to look at first: in its window, or with: porchlight notices. Try again once they have.",
		}
	}
	p.changing++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changing--
	}, nil
}

// named lists apps in a sentence.
func named(apps []engine.App) any {
	if len(apps) == 0 {
		return words.Of("this computer")
	}
	names := make([]string, len(apps))
	for i, a := range apps {
		names[i] = a.Label
	}
	return words.ListOf(names, maxNamed)
}

// UndoNotice carries out POST /owner/notices/{id}/undo: exactly what the notice tells
// of is taken back, and nothing that the owner has done since.
func (p *People) UndoNotice(ctx context.Context, id uint64) error {
	several := slices.ContainsFunc(p.cfg.Apps.Notices(), func(n agentapi.Notice) bool { return n.ID == id && !n.Undo })
	if several && p.canUndo(id) {
		return agentapi.Errorf(agentapi.CodeConflict, "This tells of several people. Activity has an Undo for each.")
	}
	return p.Undo(ctx, id)
}

// Undo takes back the change that was told by the notice with that id when it was made.
func (p *People) Undo(ctx context.Context, noticeID uint64) error {
	noticeID, undo, ok, err := p.cfg.Store.UndoOf(noticeID)
	if err != nil {
		return err
	}
	if !ok {
		return agentapi.Errorf(agentapi.CodeNotFound, "There is nothing to undo here. It was undone already, or it is too long ago.")
	}
	switch undo.Kind {
	case agentapi.NoticeBrowser:
		return p.endBrowser(ctx, noticeID, undo)
	case agentapi.NoticePasskey:
		return p.endPasskey(ctx, noticeID, undo.Browser)
	}
	if err := p.leaveOut(&undo); err != nil {
		return err
	}
	if undo.Kind == agentapi.ActivityWithdrawn {
		err = p.undoWithdrawal(ctx, undo)
	} else {
		err = p.undoGift(ctx, undo)
	}
	if err != nil {
		return err
	}
	return p.cfg.Apps.MarkUndone(noticeID, words.Of("You undid that."))
}

// leaveOut takes from what is to be undone the apps about which the owner has decided since. It
// refuses with CodeConflict where nothing is left.
func (p *People) leaveOut(undo *store.Undo) error {
	newest, err := p.cfg.Activity.NewestOf(undo.AccountID)
	if err != nil {
		return err
	}
	had := len(undo.Apps) + len(undo.ByGroup)
	for _, app := range p.cfg.Apps.Approved() {
		line := newest[app.Label]
		if newest[""].ID > line.ID {
			line = newest[""]
		}
		if line.Owner {
			decided := func(id string) bool { return id == app.ID }
			undo.Apps, undo.ByGroup = slices.DeleteFunc(undo.Apps, decided), slices.DeleteFunc(undo.ByGroup, decided)
			undo.Newcomer = false
		}
	}
	if had > 0 && len(undo.Apps)+len(undo.ByGroup) == 0 {
		return agentapi.Errorf(agentapi.CodeConflict, "This cannot be undone any more: something about it has changed since.")
	}
	return nil
}

// undoGift takes the apps away again, and the whole computer from somebody who had nothing
// before, was given nothing since and is in no group. What a group opens goes on.
func (p *People) undoGift(ctx context.Context, undo store.Undo) error {
	row, _ := p.inSnapshot(undo.AccountID) // has no apps while nobody knows it: it was invited a moment ago
	in := func(g store.Group) bool { return isIn(g, undo.AccountID) }
	if undo.Newcomer && !slices.ContainsFunc(row.Apps, func(id string) bool { return !slices.Contains(undo.Apps, id) }) &&
		!slices.ContainsFunc(p.cfg.Access.Groups(), in) {
		return p.TakeBackInvitation(ctx, undo.AccountID)
	}
	for _, id := range undo.Apps {
		byGroup := p.cfg.Access.OpenedByGroup(undo.AccountID, id) && !p.cfg.Access.IsWithdrawn(store.Withdrawn{AccountID: undo.AccountID, AppID: id})
		if _, err := p.end(ctx, Owner, store.PendingChange{AccountID: undo.AccountID, AppID: id}, 0); err != nil {
			return err
		}
		if byGroup {
			p.giveAgain(undo.AccountID, id)
		}
	}
	return nil
}

func (p *People) undoWithdrawal(ctx context.Context, undo store.Undo) error {
	here := false
	for _, app := range p.cfg.Apps.Approved() {
		if slices.Contains(undo.ByGroup, app.ID) {
			here = true
			if err := p.regive(undo.AccountID, app.ID); err != nil {
				return err
			}
		}
		if !slices.Contains(undo.Apps, app.ID) {
			continue
		}
		here = true
		again := agentapi.AccessRequest{AccountID: undo.AccountID, App: app.Label, Granted: true}
		if at, ended := undo.Until[app.ID]; ended {
			if !p.cfg.Access.ControlTime().Before(at) {
				return agentapi.Errorf(agentapi.CodeConflict, "%q was shared until %s, which is over. Give it again with another end.", app.Label, agentapi.LastDay(at, p.cfg.Now()))
			}
			again.Until = at.UTC().Format(time.RFC3339)
		}
		if _, err := p.give(ctx, Owner, again); err != nil {
			return err
		}
	}
	if !here {
		return agentapi.Errorf(agentapi.CodeConflict, "The app is not on this computer any more, so it cannot be given back.")
	}
	return nil
}
