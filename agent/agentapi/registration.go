package agentapi

import (
	"context"
	"net/http"
	"time"
)

// HeartbeatEvery is how often a registered app should call POST
// /engine/heartbeat; ReapAfter is when it is taken for gone without one.
const (
	HeartbeatEvery = 10 * time.Second
	ReapAfter      = 30 * time.Second
)

// RegisterRequest is the body of POST /engine/register.
type RegisterRequest struct {
	AppID string `json:"appId"` // reverse-domain style, 1 to 200 characters
	PID   int    `json:"pid"`   // of the calling app, > 0
}

// Registration answers POST /engine/register (E1).
type Registration struct {
	OK          bool   `json:"ok"`
	AppID       string `json:"appId"`
	Protocol    int    `json:"protocol"`
	Registrants int    `json:"registrants"`
	// Capability opens the capability tier until this engine ends. It is a
	// secret: keep it in memory only.
	Capability       string `json:"capability"`
	HeartbeatSeconds int    `json:"heartbeatSeconds"`
}

// HeartbeatAnswer answers POST /engine/heartbeat, whose body is a RegisterRequest. An
// app that is not registered gets CodeNotFound and registers again.
type HeartbeatAnswer struct {
	OK               bool `json:"ok"`
	Registrants      int  `json:"registrants"`
	HeartbeatSeconds int  `json:"heartbeatSeconds"`
}

// Deregistered answers POST /engine/deregister, also for an app that was not
// registered.
type Deregistered struct {
	OK          bool `json:"ok"`
	Registrants int  `json:"registrants"`
}

// Registrant is a registered app as the owner sees it.
type Registrant struct {
	AppID string `json:"appId"`
	PID   int    `json:"pid"` // as claimed
	// CallerPID, Program and User are of the process that called, where the
	// operating system tells; empty otherwise. CallerPID differs from PID where
	// an app had itself registered by another program, or runs in a sandbox.
	CallerPID    int       `json:"callerPid,omitempty"`
	Program      string    `json:"program,omitempty"`
	User         string    `json:"user,omitempty"`
	RegisteredAt time.Time `json:"registeredAt"`
	LastSeenAt   time.Time `json:"lastSeenAt"`
}

// Register is POST /engine/register. It refuses with CodeConflict an engine that
// speaks another Protocol, and keeps the capability for the calls of the
// capability tier.
func (c *Client) Register(ctx context.Context, req RegisterRequest) (Registration, error) {
	out, err := call[Registration](ctx, c, http.MethodPost, "/engine/register", req)
	if err != nil {
		return Registration{}, err
	}
	if out.Protocol != Protocol {
		return Registration{}, protocolDiffers(out.Protocol)
	}
	c.capability.Store(&out.Capability)
	return out, nil
}

// Attach asks a running engine who it is and refuses one that speaks another
// Protocol with CodeConflict (E9).
func (c *Client) Attach(ctx context.Context) (EngineInfo, error) {
	info, err := c.EngineInfo(ctx)
	if err != nil {
		return EngineInfo{}, err
	}
	if info.Protocol != Protocol {
		return EngineInfo{}, protocolDiffers(info.Protocol)
	}
	return info, nil
}

func protocolDiffers(theirs int) error {
	return Errorf(CodeConflict, "The Porchlight that runs here speaks protocol %d, and this program speaks %d. Update the older of the two.", theirs, Protocol)
}
