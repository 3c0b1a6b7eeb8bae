package people

import (
	"context"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

// OwnersBrowser is told of each sign-in of the owner's with a browser, by the control
// plane's id of it, and tells the owner of one that is new: whoever else can read their mail
// could sign in as them. client is the address it signed in from. A link that the owner made
// on this computer is none.
func (p *People) OwnersBrowser(id, client string) {
	p.telling.Lock()
	defer p.telling.Unlock()
	isNew, err := p.cfg.Store.NoteBrowser(id)
	if err != nil {
		p.cfg.Log.Error("whether a browser of the owner's is new could not be told", "err", err)
		return
	}
	if !isNew {
		return
	}
	said := words.Of("A browser at %s signed in as you.", client)
	if client == "" {
		said = words.Of("A browser signed in as you.")
	}
	n := agentapi.Notice{At: p.cfg.Now().UTC(), Kind: agentapi.NoticeBrowser, Text: said.String(), Words: words.Text{said}}
	if _, err := p.cfg.Apps.Tell(n, &store.Undo{Kind: n.Kind, Browser: id}); err != nil {
		p.cfg.Log.Error("the owner could not be told of a new browser of theirs", "err", err)
	}
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
