//go:build rig

package desktop

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/local"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// ownerTier is a second owner beside the app under test: what tests set up and
// look at without the screen.
func (p *program) ownerTier() *agentapi.Client {
	p.t.Helper()
	if p.secret == "" { // asked for once: connected, the keychain has another entry of ours
		p.secret = strings.TrimSpace(p.ownerSecret())
	}
	running, err := agentapi.ReadRunning(p.data)
	programs.Must(p.t, err)
	return agentapi.NewOwner(running.OwnerSocket, p.secret)
}

// guest is somebody's browser that trusts this computer's authority; connected to
// a control plane, that one's, and the computer's once it has another.
func (p *program) guest() *visitor.Visitor {
	p.t.Helper()
	pem, err := os.ReadFile(local.RootCAPath(p.data))
	if p.plane != nil {
		pem, _ = os.ReadFile(filepath.Join(p.data, "connected-ca/root.pem"))
		pem = append(pem, p.plane.ca...)
	}
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		p.t.Fatalf("the authority's certificate cannot be read: %v", err)
	}
	v := visitor.New(roots)
	p.t.Cleanup(v.Close)
	return v
}

// ownersBrowser is signed in at an app by the owner's one-time link.
func (p *program) ownersBrowser(name string) *visitor.Visitor {
	p.t.Helper()
	link, err := p.ownerTier().Open(p.t.Context(), name)
	programs.Must(p.t, err)
	v := p.guest()
	if page, err := v.Open(p.t.Context(), link.URL); err != nil || page.Status != 200 {
		p.t.Fatalf("the owner's link: %+v, %v", page, err)
	}
	return v
}

// mailed waits for a mail to somebody that no test asked for before, and returns
// its link.
func (p *program) mailed(to string) (link string) {
	p.t.Helper()
	if p.mails == nil {
		p.mails = rig.Outbox(func(ctx context.Context) ([]agentapi.Mail, error) { return p.ownerTier().Outbox(ctx) })
	}
	link, err := p.mails.Link(p.t.Context(), to)
	programs.Must(p.t, err)
	return link
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
	v := p.guest()
	page, err := v.Open(ctx, p.mailed(email))
	if err == nil {
		page, err = v.Submit(ctx, page, "", nil) // one click signs in and accepts
	}
	if err != nil || page.Status != 200 {
		p.t.Fatalf("the invitation: %+v, %v", page, err)
	}
	return v
}
