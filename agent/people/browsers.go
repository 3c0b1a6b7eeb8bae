package people

import (
	"context"

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
	told, err := p.cfg.Apps.Tell(n, &store.Undo{Kind: n.Kind, Browser: v.Browser})
	if err != nil {
		p.cfg.Log.Error("the owner could not be told of a new browser of theirs", "err", err)
	}
	p.cfg.Activity.Add(agentapi.Activity{Kind: agentapi.ActivityBrowser, Email: v.Email, AccountID: v.AccountID, What: v.Client, Notice: told})
}

// endBrowser signs one out that a notice told of, and says so there.
func (p *People) endBrowser(ctx context.Context, noticeID uint64, id string) error {
	if err := p.connected(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	if err := p.cfg.Control.EndBrowser(ctx, id); err != nil {
		return refusal(err)
	}
	return p.cfg.Apps.MarkUndone(noticeID, words.Of("You signed it out."))
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
			_, err = p.cfg.Apps.Tell(n, &store.Undo{Kind: n.Kind, Browser: k.ID})
		}
		if err != nil {
			p.cfg.Log.Error("the owner could not be told of a new passkey of theirs", "err", err)
		}
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
	return p.cfg.Apps.MarkUndone(noticeID, words.Of("You said that it was not you: it opens nothing any more, nor does what was made for your account since."))
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
