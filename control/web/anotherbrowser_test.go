package web

import (
	"net/http"
	"strings"
	"testing"
)

// Weakness: strangers can spend the mails of an address, and then its owner has no
// mail to sign in a new browser with.
// Attack: they ask until the new browser is refused.
// Checked: the refusal tells the way, and it works: the account page of the browser
// that is signed in sends a link, which signs the new one in.
func TestAnotherBrowserWhileStrangersSpendTheMails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	b.signIn("maya@example.com", "")
	phone, refused := r.browser(), false
	for range 6 {
		if a := phone.post("/signin", "email", "maya@example.com"); a.StatusCode == http.StatusTooManyRequests {
			refused = strings.Contains(a.body, "on its account page")
		}
	}
	if !refused {
		t.Fatal("the new browser was not told a way")
	}
	mailed := 5 // with the one that signed b in
	r.mails("maya@example.com", mailed)

	page := b.get("/account").want(t, http.StatusOK)
	if !strings.Contains(page.body, `<form method="post" action="/signin" class="stack"><input type="hidden" name="email" value="maya@example.com">`) {
		t.Fatal("the account page has no such form")
	}
	b.post("/signin", "email", "maya@example.com").to(t)
	if to := phone.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", mailed+1))).to(t); to != "/account" {
		t.Errorf("the new browser is led to %q", to)
	}
	phone.get("/account").want(t, http.StatusOK)
	b.get("/account").want(t, http.StatusOK)
}
