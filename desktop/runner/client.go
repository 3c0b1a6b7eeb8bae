package runner

import (
	"context"
	"encoding/json"

	"porchlight/agent/agentapi"
	"porchlight/agent/export"
)

// prober is what is asked of an agent to see whether it answers.
type prober interface {
	EngineInfo(ctx context.Context) (agentapi.EngineInfo, error)
}

// Client is the owner tier of the agent, as the desktop uses it.
type Client interface {
	prober
	export.Source
	Events(ctx context.Context, fn func(agentapi.OwnerState)) error
	// Call is any request, for the window.
	Call(ctx context.Context, method, path string, body any) (json.RawMessage, error)

	ApproveSeen(ctx context.Context, name string, seen agentapi.Seen) (agentapi.Approved, error)
	ApproveAlone(ctx context.Context, name string, seen agentapi.Seen) (agentapi.Approved, error)
	Deny(ctx context.Context, name string) (agentapi.Denied, error)
	Open(ctx context.Context, name string) (agentapi.OpenLink, error)
	Pause(ctx context.Context, name string) (agentapi.Closed, error)
	Resume(ctx context.Context, name string) error
	Revoke(ctx context.Context, name string) (agentapi.Closed, error)
	RevokeGrant(ctx context.Context, id string) (agentapi.Closed, error)
	GoDark(ctx context.Context) (agentapi.Closed, error)
	LightUp(ctx context.Context) error
	UndoNotice(ctx context.Context, id uint64) error
	SettleHeld(ctx context.Context, h agentapi.HeldChange) error
	UndoHeld(ctx context.Context, h agentapi.HeldChange) (agentapi.PersonChanged, error)
	Remove(ctx context.Context, accountID string) (agentapi.PersonChanged, error)
	RemoveHeld(ctx context.Context, r agentapi.RemoveRequest) (agentapi.PersonChanged, error)
	SetAccess(ctx context.Context, r agentapi.AccessRequest) (agentapi.PersonChanged, error)
	Visitors(ctx context.Context) ([]agentapi.Visitor, error)
	DisconnectVisitor(ctx context.Context, d agentapi.DisconnectRequest) (agentapi.Closed, error)
	AnswerKnock(ctx context.Context, id, answer string) (agentapi.KnockAnswered, error)
	Listening(ctx context.Context) ([]agentapi.Listening, error)
	AllowUser(ctx context.Context, id string) (agentapi.LocalUser, error)
	DenyUser(ctx context.Context, id string) (agentapi.LocalUser, error)
}
