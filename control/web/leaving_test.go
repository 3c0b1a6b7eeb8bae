package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// What is kept of an account is to be had as a file, and the account ends after a page that says
// what goes with it, each after the passkey where there is one; afterwards the browser is
// signed out, and the address opens nothing.
func TestExportAndDelete(t *testing.T) {
	t.Parallel()
	for kind, newRig := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.member("bob@example.com", "app1")
			other := must(r.svc.Computers.Ensure(t.Context(), "tomas@example.com", "tomas"))
			must(0, r.svc.Agents.PutApps(t.Context(), other.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "app2", Name: "photos", Label: "Photos", Live: true}}}))
			r.memberOf(other.Computer.ID, "maya@example.com", "app2")
			p := r.mailedIn("maya@example.com", 1).passkey()
			b := r.mailedIn("maya@example.com", 2)
			for _, path := range []string{"/account/export", "/account/delete"} {
				before := r.rows()
				want := "/signin?" + url.Values{"return": {path}}.Encode()
				if to := b.get(path).to(t); to != want {
					t.Errorf("a mail leads from %s to %s", path, to)
				}
				if to := b.post("/account/delete").to(t); !strings.HasPrefix(to, "/signin?return=") {
					t.Errorf("a mail deletes: %s", to)
				}
				r.unchanged(path, before)
			}
			if to := b.touch(p, "/account/export").to(t); to != "/account/export" {
				t.Errorf("a touch leads to %s", to)
			}
			file := b.get("/account/export").want(t, http.StatusOK)
			var all control.Export
			if err := json.Unmarshal([]byte(file.body), &all); err != nil || all.Email != "maya@example.com" || !strings.HasPrefix(file.Header.Get("Content-Disposition"), "attachment;") || file.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%v %v %s", err, file.Header, file.body)
			}
			goldenPage(t, "account-delete", b.get("/account/delete").want(t, http.StatusOK).body)
			gone := b.post("/account/delete").want(t, http.StatusOK)
			if !strings.Contains(gone.body, "Your account is deleted") {
				t.Error(gone.body)
			}
			b.get("/account").to(t)
			r.browser().touch(p, "").want(t, http.StatusForbidden)
			r.mailsNamed("Your account was deleted", "maya@example.com", 1)
			if list := must(r.svc.People.Memberships(t.Context(), r.owner.AccountID)); len(list) != 0 {
				t.Errorf("left: %+v", list)
			}
		})
	}
}
