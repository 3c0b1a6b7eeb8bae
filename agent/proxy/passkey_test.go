package proxy_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: whoever reads somebody's mail opens their apps. Checked: an app that asks for a
// passkey opens to a session proven by one and to the owner's link of this computer; to
// nothing else that is known, but for what the owner let in by name, each by its own.
func TestOnlyPasskey(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", hello)
	hash := sha256.Sum256([]byte(bobsPassword))
	r.passwords = []controlapi.AppPassword{{ID: "p1", AccountID: bobID, AppID: "id-notes", Hash: base64.RawURLEncoding.EncodeToString(hash[:])}}
	r.sync()
	ask := func(besides string) {
		r.change("notes", func(a *engine.App) { a.Options.OnlyPasskey, a.Options.BesidesPasskey = true, besides })
	}
	session := func(accountID string, proof controlapi.Proof) *browser {
		t.Helper()
		b := r.browser(false)
		b.cookies[cookie] = programs.Got(r.access.NewSession("id-notes", accountID, 1, proof))(t)
		return b
	}
	plain := r.browser(false)
	status := func(b *browser, header ...string) int {
		t.Helper()
		res, body := b.fetch("GET", origin+"/", header...)
		if res.StatusCode != http.StatusOK && strings.Contains(body, "hello") {
			t.Errorf("the app answered: %q", body)
		}
		if me, _ := b.fetch("GET", origin+"/.porchlight/me", header...); me.StatusCode != res.StatusCode {
			t.Errorf("%d, and who they are: %d", res.StatusCode, me.StatusCode)
		}
		return res.StatusCode
	}
	ways := map[string]struct {
		as      func() int
		refused int
	}{
		agentapi.BesidesPasswords: {func() int {
			got := status(plain, basic(bobsMail, bobsPassword)...)
			if byKey := status(plain, key(bobsPassword)...); byKey != got {
				t.Errorf("by Basic %d, by a key %d", got, byKey)
			}
			return got
		}, http.StatusForbidden},
		agentapi.BesidesTokens:   {func() int { return status(plain, "Authorization", "Bearer "+r.token(bobID)) }, http.StatusForbidden},
		agentapi.BesidesCode:     {func() int { return status(session(bobID, controlapi.ProofCode)) }, http.StatusUnauthorized},
		agentapi.BesidesProvider: {func() int { return status(session(bobID, controlapi.ProofProvider)) }, http.StatusUnauthorized},
		"":                       {func() int { return status(session(bobID, controlapi.ProofMail)) }, http.StatusUnauthorized},
		"a session of before":    {func() int { return status(session(bobID, "")) }, http.StatusUnauthorized},
		"a session of later":     {func() int { return status(session(bobID, "later")) }, http.StatusUnauthorized},
		"the owner's mail":       {func() int { return status(session(ownerID, controlapi.ProofMail)) }, http.StatusUnauthorized},
	}
	for way, tt := range ways {
		if got := tt.as(); got != http.StatusOK {
			t.Errorf("%q: %d before it is asked", way, got)
		}
	}
	for _, besides := range append([]string{""}, agentapi.Besides...) {
		ask(besides)
		for way, tt := range ways {
			want := tt.refused
			if way == besides && besides != "" {
				want = http.StatusOK
			}
			if got := tt.as(); got != want {
				t.Errorf("%q, with %q let in: %d, want %d", way, besides, got, want)
			}
		}
	}
	for besides, listed := range map[string]bool{"": false, agentapi.BesidesTokens: true} {
		ask(besides)
		if _, body := plain.fetch("GET", "https://"+rootHost+"/.porchlight/apps", "Authorization", "Bearer "+r.token(bobID)); strings.Contains(body, `"notes"`) != listed {
			t.Errorf("with %q let in, a token is told that it opens %s", besides, body)
		}
	}
	ask("")
	if got := status(session(bobID, controlapi.ProofPasskey)); got != http.StatusOK {
		t.Errorf("a passkey: %d", got)
	}
	token, _, err := r.access.MintLink("id-notes")
	programs.Must(t, err)
	b := r.browser(false)
	b.get(origin + "/.porchlight/open?token=" + token)
	if got := status(b); got != http.StatusOK {
		t.Errorf("the owner's link: %d", got)
	}
	if _, res, err := session(bobID, controlapi.ProofMail).dial(origin + "/"); err == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a WebSocket: %v", err)
	}
	if n := r.turnedAway(); n == 0 {
		t.Error("the owner does not read of passwords and tokens that were turned away")
	}
}

// turnedAway counts what the owner reads of those who were.
func (r *rig) turnedAway() (n int) {
	for _, line := range programs.Got(r.activity.Lines(100))(r.t) {
		if line.Kind == agentapi.ActivityTurnedAway {
			n++
		}
	}
	return n
}

// Whoever signed in otherwise is sent to show a passkey and comes back; where the server lets
// them on without, being too old to ask, they get no session and are not sent in circles.
func TestPasskeyIsAskedForOnTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("notes", hello)
	b := r.signedIn("notes", bobID, false)
	for besides, want := range map[string]string{"": "passkey", "passwords,code": "passkey,code", "tokens,code,provider": "passkey,code,provider"} {
		r.change("notes", func(a *engine.App) { a.Options.OnlyPasskey, a.Options.BesidesPasskey = true, besides })
		res, _ := b.get(origin + "/deep")
		u := programs.Got(url.Parse(res.Header.Get("Location")))(t)
		if got := u.Query()[controlapi.ParamProof]; len(got) != 1 || got[0] != want {
			t.Errorf("with %q let in they are asked for %q at %q", besides, got, res.Header.Get("Location"))
		}
	}
	r.change("notes", func(a *engine.App) { a.Options.BesidesPasskey = "" })
	for _, proof := range []controlapi.Proof{"", controlapi.ProofMail, controlapi.ProofCode, controlapi.ProofProvider} {
		r.mu.Lock()
		r.proof = proof
		r.mu.Unlock()
		before := b.cookies[cookie]
		res, _ := b.get(origin + "/deep")
		res, body := b.get(r.issue(res.Header.Get("Location"), bobID))
		if res.StatusCode != http.StatusForbidden || !strings.Contains(body, "This app asks for a passkey") || b.cookies[cookie] != before {
			t.Errorf("%q: %s %s", proof, res.Status, body)
		}
	}
	r.mu.Lock()
	r.proof = controlapi.ProofPasskey
	r.mu.Unlock()
	if end := b.signIn(origin+"/deep", bobID); end != origin+"/deep" {
		t.Errorf("they came back to %s", end)
	}
	b.gets(http.StatusOK, "with a passkey", origin+"/deep")
	if id, _, ok := r.access.Session(b.cookies[cookie], "id-notes"); !ok || id.Proof != controlapi.ProofPasskey || id.Proof == access.ProofLocal {
		t.Errorf("the session is %+v %v", id, ok)
	}
}
