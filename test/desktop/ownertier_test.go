//go:build rig

package desktop

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/test/visitor"
)

// ownerTier is a second owner beside the app under test: what tests set up and
// look at without the screen.
func (p *program) ownerTier() *agentapi.Client {
	p.t.Helper()
	if p.secret == "" { // asked for once: connected, the keychain has another entry of ours
		p.secret = strings.TrimSpace(p.ownerSecret())
	}
	raw, err := os.ReadFile(filepath.Join(p.data, "agent.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	var running agentapi.Running
	if err := json.Unmarshal(raw, &running); err != nil {
		p.t.Fatal(err)
	}
	return agentapi.NewOwner(running.OwnerSocket, p.secret)
}

// guest is somebody's browser that trusts this computer's authority.
func (p *program) guest() *visitor.Visitor {
	p.t.Helper()
	pem, err := os.ReadFile(filepath.Join(p.data, "ca/root.pem"))
	if err != nil {
		p.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		p.t.Fatal("the authority's certificate cannot be read")
	}
	v := visitor.New(roots)
	p.t.Cleanup(v.Close)
	return v
}

// ownersBrowser is signed in at an app by the owner's one-time link.
func (p *program) ownersBrowser(name string) *visitor.Visitor {
	p.t.Helper()
	link, err := p.ownerTier().Open(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	v := p.guest()
	if page, err := v.Open(p.t.Context(), link.URL); err != nil || page.Status != 200 {
		p.t.Fatalf("the owner's link: %+v, %v", page, err)
	}
	return v
}

// mailTo waits for a mail in the local outbox with the words in its subject, and
// returns its first link.
func (p *program) mailTo(email, subject string) func(context.Context) (string, error) {
	return func(ctx context.Context) (link string, err error) {
		owner := p.ownerTier()
		p.eventually("a mail to "+email, func() error {
			mails, err := owner.Outbox(ctx)
			for _, m := range mails {
				if m.To == email && len(m.Links) > 0 && strings.Contains(m.Subject, subject) {
					link = m.Links[0]
					return nil
				}
			}
			return errors.Join(err, errors.New("none so far"))
		})
		return link, nil
	}
}

// answers waits until the address answers this visitor with the status.
func (p *program) answers(v *visitor.Visitor, address string, status int) {
	p.t.Helper()
	p.eventually(address+" answers", func() error {
		page, err := v.Open(p.t.Context(), address)
		if err == nil && page.Status != status {
			return errors.New(page.Body[:min(len(page.Body), 400)])
		}
		return err
	})
}

// member invites somebody, has them accept, and returns their browser.
func (p *program) member(email string, apps ...string) *visitor.Visitor {
	p.t.Helper()
	ctx := p.t.Context()
	if _, err := p.ownerTier().Invite(ctx, agentapi.InviteRequest{Email: email, Apps: apps}); err != nil {
		p.t.Fatal(err)
	}
	link, err := p.mailTo(email, "shares")(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	v := p.guest()
	page, err := v.Open(ctx, link)
	if err == nil {
		page, err = v.Submit(ctx, page, "", nil) // one click signs in and accepts
	}
	if err != nil || page.Status != 200 {
		p.t.Fatalf("the invitation: %+v, %v", page, err)
	}
	return v
}
