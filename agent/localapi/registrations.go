package localapi

import (
	"net"
	"net/http"
	"net/netip"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

// register is POST /engine/register, which proves nothing but that a program of
// a user who may asks, and hands out the capability for that.
func (a *API) register(r *http.Request, req agentapi.RegisterRequest) (any, error) {
	by := a.callerOf(r)
	if err := a.letIn(r, by); err != nil {
		return nil, err
	}
	var from procinfo.Socket
	var known procinfo.Process
	registration, err := a.server.registry.Register(by, req, func() procinfo.Process {
		from = callerSocket(r)
		known = from.Remembered(req.PID)
		return known
	})
	if err == nil && from.Inode != 0 && known.PID == 0 {
		// A process whose pid is not the one claimed is looked for among all, and
		// nobody waits for that. It begins while the connection is open.
		go func() { a.server.registry.Identify(by, req, from.Find()) }()
	}
	return registration, err
}

func (a *API) beat(r *http.Request, req agentapi.RegisterRequest) (any, error) {
	return a.server.registry.Heartbeat(a.callerOf(r), req)
}

func (a *API) deregister(r *http.Request) (any, error) {
	f := readFields(r, "appId")
	appID := f.text("appId")
	if f.err != nil {
		return nil, f.err
	}
	return a.server.registry.Deregister(a.callerOf(r), appID, func() procinfo.Process { return callerSocket(r).Remembered(a.pidsOf(appID)...) })
}

// pidsOf are the processes known under an appId; under all, when it is empty.
func (a *API) pidsOf(appID string) (pids []int) {
	for _, r := range a.server.registry.Registrants() {
		if appID == "" || r.AppID == appID {
			pids = append(pids, r.PID, r.CallerPID)
		}
	}
	return pids
}

// callerSocket is the other end of the connection that r came by; zero for the
// owner's socket.
func callerSocket(r *http.Request) procinfo.Socket {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return procinfo.Socket{}
	}
	here, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return procinfo.Socket{}
	}
	return procinfo.CallerSocket(from, here.AddrPort())
}
