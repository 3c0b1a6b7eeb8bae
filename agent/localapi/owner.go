package localapi

import (
	"context"
	"net/http"
	"strconv"

	"porchlight/agent/agentapi"
)

// What the owner sees of everything, and decides about everything at once.

func (a *API) ownerState(r *http.Request) (any, error) { return a.state(r.Context()) }

func (a *API) ownerAccount(*http.Request) (any, error) { return a.cfg.Connection().Account, nil }

func (a *API) ownerOutbox(r *http.Request) (any, error) {
	if a.cfg.Outbox == nil {
		return []agentapi.Mail{}, nil
	}
	mails, err := a.cfg.Outbox(r.Context())
	return append([]agentapi.Mail{}, mails...), err
}

// outboxSize is for the owner's state, which an outbox that fails does not keep back.
func (a *API) outboxSize(ctx context.Context) int {
	if a.cfg.OutboxSize == nil {
		return 0
	}
	size, err := a.cfg.OutboxSize(ctx)
	if err != nil && ctx.Err() == nil {
		a.log.Warn("cannot read the outbox", "err", err)
	}
	return size
}

// goDark closes everything; lightUp opens it again.
func (a *API) goDark(*http.Request) (any, error) { return a.cfg.Access.GoDark() }

func (a *API) lightUp(*http.Request) (any, error) { return done, a.cfg.Access.LightUp() }

func (a *API) settings(*http.Request) (any, error) { return a.cfg.Settings.Get(), nil }

func (a *API) changeSettings(r *http.Request) (any, error) {
	change, err := readChange[agentapi.Settings](r, agentapi.SettingFields)
	if err != nil {
		return nil, err
	}
	s, err := a.cfg.Settings.Change(change)
	if err == nil {
		a.cfg.Requests.Forget()
	}
	return s, err
}

// numbered makes the handler of what is done with the notice or the line of a number.
func numbered(do func(*API, context.Context, uint64) error) handler {
	return func(a *API, r *http.Request) (any, error) {
		id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
		if err != nil {
			return nil, nothingHere()
		}
		return done, do(a, r.Context(), id)
	}
}

// undo takes back what a notice is about.
func (a *API) undo(ctx context.Context, id uint64) error { return a.cfg.People.UndoNotice(ctx, id) }

// see notes that the owner has looked at the notices up to one.
func (a *API) see(_ context.Context, id uint64) error { return a.cfg.Apps.SeeNotices(id) }

func (a *API) users(*http.Request) (any, error) { return a.cfg.Users.List(), nil }

func (a *API) allowUser(r *http.Request) (any, error) { return a.cfg.Users.Allow(r.PathValue("id")) }

func (a *API) denyUser(r *http.Request) (any, error) { return a.cfg.Users.Deny(r.PathValue("id")) }

func (a *API) forgetUser(r *http.Request) (any, error) {
	return done, a.cfg.Users.Forget(r.PathValue("id"))
}

func (a *API) identityKey(*http.Request) (any, error) { return a.cfg.Identity.KeySet() }

func (a *API) rotateIdentityKey(_ *http.Request, how agentapi.RotateKey) (any, error) {
	return a.cfg.Identity.Rotate(how.Now)
}
