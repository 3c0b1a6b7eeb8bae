package proxy_test

import (
	"net/http"
	"testing"
	"time"

	"porchlight/agent/engine"
	"porchlight/agent/identity"
	"porchlight/agent/proxy"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: an access token is worth as much at a name whose records are gone, which is
// somebody else's by now. Checked: it is taken while the name is proven, or cannot be looked up,
// and at no other name; and what signs who is there names the app's own address each time.
func TestAccessTokensAtAnOwnDomain(t *testing.T) {
	t.Parallel()
	const own = "diary.porch.test"
	r := newBearerRig(t, func(c *proxy.Config) {
		db := programs.Got(store.Open(t.TempDir()))(t)
		t.Cleanup(func() { db.Close() })
		c.Identity = identity.New(db, c.Now)
	})
	rec := newRecorder(t)
	r.publish("notes", rec.port)
	r.change("notes", func(a *engine.App) { a.Options.IdentityToken = true })
	soon := r.now().Add(time.Hour)
	for _, c := range []struct {
		domain controlapi.Domain
		status int
	}{
		{controlapi.Domain{State: controlapi.DomainProven}, http.StatusOK},
		{controlapi.Domain{State: controlapi.DomainUnsure, Until: soon}, http.StatusOK},
		{controlapi.Domain{State: controlapi.DomainGone, Why: controlapi.DomainNoText, Until: soon}, http.StatusUnauthorized},
		{controlapi.Domain{State: controlapi.DomainWaiting}, http.StatusNotFound},
	} {
		c.domain.Name, c.domain.AppID = own, "id-notes"
		r.domains = []controlapi.Domain{c.domain}
		r.sync()
		before := len(rec.requests())
		b := r.browser(false)
		req := b.request("GET", "https://"+own+"/", nil)
		req.Header.Set("Authorization", "Bearer "+r.token(bobID))
		res, _ := b.read(req)
		told := rec.requests()[before:]
		if res.StatusCode != c.status || len(told) > 0 != (c.status == http.StatusOK) {
			t.Errorf("%s: %d, and the app heard %d requests", c.domain.State, res.StatusCode, len(told))
		}
		for _, raw := range told {
			if claims, err := r.verified(sent(t, raw)[0]); err != nil || claims["aud"] != origin {
				t.Errorf("%s: the app is told of %v, %v", c.domain.State, claims, err)
			}
		}
	}
}
