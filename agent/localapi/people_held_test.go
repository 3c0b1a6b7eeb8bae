package localapi

import (
	"net/http"
	"testing"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
)

// What is held, undone, settled and disconnected, over HTTP: the shapes are the
// rig's to check, and each wrong request is refused in words and changes nothing.
func TestHeldAndDisconnected(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	app, _ := r.apps.ByLabel("Notes")
	control.row.Apps = []string{app.ID}
	r.access.SetSnapshot(controlapi.Snapshot{Version: "1", Computer: controlapi.Computer{ID: "c1", Name: "maya"}, People: []controlapi.Person{control.row}})

	do := func(method, path, body string, status int, says string) {
		t.Helper()
		r.wants(t, r.byOwner(method, path, body), status, says)
	}
	refused := http.StatusBadRequest
	for path, bodies := range map[string][]string{
		"/owner/people/revoke": {`{"accountId":"b2","holdSeconds":"30"}`, `{"accountId":"b2","holdSeconds":-1}`, `{"accountId":"b2","holdSeconds":61}`, `{"accountId":"b2","holdSeconds":18446744074}`, `{"accountId":"b2","holdSeconds":1.5}`},
		"/owner/people/grant":  {`{"accountId":"b2","app":"Notes","granted":false,"holdSeconds":61}`, `{"accountId":"b2","app":"Notes","granted":false,"holdSeconds":null}`},
		"/owner/people/undo":   {`{}`, `{"accountId":2}`, `{"accountId":""}`, `{"accountId":"b2","app":"Nobody's"}`, `{"accountId":"b2","app":null}`, `[]`, ``},
		"/owner/people/settle": {`{"accountId":2}`, `{"accountId":"b2","app":7}`},

		"/owner/visitors/disconnect": {`{}`, `{"accountId":""}`, `{"grantId":"g1"}`, `{"accountId":"b2","grantId":7}`},
	} {
		for _, body := range bodies {
			do("POST", path, body, refused, "")
		}
	}
	if control.row.Status != controlapi.PersonActive || len(control.row.Apps) != 1 {
		t.Fatalf("a refused request changed him to %+v", control.row)
	}

	const whole, notes = `{"accountId":"b2"}`, `{"accountId":"b2","app":"Notes"}`
	do("POST", "/owner/people/revoke", `{"accountId":"b2","holdSeconds":60}`, http.StatusOK, `"heldUntil":"`)
	do("POST", "/owner/people/undo", notes, http.StatusConflict, "too late")
	do("POST", "/owner/people/undo", whole, http.StatusOK, `"status":"active"`)
	do("POST", "/owner/people/undo", whole, http.StatusConflict, "too late")
	do("POST", "/owner/people/grant", `{"accountId":"b2","app":"Notes","granted":false,"holdSeconds":60}`, http.StatusOK, `"heldUntil":"`)
	do("POST", "/owner/people/undo", notes, http.StatusOK, `"apps":["Notes"]`)
	if control.row.Status != controlapi.PersonActive || len(control.row.Apps) != 1 {
		t.Fatalf("what was undone reached the control plane: %+v", control.row)
	}

	closed := 0
	d, leave := r.access.Enter(access.Identity{AccountID: "b2"}, app.ID, func() { closed++ })
	defer leave()
	if !d.Allowed {
		t.Fatalf("he cannot come in: %+v", d)
	}
	do("GET", "/owner/visitors", "", http.StatusOK, `[{"accountId":"b2","email":"ben@example.net","apps":["Notes"],"connections":1}]`)
	do("GET", "/owner/state", "", http.StatusOK, `"here":["ben@example.net"]`)
	do("GET", "/owner/state", "", http.StatusOK, `"here":1,`)
	do("POST", "/owner/visitors/disconnect", `{"accountId":"b2","grantId":"g1"}`, http.StatusOK, `"closed":0`)
	do("POST", "/owner/visitors/disconnect", whole, http.StatusOK, `"closed":1`)
	do("GET", "/owner/visitors", "", http.StatusOK, `[]`)
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}

	do("POST", "/owner/people/revoke", `{"accountId":"b2","holdSeconds":60}`, http.StatusOK, `"heldUntil":"`)
	do("POST", "/owner/people/settle", `{}`, http.StatusOK, `"ok":true`)
	if control.row.Status != controlapi.PersonRemoved {
		t.Errorf("settled, he is %+v", control.row)
	}
	do("POST", "/owner/people/settle", whole, http.StatusOK, `"ok":true`)
	do("POST", "/owner/people/settle", `{"accountId":"b2","app":"Nobody's"}`, http.StatusOK, `"ok":true`)
}
