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
func (a *API) register(w http.ResponseWriter, r *http.Request) error {
	req, err := readRegistration(r)
	if err != nil {
		return err
	}
	by := a.callerOf(r)
	if err := a.letIn(r, by); err != nil {
		return err
	}
	var from procinfo.Socket
	var known procinfo.Process
	registration, err := a.server.registry.Register(by, req, func() procinfo.Process {
		from = callerSocket(r)
		known = from.Known(req.PID)
		return known
	})
	if err != nil {
		return err
	}
	if from.Inode != 0 && known.PID == 0 {
		// Whose pid is not the one claimed is found among all processes, which
		// nobody waits for. It begins while the caller's connection is open.
		go func() { a.server.registry.Identify(by, req, from.Find()) }()
	}
	return answer(w, http.StatusOK, registration)
}

func (a *API) beat(w http.ResponseWriter, r *http.Request) error {
	req, err := readRegistration(r)
	if err != nil {
		return err
	}
	beat, err := a.server.registry.Heartbeat(a.callerOf(r), req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, beat)
}

func (a *API) deregister(w http.ResponseWriter, r *http.Request) error {
	f, err := readFields(r, "appId")
	if err != nil {
		return err
	}
	appID, err := f.text("appId")
	if err != nil {
		return err
	}
	left, err := a.server.registry.Deregister(a.callerOf(r), appID, func() procinfo.Process { return callerSocket(r).Known(a.pidsOf(appID)...) })
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, left)
}

func readRegistration(r *http.Request) (req agentapi.RegisterRequest, err error) {
	f, err := readFields(r, "appId", "pid")
	if err != nil {
		return req, err
	}
	if req.AppID, err = f.text("appId"); err != nil {
		return req, err
	}
	req.PID, err = f.integer("pid")
	return req, err
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
