package localapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// tookNoTime is how long closing took, which is another every time.
var tookNoTime = regexp.MustCompile(`"milliseconds":\d+`)

// live is what notes is told once it is approved.
const live = `{"status":"live","host":"notes.maya.localhost:8443","url":"https://notes.maya.localhost:8443"}`

// publish asks for notes.
var publish = request{method: "POST", path: "/publish", body: `{"name":"notes","label":"Notes","localPort":8000}`}

// onRig runs a row of the promises beside the others, on a rig of its own.
func onRig(show func(*testing.T, *rig)) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		show(t, start(t))
	}
}

// storySteps are what can be done with notes, and storyAnswers what is answered: a body exactly,
// or a refusal with a sentence.
var (
	storySteps = map[string]request{
		"publish": publish,
		"get":     {method: "GET", path: "/publish/notes"},
		"remove":  {method: "DELETE", path: "/publish/notes"},
		"odd":     {method: "GET", path: "/publish/No%20Name"},
		"approve": {method: "POST", path: "/owner/apps/notes/approve", socket: true},
		"deny":    {method: "POST", path: "/owner/apps/notes/deny", socket: true},
		"stop":    {method: "POST", path: "/owner/apps/notes/stop", socket: true},
		"revoke":  {method: "POST", path: "/owner/apps/notes/revoke", socket: true},
	}
	storyAnswers = map[string]struct {
		status int
		body   string
	}{
		"asked":   {202, `{"status":"pending"}`},
		"pending": {200, `{"status":"pending"}`},
		"live":    {200, live},
		"off":     {200, `{"status":"revoked"}`},
		"ok":      {200, `{"ok":true}`},
		"closed":  {200, `{"ok":true,"closed":2,"milliseconds":0}`},
		"nothing": {404, ""},
	}
	// stories are rows told as requests and their answers, in order.
	stories = map[string]string{
		"P1_first_publish_is_pending":      "publish asked",
		"P2_get_while_pending":             "publish asked, get pending, publish asked",
		"P3_approved_is_live":              "publish asked, approve live, get live",
		"P4_approved_name_is_live_at_once": "publish asked, approve live, publish live, stop closed, publish live",
		"P5_delete_keeps_the_approval":     "publish asked, approve live, remove off, get off, remove off",
		"P6_delete_then_publish_is_live":   "publish asked, approve live, remove off, publish live, get live",
		"P7_owner_revokes":                 "publish asked, approve live, revoke closed, get nothing, publish asked",
		"P8_never_published":               "get nothing, remove nothing, odd nothing",
		"P12_owner_denies":                 "publish asked, deny ok, get nothing, approve nothing, publish asked",
		"P12_withdrawn_request":            "publish asked, remove off, get nothing",
	}
)

// told shows a story.
func told(story string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		for i, step := range strings.Split(story, ", ") {
			verb, answer, _ := strings.Cut(step, " ")
			q, want := storySteps[verb], storyAnswers[answer]
			if q.socket {
				q.secret = r.secret
			}
			got := r.send(t, q)
			got.body = tookNoTime.ReplaceAllString(got.body, `"milliseconds":0`)
			if got.status != want.status || want.body != "" && got.body != want.body {
				t.Fatalf("step %d, %s: %d %s", i+1, step, got.status, got.body)
			}
			if want.body == "" {
				got.sentence(t)
			}
		}
	}
}

// TestSpec shows the promises of docs/interface.md about publishing, status and
// registrations, over HTTP. What a visitor sees of it is shown where there are
// visitors, and people where there is a control plane.
func TestSpec(t *testing.T) {
	t.Parallel()
	rows := map[string]func(*testing.T){
		"P1_the_owner_tier_sees_it":        onRig(p1TheOwnerTierSeesIt),
		"P9_names":                         onRig(p9Names),
		"P10_reserved_names":               onRig(p10ReservedNames),
		"P11_wrong_input":                  onRig(p11WrongInput),
		"P13_states_survive_a_restart":     onRig(p13StatesSurviveARestart),
		"P14_loopback_only":                onRig(p14LoopbackOnly),
		"S1_status":                        onRig(s1Status),
		"S3_engine_info":                   onRig(s3EngineInfo),
		"S2_nothing_listens_after_the_end": nothingListens,
	}
	maps.Copy(rows, registrationRows)
	for row, story := range stories {
		rows[row] = onRig(told(story))
	}
	for row, show := range rows {
		t.Run(row, show)
	}
}

func p1TheOwnerTierSeesIt(t *testing.T, r *rig) {
	r.send(t, publish)
	state := programs.Got(r.owner().State(t.Context()))(t)
	if len(state.Apps) != 1 {
		t.Fatalf("the owner sees %d apps", len(state.Apps))
	}
	app := state.Apps[0]
	if app.Name != "notes" || app.Label != "Notes" || app.LocalPort != 8000 || app.Status != agentapi.StatusPending || app.Quiet || app.Listener.Program != "notesd" {
		t.Fatalf("the owner sees %+v", app)
	}
}

func p9Names(t *testing.T, r *rig) {
	for i, name := range []string{"a", "0", "-", "a-b-0", strings.Repeat("z", 63)} {
		q := publish
		q.body = fmt.Sprintf(`{"name":%q,"label":"App %d","localPort":8000}`, name, i)
		r.wants(t, q, 202, "")
	}
	for _, name := range []string{"", strings.Repeat("z", 64), "Notes", "no tes", "a.b", "a_b", "é", "notes\n", "..", "a/b", "\x00"} {
		q := publish
		raw, _ := json.Marshal(name)
		q.body = fmt.Sprintf(`{"name":%s,"label":"Other","localPort":8000}`, raw)
		r.wants(t, q, 400, "")
	}
}

func p10ReservedNames(t *testing.T, r *rig) {
	for _, name := range []string{"www", "portal", "maya"} {
		q := publish
		q.body = fmt.Sprintf(`{"name":%q,"label":"Notes","localPort":8000}`, name)
		r.wants(t, q, 400, name)
	}
}

func p11WrongInput(t *testing.T, r *rig) {
	r.approved(t, "photos", "Photos")
	own := r.addr[strings.LastIndexByte(r.addr, ':')+1:]
	long := strings.Repeat("é", 101)
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"label":"Notes","localPort":8000}`:                                {400, `"name" is missing`},
		`{"name":"notes","localPort":8000}`:                                 {400, `"label" is missing`},
		`{"name":"notes","label":"Notes"}`:                                  {400, `"localPort" is missing`},
		`{"name":null,"label":"Notes","localPort":8000}`:                    {400, `"name" is missing`},
		`{"name":7,"label":"Notes","localPort":8000}`:                       {400, `"name" must be a text`},
		`{"name":"notes","label":["Notes"],"localPort":8000}`:               {400, `"label" must be a text`},
		`{"name":"notes","label":"Notes","localPort":"8000"}`:               {400, `"localPort" must be a whole number`},
		`{"name":"notes","label":"Notes","localPort":8080.5}`:               {400, `"localPort" must be a whole number`},
		`{"name":"notes","label":"Notes","localPort":99999999999999999999}`: {400, `"localPort" must be a whole number`},
		`{"name":"notes","label":"Notes","localPort":true}`:                 {400, `"localPort" must be a whole number`},
		`{"name":"notes","label":"Notes","localPort":0}`:                    {400, "1 to 65535"},
		`{"name":"notes","label":"Notes","localPort":-1}`:                   {400, "1 to 65535"},
		`{"name":"notes","label":"Notes","localPort":65536}`:                {400, "1 to 65535"},
		`{"name":"notes","label":"Notes","localPort":` + own + `}`:          {400, "Porchlight's own"},
		`{"name":"notes","label":"  ","localPort":8000}`:                    {400, "empty"},
		`{"name":"notes","label":"` + long + `","localPort":8000}`:          {400, "100"},
		`{"name":"notes","label":"a\u0007b","localPort":8000}`:              {400, "control"},
		`{"name":"notes","label":"a\u202eb","localPort":8000}`:              {400, "control"},
		"{\"name\":\"notes\",\"label\":\"a\xff\",\"localPort\":8000}":       {400, "UTF-8"},
		`{"name":"notes","label":"pHOTOS","localPort":8000}`:                {409, "already"},
		`{"name":"notes","name":"other","label":"N","localPort":8000}`:      {400, `"name" is there twice`},
		`{"name":"notes","Label":"N","localPort":8000}`:                     {400, `must be written "label"`},
		`{"name":"notes","label":"N","label":"M","localPort":8000}`:         {400, `"label" is there twice`},
		`{"name":"notes","label":"N","localPort":8000}{}`:                   {400, "one JSON object"},
		`{"name":"notes","label":"N","localPort":8000} x`:                   {400, "one JSON object"},
		`{"name":"notes","label":"N","localPort":8000`:                      {400, "one JSON object"},
		`["notes"]`: {400, "one JSON object"},
		`null`:      {400, "one JSON object"},
		`notes`:     {400, "one JSON object"},
		``:          {400, "one JSON object"},
		`{"name":"notes","label":"N","localPort":8000,"x":"` + strings.Repeat("x", agentapi.MaxBody) + `"}`: {413, "too large"},
	} {
		q := publish
		q.body = body
		r.wants(t, q, want.status, want.says)
	}
	state := programs.Got(r.owner().State(t.Context()))(t)
	if len(state.Apps) != 1 {
		t.Errorf("something was stored: %+v", state.Apps)
	}
	q := publish
	q.body = `{"future":{"name":1},"name":"notes","label":" Notes ","localPort":8000}`
	r.wants(t, q, 202, "") // a field nobody knows
}

func p13StatesSurviveARestart(t *testing.T, r *rig) {
	r.approved(t, "notes", "Notes")
	r.approved(t, "photos", "Photos")
	r.send(t, request{method: "DELETE", path: "/publish/photos"})
	r.send(t, request{method: "POST", path: "/publish", body: `{"name":"wiki","label":"Wiki","localPort":8000}`})
	r.end()
	r.serve(t)
	for name, want := range map[string]string{"notes": live, "photos": `{"status":"revoked"}`, "wiki": `{"status":"pending"}`} {
		r.wants(t, request{method: "GET", path: "/publish/" + name}, 200, want)
	}
}

func p14LoopbackOnly(t *testing.T, r *rig) {
	_, port, err := net.SplitHostPort(r.addr)
	programs.Must(t, err)
	addresses := programs.Got(net.InterfaceAddrs())(t)
	others := []string{"127.0.0.2"} // another computer's, as far as binding goes
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			others = append(others, n.IP.String())
		}
	}
	for _, ip := range others {
		if c, err := net.Dial("tcp", net.JoinHostPort(ip, port)); err == nil {
			c.Close()
			t.Errorf("%s takes connections on the API's port", ip)
		}
	}
	q := publish
	q.host = "porchlight.example:" + port
	r.wants(t, q, 403, "")
	if state, err := r.owner().State(t.Context()); err != nil || len(state.Apps) != 0 {
		t.Errorf("a foreign Host arrived: %+v, %v", state.Apps, err)
	}
}

func s1Status(t *testing.T, r *rig) {
	r.outside.set(func(o *outside) { o.connection.Account = agentapi.Account{} })
	status := request{method: "GET", path: "/status"}
	r.wants(t, status, 200, `{"connected":false,"host":"","name":"","url":"","pendingApps":0,"dark":false,"apps":[]}`)
	r.outside.set(func(o *outside) { o.connection.Account = connected })
	r.approved(t, "notes", "Notes")
	r.approved(t, "photos", "Photos")
	r.send(t, request{method: "DELETE", path: "/publish/photos"})
	r.send(t, request{method: "POST", path: "/publish", body: `{"name":"wiki","label":"Wiki","localPort":8000}`})
	want := `{"connected":true,"host":"maya.localhost:8443","name":"maya","url":"https://maya.localhost:8443","pendingApps":1,"dark":false,` +
		`"apps":[{"name":"notes","label":"Notes","localPort":8000,"status":"live","host":"notes.maya.localhost:8443","url":"https://notes.maya.localhost:8443","paused":false}]}`
	r.wants(t, status, 200, want)
	// The owner's pause is told here alone: for the app itself it stays live.
	r.wants(t, r.byOwner("POST", "/owner/apps/notes/pause", ""), 200, "")
	want = strings.Replace(want, `"paused":false`, `"paused":true`, 1)
	r.wants(t, status, 200, want)
	for dark, method := range map[string]string{"true": "POST", "false": "DELETE"} {
		r.wants(t, r.byOwner(method, "/owner/dark", ""), 200, "")
		r.wants(t, status, 200, strings.Replace(want, `"dark":false`, `"dark":`+dark, 1))
	}
}

func s3EngineInfo(t *testing.T, r *rig) {
	want := fmt.Sprintf(`{"engineVersion":"1.2.3","protocol":1,"pid":%d,"mode":"headless","connected":true,"host":"maya.localhost:8443","name":"maya",`+
		`"firstPartyApp":"","registrants":0,"billing":{"plan":"self-hosted","standing":"good"}}`, os.Getpid())
	r.wants(t, request{method: "GET", path: "/engine/info"}, 200, want)
}

// TestLiveHasAnAddress: while this computer has none, an approved app is pending to
// its program, and live in the owner's state; with one it is live to both.
func TestLiveHasAnAddress(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.outside.set(func(o *outside) { o.connection.Account = agentapi.Account{} })
	req := agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000}
	asked := func() []agentapi.Publication {
		t.Helper()
		polled := programs.Got(r.open().Publication(t.Context(), "notes"))(t)
		again := programs.Got(r.open().Publish(t.Context(), req))(t)
		return []agentapi.Publication{polled, again}
	}
	programs.Got(r.open().Publish(t.Context(), req))(t)
	pub := programs.Got(r.owner().Approve(t.Context(), "notes"))(t)
	for _, pub := range append(asked(), pub.Publication) {
		if pub != (agentapi.Publication{Status: agentapi.StatusPending}) {
			t.Errorf("without an address: %+v", pub)
		}
	}
	state, err := r.owner().State(t.Context())
	if err != nil || state.Apps[0].Status != agentapi.StatusLive || state.Apps[0].URL != "" {
		t.Errorf("to the owner: %+v, %v", state.Apps, err)
	}
	if s, err := r.open().Status(t.Context()); err != nil || len(s.Apps) != 0 || s.PendingApps != 0 {
		t.Errorf("status: %+v, %v", s, err)
	}
	r.outside.set(func(o *outside) { o.connection.Account = connected })
	for _, pub := range asked() {
		if want := "notes." + connected.Host; pub != (agentapi.Publication{Status: agentapi.StatusLive, Host: want, URL: "https://" + want}) {
			t.Errorf("with one: %+v", pub)
		}
	}
}

// TestApproveWhatWasSeen. Weakness: between the owner's look and the owner's yes
// a program asks again with another label or port. Checked over HTTP: the yes
// then counts for nothing, and one to what is there counts.
func TestApproveWhatWasSeen(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, req := range []agentapi.PublishRequest{{Name: "notes", Label: "Notes", LocalPort: 8000}, {Name: "notes", Label: "Notes", LocalPort: 9000}} {
		programs.Got(r.open().Publish(t.Context(), req))(t)
	}
	for _, seen := range []agentapi.Seen{{Label: "Notes", LocalPort: 8000}, {Label: "Diary", LocalPort: 9000}} {
		if _, err := r.owner().ApproveSeen(t.Context(), "notes", agentapi.Approval{Seen: &seen}); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("approved as %+v: %v", seen, err)
		}
	}
	for _, body := range []string{
		`{}`, `{"label":"Notes"}`, `{"label":"Notes","localPort":"9000"}`, `7`, `{"alone":"yes"}`, `{"alone":true,"user":"maya"}`,
		`{"label":"Notes","localPort":9000,"program":1}`, `{"until":"soon"}`, `{"until":7}`, `{"until":"2020-01-31"}`, `{"until":"today","label":"Notes"}`,
	} {
		r.wants(t, r.byOwner("POST", "/owner/apps/notes/approve", body), 400, "")
	}
	for _, seen := range []agentapi.Seen{
		{Label: "Notes", LocalPort: 9000, Program: new("python3"), User: new("maya")},
		{Label: "Notes", LocalPort: 9000, Program: new("notesd"), User: new("root")},
	} {
		if _, err := r.owner().ApproveSeen(t.Context(), "notes", agentapi.Approval{Seen: &seen}); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("approved as %s of %s: %v", *seen.Program, *seen.User, err)
		}
	}
	pub, err := r.owner().ApproveSeen(t.Context(), "notes", agentapi.Approval{Seen: &agentapi.Seen{Label: "Notes", LocalPort: 9000, Program: new("notesd"), User: new("maya")}})
	if err != nil || pub.Status != agentapi.StatusLive {
		t.Errorf("approved as it is: %+v, %v", pub, err)
	}
	for _, body := range []string{`{"until":"2h"}`, `{"until":"never","alone":true}`, `{"until":"2h","alone":false}`} {
		r.wants(t, r.byOwner("POST", "/owner/apps/notes/approve", body), 200, `"live"`)
		state := programs.Got(r.owner().State(t.Context()))(t)
		if until := state.Apps[0].Until; (until != nil) != strings.Contains(body, "2h") {
			t.Errorf("%s: until %v", body, until)
		}
	}
}
