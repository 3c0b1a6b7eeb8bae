package web

import (
	"net/http"
	"strings"
	"testing"
)

// Known are who shows the credential of a computer, a session, or that their browser
// signed in here before. Their connections keep their places (relay.LetIn).
func TestWhoIsKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	knows := func(what string, known bool, ask func()) {
		t.Helper()
		before := r.letIn.Load()
		ask()
		if got := r.letIn.Load() > before; got != known {
			t.Errorf("%s: known %t", what, got)
		}
	}
	b := r.browser()
	knows("a stranger", false, func() { b.get("/signin").want(t, http.StatusOK) })
	knows("somebody who signs in", false, func() { b.signIn("maya@example.com", "") })
	knows("a session", true, func() { b.get("/account").want(t, http.StatusOK) })
	knows("one that ends", true, func() { b.post("/signout").want(t, http.StatusSeeOther) })
	knows("a browser that signed in before", true, func() { b.get("/signin").want(t, http.StatusOK) })

	own := r.client()
	knows("a computer", true, func() { must(own.Grants(t.Context())) })
	own.Credential = strings.Repeat("x", len(own.Credential))
	knows("a wrong credential", false, func() {
		if _, err := own.Grants(t.Context()); err == nil {
			t.Error("it is good")
		}
	})
	knows("a program that asks for a computer's credential", false, func() { r.ask() })
}
