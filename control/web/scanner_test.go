package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// everything is what the store holds, a line for each row.
func (r *rig) everything() (out []string) {
	r.t.Helper()
	// Whoever runs makes indexes in the background, which is no answer to a request.
	programs.Must(r.t, r.svc.Overview.IndexAll(r.t.Context()))
	err := r.store.View(r.t.Context(), func(tx kv.Tx) error {
		out = nil
		for after := ""; ; {
			items, err := tx.Scan("", after, 500)
			if err != nil || len(items) == 0 {
				return err
			}
			for _, it := range items {
				out = append(out, fmt.Sprintf("%s=%s", it.Key, it.Value))
				after = it.Key
			}
		}
	})
	programs.Must(r.t, err)
	return out
}

// Weakness: mail scanners and link previews open every link they see, and probe
// them with HEAD.
// Attack: a scanner opens all links this service ever writes, several times, by
// each method that should change nothing, and follows where they lead.
// Checked: the store holds what it held before, no cookie was set, and each link
// still does what it is for.
func TestScannersChangeNothing(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	maya := r.browser()
	maya.post("/signin", "email", "maya@example.com").to(t)
	signIn := r.mails("maya@example.com", 1)
	r.invite("app1")
	invitation := r.invitations(invited, 1)
	program := &controlapi.Client{BaseURL: authURL, HTTP: &http.Client{Transport: r.transport()}}
	enrolment := programs.Got(program.Enrol(t.Context(), controlapi.EnrolRequest{Machine: "attic", Platform: "linux"}))(t)
	c := r.remote(0)
	links := []string{
		signIn.Links[0], invitation.Links[0], enrolment.VerificationURI, enrolment.VerificationURIComplete,
		authURL + c.authorizePath(), authURL + visitPath(), authURL + "/account", authURL + "/signin", authURL + "/signin/check", authURL + "/",
	}

	before := r.everything()
	scanner := r.browser()
	for _, link := range links {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodGet} {
			a := scanner.do(scanner.request(method, link, nil))
			for range 5 { // follow
				to := a.Header.Get("Location")
				if to == "" {
					break
				}
				at := must(a.Request.URL.Parse(to))
				a = scanner.do(scanner.request(method, at.String(), nil))
			}
			if a.StatusCode >= 500 {
				t.Errorf("%s %s: %d", method, a.Request.URL.Path, a.StatusCode)
			}
		}
	}
	if after := r.everything(); !slices.Equal(before, after) {
		t.Errorf("before the scanner:\n%v\nafter it:\n%v", before, after)
	}
	if cookies := scanner.http.Jar.Cookies(must(url.Parse(authURL))); len(cookies) != 0 {
		t.Errorf("it was given %v", cookies)
	}

	if to := maya.post("/signin/link", "token", tokenOf(t, signIn)).to(t); to != "/account" {
		t.Errorf("the sign-in link led to %s", to)
	}
	bob := r.browser()
	if to := bob.post("/invitation", "token", tokenOf(t, invitation)).to(t); to != "https://notes.maya.localhost:8443/" {
		t.Errorf("the invitation led to %s", to)
	}
	maya.get(enrolment.VerificationURIComplete).want(t, http.StatusOK)
	c.grant(maya)
}
