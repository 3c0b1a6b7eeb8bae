package localapi

import (
	"encoding/json"
	"fmt"
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

// TestSpec shows the promises of docs/interface.md about publishing, status and
// registrations, over HTTP. What a visitor sees of it is shown where there are
// visitors, and people where there is a control plane.
func TestSpec(t *testing.T) {
	t.Parallel()
	registrationRows(t)
	const body = `{"name":"notes","label":"Notes","localPort":8000}`
	const live = `{"status":"live","host":"notes.maya.localhost:8443","url":"https://notes.maya.localhost:8443"}`
	publish := request{method: "POST", path: "/publish", body: body}
	get := request{method: "GET", path: "/publish/notes"}
	remove := request{method: "DELETE", path: "/publish/notes"}
	owner := func(verb string) func(*rig) request {
		return func(r *rig) request {
			return request{method: "POST", path: "/owner/apps/notes/" + verb, socket: true, secret: r.secret}
		}
	}
	always := func(q request) func(*rig) request { return func(*rig) request { return q } }

	// A story is a row told as requests and their answers, in order.
	type step struct {
		request func(*rig) request
		status  int
		body    string // exact, or "" for a refusal with a sentence
	}
	for row, story := range map[string][]step{
		"P1_first_publish_is_pending": {
			{always(publish), 202, `{"status":"pending"}`},
		},
		"P2_get_while_pending": {
			{always(publish), 202, `{"status":"pending"}`},
			{always(get), 200, `{"status":"pending"}`},
			{always(publish), 202, `{"status":"pending"}`},
		},
		"P3_approved_is_live": {
			{always(publish), 202, `{"status":"pending"}`},
			{owner("approve"), 200, live},
			{always(get), 200, live},
		},
		"P4_approved_name_is_live_at_once": {
			{always(publish), 202, `{"status":"pending"}`},
			{owner("approve"), 200, live},
			{always(publish), 200, live},
			{owner("stop"), 200, `{"ok":true,"closed":2,"milliseconds":0}`},
			{always(publish), 200, live},
		},
		"P5_delete_keeps_the_approval": {
			{always(publish), 202, `{"status":"pending"}`},
			{owner("approve"), 200, live},
			{always(remove), 200, `{"status":"revoked"}`},
			{always(get), 200, `{"status":"revoked"}`},
			{always(remove), 200, `{"status":"revoked"}`},
		},
		"P6_delete_then_publish_is_live": {
			{always(publish), 202, `{"status":"pending"}`},
			{owner("approve"), 200, live},
			{always(remove), 200, `{"status":"revoked"}`},
			{always(publish), 200, live},
			{always(get), 200, live},
		},
		"P7_owner_revokes": {
			{always(publish), 202, `{"status":"pending"}`},
			{owner("approve"), 200, live},
			{owner("revoke"), 200, `{"ok":true,"closed":2,"milliseconds":0}`},
			{always(get), 404, ""},
			{always(publish), 202, `{"status":"pending"}`},
		},
		"P8_never_published": {
			{always(get), 404, ""},
			{always(remove), 404, ""},
			{always(request{method: "GET", path: "/publish/No%20Name"}), 404, ""},
		},
		"P12_owner_denies": {
			{always(publish), 202, `{"status":"pending"}`},
			{owner("deny"), 200, `{"ok":true}`},
			{always(get), 404, ""},
			{owner("approve"), 404, ""},
			{always(publish), 202, `{"status":"pending"}`},
		},
		"P12_withdrawn_request": {
			{always(publish), 202, `{"status":"pending"}`},
			{always(remove), 200, `{"status":"revoked"}`},
			{always(get), 404, ""},
		},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			for i, s := range story {
				q := s.request(r)
				got := r.send(t, q)
				got.body = tookNoTime.ReplaceAllString(got.body, `"milliseconds":0`)
				if got.status != s.status || s.body != "" && got.body != s.body {
					t.Fatalf("step %d, %s %s: %d %s, want %d %s", i+1, q.method, q.path, got.status, got.body, s.status, s.body)
				}
				if s.body == "" {
					got.sentence(t)
				}
			}
		})
	}

	t.Run("P1_the_owner_tier_sees_it", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.send(t, publish)
		state, err := r.owner().State(t.Context())
		programs.Must(t, err)
		if len(state.Apps) != 1 {
			t.Fatalf("the owner sees %d apps", len(state.Apps))
		}
		app := state.Apps[0]
		if app.Name != "notes" || app.Label != "Notes" || app.LocalPort != 8000 || app.Status != agentapi.StatusPending || app.Quiet || app.Listener.Program != "notesd" {
			t.Fatalf("the owner sees %+v", app)
		}
	})

	t.Run("P9_names", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		for i, name := range []string{"a", "0", "-", "a-b-0", strings.Repeat("z", 63)} {
			q := publish
			q.body = fmt.Sprintf(`{"name":%q,"label":"App %d","localPort":8000}`, name, i)
			if got := r.send(t, q); got.status != 202 {
				t.Errorf("%q: %d %s", name, got.status, got.body)
			}
		}
		for _, name := range []string{"", strings.Repeat("z", 64), "Notes", "no tes", "a.b", "a_b", "é", "notes\n", "..", "a/b", "\x00"} {
			q := publish
			raw, _ := json.Marshal(name)
			q.body = fmt.Sprintf(`{"name":%s,"label":"Other","localPort":8000}`, raw)
			got := r.send(t, q)
			if got.status != 400 {
				t.Errorf("%q: %d %s", name, got.status, got.body)
			}
			got.sentence(t)
		}
	})

	t.Run("P10_reserved_names", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		for _, name := range []string{"www", "portal", "maya"} {
			q := publish
			q.body = fmt.Sprintf(`{"name":%q,"label":"Notes","localPort":8000}`, name)
			got := r.send(t, q)
			if got.status != 400 || !strings.Contains(got.sentence(t), name) {
				t.Errorf("%q: %d %s", name, got.status, got.body)
			}
		}
	})

	t.Run("P11_wrong_input", func(t *testing.T) {
		t.Parallel()
		r := start(t)
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
			got := r.send(t, q)
			if s := got.sentence(t); got.status != want.status || !strings.Contains(s, want.says) {
				t.Errorf("%.80s: %d %s, want %d with %q", body, got.status, s, want.status, want.says)
			}
		}
		state, err := r.owner().State(t.Context())
		programs.Must(t, err)
		if len(state.Apps) != 1 {
			t.Errorf("something was stored: %+v", state.Apps)
		}
		q := publish
		q.body = `{"future":{"name":1},"name":"notes","label":" Notes ","localPort":8000}`
		if got := r.send(t, q); got.status != 202 {
			t.Errorf("a field nobody knows: %d %s", got.status, got.body)
		}
	})

	t.Run("P13_states_survive_a_restart", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.approved(t, "notes", "Notes")
		r.approved(t, "photos", "Photos")
		r.send(t, request{method: "DELETE", path: "/publish/photos"})
		r.send(t, request{method: "POST", path: "/publish", body: `{"name":"wiki","label":"Wiki","localPort":8000}`})
		r.end()
		r.serve(t)
		for name, want := range map[string]string{"notes": live, "photos": `{"status":"revoked"}`, "wiki": `{"status":"pending"}`} {
			if got := r.send(t, request{method: "GET", path: "/publish/" + name}); got.status != 200 || got.body != want {
				t.Errorf("%s: %d %s, want %s", name, got.status, got.body, want)
			}
		}
	})

	t.Run("P14_loopback_only", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		_, port, err := net.SplitHostPort(r.addr)
		programs.Must(t, err)
		addresses, err := net.InterfaceAddrs()
		programs.Must(t, err)
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
		if got := r.send(t, q); got.status != 403 {
			t.Errorf("a foreign Host: %d %s", got.status, got.body)
		}
		if state, err := r.owner().State(t.Context()); err != nil || len(state.Apps) != 0 {
			t.Errorf("a foreign Host arrived: %+v, %v", state.Apps, err)
		}
	})

	t.Run("S1_status", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.outside.set(func(o *outside) { o.connection.Account = agentapi.Account{} })
		status := request{method: "GET", path: "/status"}
		if got, want := r.send(t, status), `{"connected":false,"host":"","name":"","url":"","pendingApps":0,"dark":false,"apps":[]}`; got.status != 200 || got.body != want {
			t.Errorf("before connecting: %d %s, want %s", got.status, got.body, want)
		}
		r.outside.set(func(o *outside) { o.connection.Account = connected })
		r.approved(t, "notes", "Notes")
		r.approved(t, "photos", "Photos")
		r.send(t, request{method: "DELETE", path: "/publish/photos"})
		r.send(t, request{method: "POST", path: "/publish", body: `{"name":"wiki","label":"Wiki","localPort":8000}`})
		want := `{"connected":true,"host":"maya.localhost:8443","name":"maya","url":"https://maya.localhost:8443","pendingApps":1,"dark":false,` +
			`"apps":[{"name":"notes","label":"Notes","localPort":8000,"status":"live","host":"notes.maya.localhost:8443","url":"https://notes.maya.localhost:8443","paused":false}]}`
		if got := r.send(t, status); got.status != 200 || got.body != want {
			t.Errorf("connected: %d %s, want %s", got.status, got.body, want)
		}
		// The owner's pause is told here alone: for the app itself it stays live.
		if got := r.send(t, request{method: "POST", path: "/owner/apps/notes/pause", socket: true, secret: r.secret}); got.status != 200 {
			t.Errorf("pause: %d %s", got.status, got.body)
		}
		want = strings.Replace(want, `"paused":false`, `"paused":true`, 1)
		if got := r.send(t, status); got.status != 200 || got.body != want {
			t.Errorf("paused: %d %s, want %s", got.status, got.body, want)
		}
		for dark, method := range map[string]string{"true": "POST", "false": "DELETE"} {
			if got := r.send(t, request{method: method, path: "/owner/dark", socket: true, secret: r.secret}); got.status != 200 {
				t.Errorf("dark %s: %d %s", dark, got.status, got.body)
			}
			want := strings.Replace(want, `"dark":false`, `"dark":`+dark, 1)
			if got := r.send(t, status); got.status != 200 || got.body != want {
				t.Errorf("dark: %d %s, want %s", got.status, got.body, want)
			}
		}
	})

	t.Run("S2_nothing_listens_after_the_end", nothingListens)

	t.Run("S3_engine_info", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		want := fmt.Sprintf(`{"engineVersion":"1.2.3","protocol":1,"pid":%d,"mode":"headless","connected":true,"host":"maya.localhost:8443","name":"maya",`+
			`"firstPartyApp":"","registrants":0,"billing":{"plan":"self-hosted","standing":"good"}}`, os.Getpid())
		if got := r.send(t, request{method: "GET", path: "/engine/info"}); got.status != 200 || got.body != want {
			t.Errorf("%d %s, want %s", got.status, got.body, want)
		}
	})
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
		polled, err := r.open().Publication(t.Context(), "notes")
		programs.Must(t, err)
		again, err := r.open().Publish(t.Context(), req)
		programs.Must(t, err)
		return []agentapi.Publication{polled, again}
	}
	programs.MustDo(t)(r.open().Publish(t.Context(), req))
	pub, err := r.owner().Approve(t.Context(), "notes")
	programs.Must(t, err)
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
		programs.MustDo(t)(r.open().Publish(t.Context(), req))
	}
	for _, seen := range []agentapi.Seen{{Label: "Notes", LocalPort: 8000}, {Label: "Diary", LocalPort: 9000}} {
		if _, err := r.owner().ApproveSeen(t.Context(), "notes", seen); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("approved as %+v: %v", seen, err)
		}
	}
	for _, body := range []string{
		`{}`, `{"label":"Notes"}`, `{"label":"Notes","localPort":"9000"}`, `7`, `{"alone":"yes"}`, `{"alone":true,"user":"maya"}`,
		`{"label":"Notes","localPort":9000,"program":1}`,
	} {
		got := r.send(t, request{method: "POST", path: "/owner/apps/notes/approve", body: body, socket: true, secret: r.secret})
		if got.status != 400 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
		got.sentence(t)
	}
	for _, seen := range []agentapi.Seen{
		{Label: "Notes", LocalPort: 9000, Program: new("python3"), User: new("maya")},
		{Label: "Notes", LocalPort: 9000, Program: new("notesd"), User: new("root")},
	} {
		if _, err := r.owner().ApproveSeen(t.Context(), "notes", seen); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("approved as %s of %s: %v", *seen.Program, *seen.User, err)
		}
	}
	pub, err := r.owner().ApproveSeen(t.Context(), "notes", agentapi.Seen{Label: "Notes", LocalPort: 9000, Program: new("notesd"), User: new("maya")})
	if err != nil || pub.Status != agentapi.StatusLive {
		t.Errorf("approved as it is: %+v, %v", pub, err)
	}
}
