//go:build rig

package desktop

import (
	"context"
	"errors"
	"os"
	"strings"

	"porchlight/agent/agentapi"
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
	running := programs.Got(agentapi.ReadRunning(p.data))(p.t)
	return agentapi.NewOwner(running.OwnerSocket, p.secret)
}

// guest is somebody's browser that trusts this computer's authority; connected to
// a control plane, that one's, and the computer's once it has another.
func (p *program) guest() *visitor.Visitor {
	p.t.Helper()
	files := []string{rig.Authority(p.data)}
	if p.plane != nil {
		files = []string{rig.Authority(p.plane.Data)}
		if _, err := os.Stat(rig.Own(p.data)); err == nil {
			files = append(files, rig.Own(p.data))
		}
	}
	roots := programs.Got(rig.Roots(files...))(p.t)
	v := visitor.New(roots)
	p.t.Cleanup(v.Close)
	return v
}

// ownersBrowser is signed in at an app by the owner's one-time link.
func (p *program) ownersBrowser(name string) *visitor.Visitor {
	p.t.Helper()
	link := programs.Got(p.ownerTier().Open(p.t.Context(), name))(p.t)
	v := p.guest()
	if page, err := v.Open(p.t.Context(), link.URL); err != nil || page.Status != 200 {
		p.t.Fatalf("the owner's link: %+v, %v", page, err)
	}
	return v
}

// inbox finds the mails that no test asked for before.
func (p *program) inbox() *rig.Mails {
	if p.mails == nil {
		p.mails = rig.Outbox(func(ctx context.Context) ([]agentapi.Mail, error) { return p.ownerTier().Outbox(ctx) })
	}
	return p.mails
}

// mailed waits for one to somebody, and returns its link.
func (p *program) mailed(to string) (link string) {
	p.t.Helper()
	link = programs.Got(p.inbox().Link(p.t.Context(), to))(p.t)
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
	programs.Got(p.ownerTier().Invite(ctx, agentapi.InviteRequest{Email: email, Apps: apps}))(p.t)
	v := p.guest()
	programs.Must(p.t, v.Accept(ctx, p.mailed(email)))
	return v
}
