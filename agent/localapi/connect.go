package localapi

import (
	"context"
	"net/http"

	"porchlight/agent/agentapi"
)

// Connector connects this computer to a control plane elsewhere and takes it
// off one again. Both replace the agent behind the Server by one that is somebody
// else. Its methods are called concurrently; errors that are not an *agentapi.Error
// are faults.
type Connector interface {
	// Connect asks the control plane and returns what the owner has to confirm
	// in a browser; the waiting goes on behind it.
	Connect(ctx context.Context, req agentapi.ConnectRequest) (agentapi.Connecting, error)
	// LookServer says whether a control plane answers, and asks it for nothing; with no
	// address, which was the last.
	LookServer(ctx context.Context, look agentapi.ServerLook) (agentapi.Server, error)
	// CancelConnect gives up what Connect began; nothing under way is no error. CodeConflict
	// where it was confirmed already.
	CancelConnect(ctx context.Context) error
	// Disconnect returns once this computer is its own again, for good.
	Disconnect(ctx context.Context) error
	// Connecting is what is under way, or failed last; nil for nothing. After it
	// changed, Server.Changes is to be raised.
	Connecting() *agentapi.Connecting
}

var errNoConnector = agentapi.Errorf(agentapi.CodeUnavailable,
	"This Porchlight was started without the means to connect to a control plane. Start it with: porchlight agent")

// noConnector is that of a server without one.
type noConnector struct{}

func (noConnector) Connect(context.Context, agentapi.ConnectRequest) (agentapi.Connecting, error) {
	return agentapi.Connecting{}, errNoConnector
}
func (noConnector) LookServer(context.Context, agentapi.ServerLook) (agentapi.Server, error) {
	return agentapi.Server{}, errNoConnector
}
func (noConnector) CancelConnect(context.Context) error { return errNoConnector }
func (noConnector) Disconnect(context.Context) error    { return errNoConnector }
func (noConnector) Connecting() *agentapi.Connecting    { return nil }

func (a *API) connect(r *http.Request, req agentapi.ConnectRequest) (any, error) {
	return a.server.cfg.Connector.Connect(r.Context(), req)
}

func (a *API) lookServer(r *http.Request, look agentapi.ServerLook) (any, error) {
	return a.server.cfg.Connector.LookServer(r.Context(), look)
}

func (a *API) cancelConnect(r *http.Request) (any, error) {
	return done, a.server.cfg.Connector.CancelConnect(r.Context())
}

func (a *API) disconnect(r *http.Request) (any, error) {
	return done, a.server.cfg.Connector.Disconnect(r.Context())
}
