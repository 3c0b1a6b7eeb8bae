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
	registration, err := a.cfg.Registry.Register(by, req, func() procinfo.Process { return caller(r, req.PID) })
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, registration)
}

func (a *API) beat(w http.ResponseWriter, r *http.Request) error {
	req, err := readRegistration(r)
	if err != nil {
		return err
	}
	beat, err := a.cfg.Registry.Heartbeat(a.callerOf(r), req)
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
	left, err := a.cfg.Registry.Deregister(a.callerOf(r), appID, func() procinfo.Process { return caller(r, 0) })
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

// caller is the process that sent r, as far as the system tells. It takes
// milliseconds where hint, the id it probably has, is wrong.
func caller(r *http.Request, hint int) procinfo.Process {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return procinfo.Process{} // the owner's socket
	}
	here, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return procinfo.Process{}
	}
	return procinfo.Caller(from, here.AddrPort(), hint)
}
