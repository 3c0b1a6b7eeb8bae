package people

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// OwnersBrowser is told of each sign-in of the owner's with a browser, by the control
// plane's id of it, and tells the owner of one that is new: whoever else can read their mail
// could sign in as them. A link that the owner made on this computer is none.
func (p *People) OwnersBrowser(v controlapi.Visitor) {
	p.telling.Lock()
	defer p.telling.Unlock()
	isNew, err := p.cfg.Store.NoteBrowser(v.Browser)
	if err != nil {
		p.cfg.Log.Error("whether a browser of the owner's is new could not be told", "err", err)
		return
	}
	if !isNew {
		return
	}
	said := words.Of("A browser at %s signed in as you.", v.Client)
	if v.Client == "" {
		said = words.Of("A browser signed in as you.")
	}
	n := agentapi.Notice{At: p.cfg.Now().UTC(), Kind: agentapi.NoticeBrowser, Text: said.String(), Words: words.Text{said}}
	notice, err := p.cfg.Apps.Tell(n, &store.Undo{Kind: n.Kind, Browser: v.Browser, SignedIn: v.SignedIn})
	if err != nil {
		p.cfg.Log.Error("the owner could not be told of a new browser of theirs", "err", err)
	}
	p.cfg.Activity.Add(agentapi.Activity{Kind: agentapi.ActivityBrowser, Email: v.Email, AccountID: v.AccountID, What: v.Client, Notice: notice})
}

// endBrowser ends one that a notice told of and that was not the owner's, with what was made
// since, and says so there.
func (p *People) endBrowser(ctx context.Context, noticeID uint64, undo store.Undo) error {
	if err := p.connected(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	if undo.SignedIn.IsZero() { // the control plane did not say: it told of it at once
		n, _ := find(p.cfg.Apps.Notices(), func(n agentapi.Notice) bool { return n.ID == noticeID })
		undo.SignedIn = n.At
	}
	if err := p.cfg.Control.EndBrowser(ctx, controlapi.EndBrowser{ID: undo.Browser, Since: undo.SignedIn}); err != nil {
		return refusal(err)
	}
	return p.cfg.Apps.MarkUndone(noticeID, notMe())
}

// OwnersPasskeys is told of the passkeys that were added to the owner's account of late, and
// tells the owner of each that is new.
func (p *People) OwnersPasskeys(added []controlapi.AddedPasskey) {
	p.telling.Lock()
	defer p.telling.Unlock()
	for _, k := range added {
		isNew, err := p.cfg.Store.NotePasskey(k.ID)
		if err == nil && isNew {
			said := words.Of("A passkey was added to your account at %[2]s: “%[1]s”.", k.Name, k.Client)
			switch {
			case k.Provider:
				said = words.Of("%s signs you in to your account now.", k.Name)
			case k.Client == "":
				said = words.Of("A passkey was added to your account: “%s”.", k.Name)
			}
			n := agentapi.Notice{At: p.cfg.Now().UTC(), Kind: agentapi.NoticePasskey, Text: said.String(), Words: words.Text{said}}
			var notice uint64
			notice, err = p.cfg.Apps.Tell(n, &store.Undo{Kind: n.Kind, Browser: k.ID})
			owner, _ := p.cfg.Access.Owner()
			line := agentapi.Activity{Kind: agentapi.ActivityPasskey, Email: owner.Email, AccountID: owner.AccountID, What: k.Name, Notice: notice}
			if k.Provider {
				line.By = k.Name
			}
			p.cfg.Activity.Add(line)
		}
		if err != nil {
			p.cfg.Log.Error("the owner could not be told of a new passkey of theirs", "err", err)
		}
	}
}

// OwnersRecovery is told until when the operator waits before they take the owner's passkeys
// away, zero for never, and tells the owner once: the mail that does may be read by another.
func (p *People) OwnersRecovery(until time.Time) {
	if until.IsZero() {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	isNew, err := p.cfg.Store.NotePasskey("recovery " + until.UTC().Format(time.RFC3339))
	if err == nil && isNew {
		said := words.Of("On %s the server’s operator removes your passkeys and recovery codes: somebody told them that you lost them. Was it not you? Sign in with a passkey before then.", until.UTC().Format("2006-01-02 15:04 UTC"))
		var notice uint64
		notice, err = p.cfg.Apps.Tell(agentapi.Notice{At: p.cfg.Now().UTC(), Kind: agentapi.NoticePasskey, Text: said.String(), Words: words.Text{said}}, nil)
		owner, _ := p.cfg.Access.Owner()
		p.cfg.Activity.Add(agentapi.Activity{Kind: agentapi.ActivityRecovering, Email: owner.Email, AccountID: owner.AccountID, Until: until, Notice: notice})
	}
	if err != nil {
		p.cfg.Log.Error("the owner could not be told that their passkeys are to be removed", "err", err)
	}
}

// endPasskey removes one that a notice told of, and says so there.
func (p *People) endPasskey(ctx context.Context, noticeID uint64, id string) error {
	if err := p.connected(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	if err := p.cfg.Control.EndPasskey(ctx, id); err != nil {
		return refusal(err)
	}
	return p.cfg.Apps.MarkUndone(noticeID, notMe())
}

func notMe() words.Sentence {
	return words.Of("You said that it was not you: it opens nothing any more, nor does what was made for your account since.")
}

// OwnersLink carries out POST /owner/account/recover: a link that signs the owner in at the
// control plane, where they have lost their passkeys. This computer is the proof.
func (p *People) OwnersLink(ctx context.Context) (agentapi.OpenLink, error) {
	if err := p.connected(); err != nil {
		return agentapi.OpenLink{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	made, err := p.cfg.Control.OwnersLink(ctx, controlapi.LinkForOwner{Language: p.language()})
	if err != nil {
		return agentapi.OpenLink{}, refusal(err)
	}
	return agentapi.OpenLink{URL: made.URL, ExpiresAt: made.Until}, nil
}
