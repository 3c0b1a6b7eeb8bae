package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/sleeper"
)

func registering(appID string, pid int) request {
	return request{method: "POST", path: "/engine/register", body: fmt.Sprintf(`{"appId":%q,"pid":%d}`, appID, pid)}
}

// registered registers and returns the answer.
func (r *rig) registered(t testing.TB, appID string, pid int) agentapi.Registration {
	t.Helper()
	got := r.send(t, registering(appID, pid))
	var out agentapi.Registration
	if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.status != http.StatusOK || !out.OK || out.AppID != appID {
		t.Fatalf("registering: %d %s", got.status, got.body)
	}
	return out
}

// staying registers by a connection that stays open until the test ends, so that
// who called can be found after the answer.
func (r *rig) staying(t testing.TB, appID string, pid int) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	q := registering(appID, pid)
	got, err := (&http.Client{Transport: transport}).Post("http://"+r.addr+q.path, "application/json", strings.NewReader(q.body))
	programs.Must(t, err)
	defer got.Body.Close()
	if _, err := io.Copy(io.Discard, got.Body); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("registering: %s, %v", got.Status, err)
	}
}

// await waits for what the owner is shown.
func (r *rig) await(t testing.TB, what string, shown func([]agentapi.Registrant) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changed, stop := r.outside.changes.Subscribe()
	defer stop()
	for {
		state, err := r.owner().State(ctx)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if shown(state.Registrants) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: the owner sees %+v", what, state.Registrants)
		}
	}
}

// registrants counts what the owner is shown.
func (r *rig) registrants(t testing.TB) int {
	t.Helper()
	state := programs.Got(r.owner().State(t.Context()))(t)
	return len(state.Registrants)
}

// awaitRegistrants waits on the owner's events.
func (r *rig) awaitRegistrants(t testing.TB, n int) {
	t.Helper()
	r.await(t, fmt.Sprintf("awaiting %d", n), func(shown []agentapi.Registrant) bool { return len(shown) == n })
}

// me is this process.
var me = os.Getpid()

// registrationRows are the rows of TestSpec about registrations.
var registrationRows = map[string]func(*testing.T){
	"E1_register":                     onRig(e1Register),
	"E1_underscores":                  onRig(e1Underscores),
	"E1_wrong_input":                  onRig(e1WrongInput),
	"E2_register_again":               onRig(e2RegisterAgain),
	"E3_E4_heartbeat":                 e3E4Heartbeat,
	"E5_dead_pid":                     onRig(e5DeadPid),
	"E6_deregister":                   onRig(e6Deregister),
	"E7_last_one_out":                 e7LastOneOut,
	"E8_capability_of_an_earlier_run": onRig(e8CapabilityOfAnEarlierRun),
	"E9_protocol":                     onRig(e9Protocol),
	"M3_not_connected":                onRig(m3NotConnected),
}

func e1Register(t *testing.T, r *rig) {
	got := r.send(t, registering("com.example.notes", me))
	var fields map[string]any
	programs.Must(t, json.Unmarshal([]byte(got.body), &fields))
	capability, _ := fields["capability"].(string)
	delete(fields, "capability")
	want := "map[appId:com.example.notes heartbeatSeconds:10 ok:true protocol:1 registrants:1]"
	if got.status != http.StatusOK || fmt.Sprint(fields) != want || len(capability) < 43 {
		t.Errorf("%d %s, want %s and a capability of 256 bits", got.status, got.body, want)
	}
	state := programs.Got(r.owner().State(t.Context()))(t)
	if reg := state.Registrants; len(reg) != 1 || reg[0].AppID != "com.example.notes" || reg[0].PID != me || reg[0].CallerPID != me || reg[0].Program == "" || reg[0].User == "" {
		t.Errorf("the owner sees %+v", reg)
	}
}

// Ids of Java, Android and Flatpak have underscores.
func e1Underscores(t *testing.T, r *rig) {
	for _, appID := range []string{"com.my_company.my_app", "io.github.some_user.App", "_"} {
		for _, path := range []string{"/engine/register", "/engine/heartbeat", "/engine/deregister"} {
			q := registering(appID, me)
			q.path = path
			r.wants(t, q, http.StatusOK, "")
		}
	}
}

func e1WrongInput(t *testing.T, r *rig) {
	for body, says := range map[string]string{
		`{"pid":1}`:                                            `"appId" is missing`,
		`{"appId":"a"}`:                                        `"pid" is missing`,
		`{"appId":"a","pid":null}`:                             `"pid" is missing`,
		`{"appId":7,"pid":1}`:                                  `"appId" must be a text`,
		`{"appId":"a","pid":"1"}`:                              `"pid" must be a whole number`,
		`{"appId":"a","pid":1.5}`:                              `"pid" must be a whole number`,
		`{"appId":"a","pid":1.5e0}`:                            `"pid" must be a whole number`,
		`{"appId":"a","pid":1e400}`:                            `"pid" must be a whole number`,
		`{"appId":"a","pid":0}`:                                "above 0",
		`{"appId":"a","pid":-1}`:                               "above 0",
		`{"appId":"a","pid":-9999999999}`:                      "above 0",
		`{"appId":"a","pid":9999999999999999999999}`:           `"pid" must be a whole number`,
		`{"appId":"a","pid":1099511627776}`:                    "this computer has none above",
		`{"appId":"","pid":1}`:                                 "1 to 200",
		`{"appId":"a\u0000b","pid":1}`:                         "letters, digits, dots, hyphens and underscores",
		`{"appId":"a\u202eb","pid":1}`:                         "letters, digits, dots, hyphens and underscores",
		`{"appId":"` + strings.Repeat("a", 201) + `","pid":1}`: "1 to 200",
		`{"appid":"a","pid":1}`:                                `must be written "appId"`,
		`{"appId":"a","appId":"b","pid":1}`:                    "there twice",
		`[]`:                                                   "one JSON object",
	} {
		for _, path := range []string{"/engine/register", "/engine/heartbeat"} {
			r.wants(t, request{method: "POST", path: path, body: body}, http.StatusBadRequest, says)
		}
	}
	if n := r.registrants(t); n != 0 {
		t.Errorf("%d registrants", n)
	}
	r.wants(t, request{method: "POST", path: "/engine/register", body: fmt.Sprintf(`{"future":[1],"appId":"a","pid":%d}`, me)}, http.StatusOK, "")
}

func e2RegisterAgain(t *testing.T, r *rig) {
	first := r.registered(t, "com.example.notes", me)
	for range 5 {
		if again := r.registered(t, "com.example.notes", me); again != first {
			t.Fatalf("again it is %+v, first %+v", again, first)
		}
	}
	other := r.registered(t, "com.example.wiki", me)
	if other.Registrants != 2 || other.Capability != first.Capability {
		t.Errorf("another app: %+v", other)
	}
	// Two processes of one app are two.
	if twin := r.registered(t, "com.example.wiki", os.Getppid()); twin.Registrants != 3 {
		t.Errorf("another process of the same app: %+v", twin)
	}
}

func e3E4Heartbeat(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	r := startWith(t, func(r *rig) {
		r.regCfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	beat := func(appID string, status int, says string) {
		t.Helper()
		q := registering(appID, me)
		q.path = "/engine/heartbeat"
		r.wants(t, q, status, says)
	}
	beat("steady", http.StatusNotFound, "POST /engine/register")
	r.registered(t, "steady", me)
	r.registered(t, "silent", me)
	for range 4 {
		ahead.Add(int64(agentapi.HeartbeatEvery))
		beat("steady", http.StatusOK, `"ok":true`)
	}
	r.registered(t, "third", me) // has the registry look
	r.awaitRegistrants(t, 2)
	beat("silent", http.StatusNotFound, "") // 40 s without one
}

func e5DeadPid(t *testing.T, r *rig) {
	cmd := sleeper.Command()
	programs.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	r.registered(t, "mine", me)
	r.staying(t, "other", cmd.Process.Pid) // not the caller's: taken, and the caller is shown once it is found
	r.await(t, "who called for another process", func(reg []agentapi.Registrant) bool {
		return len(reg) == 2 && reg[1].PID == cmd.Process.Pid && reg[1].CallerPID == me && reg[1].Program != ""
	})
	programs.Must(t, cmd.Process.Kill())
	began := time.Now()
	r.awaitRegistrants(t, 1)
	t.Logf("reaped after %v", time.Since(began).Round(time.Millisecond))
	_ = cmd.Wait()
	r.staying(t, "dead", cmd.Process.Pid) // a pid nobody has any more
	r.awaitRegistrants(t, 1)
}

func e6Deregister(t *testing.T, r *rig) {
	r.registered(t, "notes", me)
	r.registered(t, "wiki", me)
	leave := request{method: "POST", path: "/engine/deregister", body: `{"appId":"notes"}`}
	for range 2 { // the second time it is unknown
		r.wants(t, leave, http.StatusOK, `{"ok":true,"registrants":1}`)
	}
	for _, body := range []string{`{}`, `{"appId":7}`, `{"appId":""}`} {
		leave.body = body
		r.wants(t, leave, http.StatusBadRequest, "")
	}
	// Two processes under one appId: the caller's goes, the other stays.
	r.registered(t, "wiki", os.Getppid())
	leave.body = `{"appId":"wiki"}`
	r.wants(t, leave, http.StatusOK, `{"ok":true,"registrants":1}`)
	if left := r.reg.Registrants(); len(left) != 1 || left[0].PID != os.Getppid() {
		t.Errorf("left is %+v", left)
	}
}

func e7LastOneOut(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(r *rig) { r.regCfg.Grace = 50 * time.Millisecond })
	r.registered(t, "notes", me)
	select {
	case <-r.reg.Idle():
		t.Fatal("idle with an app attached")
	default:
	}
	r.send(t, request{method: "POST", path: "/engine/deregister", body: `{"appId":"notes"}`})
	select {
	case <-r.reg.Idle():
	case <-time.After(programs.Patience):
		t.Fatal("not idle after the last one left")
	}
	if got := r.wants(t, registering("notes", me), http.StatusServiceUnavailable, "stopping"); got.header.Get("Retry-After") == "" {
		t.Error("an engine on its way out does not say when to come again")
	}
}

func e8CapabilityOfAnEarlierRun(t *testing.T, r *rig) {
	list := func(capability string) int {
		return r.send(t, request{method: "GET", path: "/people", header: http.Header{agentapi.HeaderCapability: {capability}}}).status
	}
	earlier := r.registered(t, "notes", me).Capability
	if got := list(earlier); got == http.StatusForbidden {
		t.Fatalf("the capability of this run: %d", got)
	}
	r.end()
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(earlier)) {
			t.Errorf("%s holds the capability", path)
		}
		return err
	})
	programs.Must(t, err)
	r.serve(t)
	if got := list(earlier); got != http.StatusForbidden {
		t.Errorf("the capability of an earlier run: %d", got)
	}
	if now := r.registered(t, "notes", me); now.Capability == earlier || now.Registrants != 1 {
		t.Errorf("the next run gave %+v", now)
	}
}

func e9Protocol(t *testing.T, r *rig) {
	if _, err := r.open().Attach(t.Context()); err != nil {
		t.Errorf("attaching: %v", err)
	}
	newer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"ok":true,"protocol":2,"capability":"x"}`)
	}))
	defer newer.Close()
	client := agentapi.New(newer.Listener.Addr().String())
	if _, err := client.Attach(t.Context()); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("attaching to another protocol: %v", err)
	}
	if _, err := client.Register(t.Context(), agentapi.RegisterRequest{AppID: "a", PID: me}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("registering with another protocol: %v", err)
	}
}

func m3NotConnected(t *testing.T, r *rig) {
	r.approved(t, "notes", "Notes")
	header := http.Header{agentapi.HeaderCapability: {r.registered(t, "notes", me).Capability}}
	for path, body := range map[string]string{
		"/people":        "",
		"/people/invite": `{"email":"bob@example.com","apps":["Notes"]}`,
		"/people/grant":  `{"accountId":"a2","app":"Notes","granted":false}`,
		"/people/revoke": `{"accountId":"a2"}`,
	} {
		q := request{method: "POST", path: path, body: body, header: header}
		if body == "" {
			q.method = "GET"
		}
		r.wants(t, q, http.StatusServiceUnavailable, "not connected")
	}
}

// TestManyPeople: 5,000 entries arrive whole; a spent budget says for how long.
func TestManyPeople(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben, refusal: &controlapi.Error{
		Code: controlapi.CodeTooMany, Message: "Many people were invited today. Try again later.", RetryAfter: 90 * time.Second,
	}}
	for i := range 4998 {
		control.others = append(control.others, controlapi.Person{
			AccountID: fmt.Sprintf("account-%04d-of-five-thousand", i), Email: fmt.Sprintf("person-%04d@%s.example.com", i, strings.Repeat("x", 40)),
			Role: controlapi.RoleMember, Status: controlapi.PersonActive, Apps: []string{"gone"},
		})
	}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	program := r.open()
	programs.Got(program.Register(t.Context(), agentapi.RegisterRequest{AppID: "com.example.notes", PID: os.Getpid()}))(t)
	for who, client := range map[string]*agentapi.Client{"a program": program, "the owner": r.owner()} {
		list, err := client.People(t.Context())
		if err != nil || len(list.Members) != 5000 {
			t.Fatalf("%s got %d people, %v", who, len(list.Members), err)
		}
		if first, last := list.Members[0], list.Members[4999]; first.Role != agentapi.RoleOwner || len(first.Apps) != 1 || last.Email[:11] != "person-4997" || last.Apps == nil || len(last.Apps) != 0 {
			t.Errorf("%s: the first is %+v, the last %+v", who, first, last)
		}
	}
	_, err := program.Invite(t.Context(), agentapi.InviteRequest{Email: "bob@example.com", Apps: []string{"Notes"}})
	var refusal *agentapi.Error
	if !errors.As(err, &refusal) || refusal.Code != agentapi.CodeTooMany || refusal.RetryAfter != 90*time.Second || !strings.HasPrefix(refusal.Message, "Many people") {
		t.Errorf("a spent budget: %+v", err)
	}
}
