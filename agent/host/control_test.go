package host

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/test/authhost"
)

// fakeControl is the agent's side of a control plane.
type fakeControl struct {
	url, pem   string
	credential string

	mu        sync.Mutex // protects what follows, and is held until url is known
	computer  controlapi.Computer
	confirmed bool
	enrolled  bool // the credential counts
	notice    *controlapi.UpdateNotice
	wished    string
	left      int         // how often the computer said that it leaves
	over      func(error) // ends its sync; nil for none
}

func newControl(t *testing.T) *fakeControl {
	t.Helper()
	c := &fakeControl{
		credential: "a-device-credential-of-a-test",
		computer:   controlapi.Computer{ID: "c1", Name: "cellar", Host: "cellar.porch.test", URL: "https://cellar.porch.test"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+controlapi.PathPublicKey, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) })
	mux.HandleFunc("POST "+controlapi.PathEnrol, c.enrol)
	mux.HandleFunc("POST "+controlapi.PathEnrolToken, c.poll)
	mux.HandleFunc("DELETE "+controlapi.PathComputer, c.admitted(c.leave))
	mux.HandleFunc("/", c.admitted(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	c.mu.Lock()
	defer c.mu.Unlock()
	server := authhost.Start(t, relay.Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(controlapi.HeaderProtocol, controlapi.Protocol)
			mux.ServeHTTP(w, r)
		}),
		Authenticate: c.authenticate, Sync: c.sync, Node: "one", Log: slog.New(slog.DiscardHandler),
	})
	c.url, c.pem = server.URL, string(server.PEM)
	return c
}

func (c *fakeControl) confirm() { c.mu.Lock(); defer c.mu.Unlock(); c.confirmed = true }

func (c *fakeControl) forgetComputer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enrolled = false
	if c.over != nil {
		c.over(unknown)
	}
}

func (c *fakeControl) rename(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.computer.Name, c.computer.Host = name, name+".porch.test"
}

// known says whether the credential counts.
func (c *fakeControl) known() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.enrolled }

func (c *fakeControl) admitted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.known() || r.Header.Get("Authorization") != "Bearer "+c.credential {
			refuseWith(w, http.StatusUnauthorized, controlapi.CodeUnauthorized)
			return
		}
		next(w, r)
	}
}

func (c *fakeControl) enrol(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var asked controlapi.EnrolRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuseWith(w, http.StatusBadRequest, controlapi.CodeInvalid)
		return
	}
	c.wished = asked.Name
	reply(w, controlapi.EnrolStarted{
		DeviceCode: "device-code", UserCode: "BCDF-GHJK",
		VerificationURI: c.url + "/device", VerificationURIComplete: c.url + "/device?code=BCDF-GHJK",
		ExpiresIn: 600, Interval: 1,
	})
}

func (c *fakeControl) poll(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.confirmed {
		refuseWith(w, http.StatusBadRequest, controlapi.CodeAuthorizationPending)
		return
	}
	c.enrolled = true
	reply(w, controlapi.Enrolled{Credential: c.credential, AccountID: "a1", Email: "maya@example.net", Computer: c.computer})
}

func (c *fakeControl) leave(http.ResponseWriter, *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enrolled = false
	c.left++
}

// sync is relay.Config.Sync.
func (c *fakeControl) sync(_ string, _ netip.Addr, _ string, tell func([]byte) error, over func(error)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told, err := json.Marshal(controlapi.Snapshot{Version: "v1", Computer: c.computer, UpdateNotice: c.notice, People: []controlapi.Person{
		{AccountID: "a1", Email: "maya@example.net", Role: controlapi.RoleOwner, Status: controlapi.PersonActive},
	}})
	if err = errors.Join(err, tell(told)); err != nil {
		over(err)
		return func() {}
	}
	c.over = over
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = nil
	}
}

func (c *fakeControl) authenticate(_ context.Context, credential string) (controlapi.Computer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.enrolled || credential != c.credential {
		return controlapi.Computer{}, unknown
	}
	return c.computer, nil
}

var unknown = &controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "No."}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the reader may have gone
}

func refuseWith(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(controlapi.Error{Code: code, Message: "No."})
}
