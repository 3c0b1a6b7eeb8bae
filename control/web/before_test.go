package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"porchlight/control/controlapi"
)

// Agents of before version 0.1.0, whose requests do not say what they speak, are told to
// update, by each route and in the form that they read. too_many is a code whose sentence
// they show, with which they leave the server alone, and which is no answer to a removal
// that they have still to tell. They may leave.
func TestAgentsOfBeforeAreToldToUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ask := func(rt route, credential string) (answer, controlapi.Error) {
		req := r.browser().request(rt.method, rt.path, strings.NewReader(`{"deviceCode":"x"}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+credential)
		a := r.browser().do(req)
		var e controlapi.Error
		_ = json.Unmarshal([]byte(a.body), &e) // empty then
		return a, e
	}
	var leave route
	for _, rt := range newHandler(r.svc, Config{}).routes {
		enrols := rt.path == controlapi.PathEnrol || rt.path == controlapi.PathEnrolToken
		switch a, e := ask(rt, strings.Repeat("x", 43)); {
		case rt.tier != tierDevice:
			continue
		case rt.method == http.MethodDelete:
			leave = rt
			continue
		case !enrols && a.StatusCode != http.StatusUnauthorized:
			t.Errorf("%s %s of a stranger: %s %s", rt.method, rt.path, a.Status, a.body)
		case rt.path == controlapi.PathEnrolToken && (e.Code != controlapi.CodeInvalid || e.Message != controlapi.SayOutdated):
			t.Errorf("who waits to be confirmed: %s %s", a.Status, a.body)
		}
		if rt.path == controlapi.PathEnrolToken {
			continue
		}
		if a, e := ask(rt, r.owner.Credential); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "300" || e.Code != controlapi.CodeTooMany || e.Message != controlapi.SayOutdated {
			t.Errorf("%s %s: %s, Retry-After %q, %s", rt.method, rt.path, a.Status, a.Header.Get("Retry-After"), a.body)
		}
	}
	if a, _ := ask(leave, r.owner.Credential); a.StatusCode != http.StatusNoContent {
		t.Errorf("leaving: %s %s", a.Status, a.body)
	}
}
