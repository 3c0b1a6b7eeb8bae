package proxy_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/senders"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// secretOf is that of the sender at a path, as it is and as base64.
func secretOf(path string) string {
	return base64.StdEncoding.EncodeToString([]byte("secret of the sender at " + path))
}

// ByLabel and ByID are those of *engine.Apps.
func (r *rig) ByLabel(label string) (engine.App, bool) {
	return r.Lookup(strings.ToLower(label))
}

func (r *rig) ByID(id string) (engine.App, bool) { return r.Lookup(strings.TrimPrefix(id, "id-")) }

// senderRig is a rig whose owner names senders.
func senderRig(t testing.TB, options ...func(*proxy.Config)) (r *rig, named *senders.Senders, notices *atomic.Int64) {
	t.Helper()
	notices = new(atomic.Int64)
	r = newRig(t, append(options, func(c *proxy.Config) {
		named = sendersOf(t, c.Apps.(*rig), notices)
		c.Senders = named
	})...)
	return r, named, notices
}

func sendersOf(t testing.TB, r *rig, notices *atomic.Int64) *senders.Senders {
	return programs.Got(senders.New(senders.Config{
		Store: r.store, Access: r.access, Activity: r.activity, Apps: r, Now: r.now,
		Note: func(agentapi.Notice, words.Text) error { notices.Add(1); return nil },
	}))(t)
}

// add names a sender of a kind for notes.
func add(t testing.TB, named *senders.Senders, kind, path string) agentapi.MadeSender {
	t.Helper()
	req := agentapi.SenderRequest{App: "notes", Name: "of " + strings.ReplaceAll(kind, ".", ""), Path: path, Kind: kind, Secret: secretOf(path)}
	if kind == agentapi.SenderHMAC {
		req.Header = "X-Sig"
	}
	return programs.Got(named.Add(t.Context(), req))(t)
}

func sum(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	io.WriteString(mac, text)
	return mac.Sum(nil)
}

// sign is the head that a kind of sender sends with a body.
func sign(kind, secret, body string, at time.Time) []string {
	unix := strconv.FormatInt(at.Unix(), 10)
	switch kind {
	case agentapi.SenderGitHub:
		return []string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(sum(secret, body))}
	case agentapi.SenderStripe:
		return []string{"Stripe-Signature", "t=" + unix + ",v1=" + hex.EncodeToString(sum(secret, unix+"."+body)) + ",v0=" + strings.Repeat("a", 64)}
	case agentapi.SenderSlack:
		return []string{"X-Slack-Request-Timestamp", unix, "X-Slack-Signature", "v0=" + hex.EncodeToString(sum(secret, "v0:"+unix+":"+body))}
	case agentapi.SenderHMAC:
		return []string{"X-Sig", base64.StdEncoding.EncodeToString(sum(secret, body))}
	}
	raw, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		panic(err)
	}
	id := "msg_" + hex.EncodeToString(sum("id", body)[:8])
	return []string{"Webhook-Id", id, "Webhook-Timestamp", unix, "Webhook-Signature", "v1a,xx v1," + base64.StdEncoding.EncodeToString(sum(string(raw), id+"."+unix+"."+body))}
}

// post sends a body.
func (b *browser) post(target, body string, header ...string) (int, string) {
	b.r.t.Helper()
	res, got := b.read(b.request("POST", target, strings.NewReader(body), header...))
	return res.StatusCode, got
}

// What a named sender signs and posts to its path reaches the app, with the five headers of
// nobody else, without cookies, and byte for byte; whatever is not so does not, and needs a
// sign-in as before.
func TestSenderComesIn(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	rec := newRecorder(t)
	r.publish("notes", rec.port)
	r.app("photos", hello)
	seen := 0
	reached := func() string {
		all := rec.requests()[seen:]
		seen += len(all)
		return strings.Join(all, "\n---\n")
	}
	n := 0
	for _, kind := range agentapi.SenderKinds() {
		path := "/hooks/" + kind + "?from=" + kind
		secret := secretOf(path)
		made := add(t, named, kind, path)
		if made.URL != origin+path {
			t.Errorf("%s posts to %s", kind, made.URL)
		}
		next := func() string { n++; return fmt.Sprintf(`{"n": %d, "text": "ü\u0000"}`, n) }
		good := func(body string) []string { return sign(kind, secret, body, r.now()) }
		for _, http2 := range []bool{false, true} {
			b := r.browser(http2)
			body := next()
			b.cookies["theirs"] = "1"
			if status, got := b.post(made.URL, body, append(good(body), "Content-Type", "application/json", "X-Service-User", bobID, "X_service_role", "owner")...); status != 200 {
				t.Errorf("%s: %d %s", kind, status, got)
			}
			got := reached()
			for _, want := range []string{
				"POST " + path + " HTTP/1.1\r\n", "X-Service-User: " + made.ID + "\r\n", "X-Service-Email: " + made.ID + "@senders." + rootHost + "\r\n",
				"X-Service-Name: maya\r\n", "X-Service-App: Notes\r\n", "X-Service-Role: member\r\n", "Content-Type: application/json\r\n", "\r\n\r\n" + body,
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%s: the app got no %q in\n%s", kind, want, got)
				}
			}
			if strings.Contains(got, "ookie") || strings.Contains(got, bobID) || strings.Contains(got, "owner") {
				t.Errorf("%s: the app got\n%s", kind, got)
			}
			if !http2 { // in chunks, asked for first, with a trailer
				body = next()
				req := b.request("POST", made.URL, io.MultiReader(strings.NewReader(body)), append(good(body), "Expect", "100-continue")...)
				req.ContentLength, req.Trailer = -1, http.Header{"X-Service-User": {bobID}}
				res, _ := b.read(req)
				if got := reached(); res.StatusCode != 200 || !strings.HasSuffix(got, "\r\n\r\n"+body) || strings.Contains(got, bobID) {
					t.Errorf("%s, in chunks: %s\n%s", kind, res.Status, got)
				}
			}
			long := next() + strings.Repeat("x", senders.MaxBody)
			long = long[:senders.MaxBody]
			if status, _ := b.post(made.URL, long, good(long)...); status != 200 || !strings.HasSuffix(reached(), long) {
				t.Errorf("%s: 1 MiB: %d", kind, status)
			}
			b.cookies = map[string]string{}
			refused := func(what string, want int, method, target, body string, header ...string) {
				t.Helper()
				res, got := b.read(b.request(method, target, strings.NewReader(body), header...))
				if res.StatusCode != want {
					t.Errorf("%s, %s: %s %s, want %d", kind, what, res.Status, got, want)
				}
				if got := reached(); got != "" {
					t.Errorf("%s, %s: the app got\n%.500s", kind, what, got)
				}
			}
			body = next()
			head := good(body)
			post := func(what string, want int, target, body string, header ...string) {
				t.Helper()
				refused(what, want, "POST", target, body, header...)
			}
			for i := range 3 {
				flipped := []byte(body)
				flipped[i*7] ^= 1
				post("a flipped bit", 401, made.URL, string(flipped), head...)
			}
			post("another's signature", 401, made.URL, body, good(body+"!")...)
			post("another secret", 401, made.URL, body, sign(kind, strings.ToUpper(secret[:24])+secret[24:], body, r.now())...)
			post("a body cut", 401, made.URL, body[1:], head...)
			post("no signature", 401, made.URL, body)
			post("an empty one", 401, made.URL, body, append(slices.Clone(head[:len(head)-1]), "")...)
			post("twice", 401, made.URL, body, append(slices.Clone(head), head[len(head)-2:]...)...)
			post("2 MiB", 413, made.URL, body+strings.Repeat("x", 2<<20), head...)
			for _, path := range []string{"/hooks/" + kind, path + "&a=1", path + "?", "/hooks/" + kind + "/?from=" + kind, "/hooks/%73" + kind[1:] + "?from=" + kind, "//hooks/" + kind + "?from=" + kind, "/"} {
				post("at "+path, 401, origin+path, body, head...)
			}
			post("at another app", 401, "https://photos."+rootHost+path, body, head...)
			for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "post"} {
				if http2 && method == "post" {
					continue
				}
				refused(method, 401, method, made.URL, body, head...)
			}
			if timed := kind != agentapi.SenderGitHub && kind != agentapi.SenderHMAC; timed {
				for _, off := range []time.Duration{-6 * time.Minute, 6 * time.Minute, -48 * time.Hour} {
					post("signed "+off.String()+" off", 401, made.URL, body, sign(kind, secret, body, r.now().Add(off))...)
				}
				for _, at := range []string{"0" + strconv.FormatInt(r.now().Unix(), 10), "1e9", "-1", "", "99999999999999999999"} {
					odd := slices.Clone(head)
					for i := range odd {
						odd[i] = strings.ReplaceAll(odd[i], strconv.FormatInt(r.now().Unix(), 10), at)
					}
					if !slices.Equal(odd, head) {
						post("the time "+at, 401, made.URL, body, odd...)
					}
				}
				for _, off := range []time.Duration{-4 * time.Minute, 4 * time.Minute} {
					body := next()
					if status, got := b.post(made.URL, body, sign(kind, secret, body, r.now().Add(off))...); status != 200 {
						t.Errorf("%s, %v off: %d %s", kind, off, status, got)
					}
				}
				reached()
			}
			r.advance(time.Minute) // for those that were wrong
		}
	}
}

// What a person does at a sender's path is theirs, signed or not.
func TestSendersPathIsEverybodysAsBefore(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	r.app("notes", told)
	made := add(t, named, agentapi.SenderGitHub, "/push")
	bob := r.signedIn("notes", bobID, false)
	for _, head := range [][]string{nil, sign(agentapi.SenderGitHub, secretOf("/push"), "x", r.now()), {"X-Hub-Signature-256", "sha256=00"}} {
		for range 2 {
			if status, body := bob.post(made.URL, "x", append([]string{"Origin", origin}, head...)...); status != 200 || !strings.HasPrefix(body, bobID+" ") {
				t.Errorf("with %q: %d %s", head, status, body)
			}
		}
	}
	bob.fetches(200, "a look", "GET", made.URL)
	bob.fetches(403, "from elsewhere", "POST", made.URL, "Origin", "https://evil.test")
}

// Two secrets hold at a time, a pause and an end hold for a sender as for a person, and
// revoking ends what it has open and nothing else.
func TestSenderChangesAndEnds(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	entered := make(chan string, 9)
	r.app("notes", func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		entered <- string(body)
		if strings.HasPrefix(string(body), "stays") {
			<-q.Context().Done()
		}
	})
	made := add(t, named, agentapi.SenderHMAC, "/push")
	b := r.browser(true)
	n := 0
	send := func(what, secret string, want int) {
		t.Helper()
		n++
		body := strconv.Itoa(n)
		if status, got := b.post(made.URL, body, sign(agentapi.SenderHMAC, secret, body, r.now())...); status != want {
			t.Errorf("%s: %d %s, want %d", what, status, got, want)
		}
		if want == 200 {
			<-entered
		}
	}
	const second, third = "the second secret", "the third secret"
	change := func(req agentapi.SenderSecret, secrets int) {
		t.Helper()
		if got, err := named.ChangeSecret(t.Context(), made.ID, req); err != nil || got.Secrets != secrets {
			t.Errorf("%+v, %v", got, err)
		}
	}
	change(agentapi.SenderSecret{Secret: second}, 2)
	send("the first of two", secretOf("/push"), 200)
	send("the second of two", second, 200)
	change(agentapi.SenderSecret{Secret: third}, 2)
	send("the first of three", secretOf("/push"), 401)
	send("the second of three", second, 200)
	change(agentapi.SenderSecret{Alone: true}, 1)
	send("the second, dropped", second, 401)
	send("the third", third, 200)
	if _, err := named.ChangeSecret(t.Context(), made.ID, agentapi.SenderSecret{}); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("no secret: %v", err)
	}

	r.change("notes", func(app *engine.App) { app.Paused = true })
	send("paused", third, 503)
	r.change("notes", func(app *engine.App) { app.Paused, app.Options.OnlyPasskey = false, true })
	send("only passkeys", third, 200)
	r.change("notes", func(app *engine.App) { app.Options.OnlyPasskey = false })
	programs.Got(r.access.GoDark())(t)
	send("dark", third, 503)
	programs.Must(t, r.access.LightUp())

	req := agentapi.SenderRequest{App: "Notes", Name: "Ends", Path: "/ends", Kind: "hmac", Header: "x-sig", Secret: secretOf("/ends"), Until: "2h"}
	ends := programs.Got(named.Add(t.Context(), req))(t)
	ending := make(chan error, 1)
	open := func(at, secret string, ended chan error) {
		body := "stays " + at
		req := b.request("POST", at, strings.NewReader(body), sign(agentapi.SenderHMAC, secret, body, r.now())...)
		go func() {
			res, err := b.client.Do(req)
			if err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			ended <- err
		}()
		<-entered
	}
	open(ends.URL, secretOf("/ends"), ending)
	r.advance(3 * time.Hour)
	r.access.Woke()
	if err := <-ending; err == nil {
		t.Error("what had come to its end went on")
	}
	if status, body := b.post(ends.URL, "x", sign(agentapi.SenderHMAC, secretOf("/ends"), "x", r.now())...); status != 403 || !strings.Contains(body, "takes nothing") {
		t.Errorf("after its end: %d %s", status, body)
	}

	revoked := make(chan error, 1)
	open(made.URL, third, revoked)
	bob := r.signedIn("notes", bobID, false)
	bobs := make(chan error, 1)
	go func() {
		res, err := bob.try(bob.request("POST", origin+"/", strings.NewReader("stays bob"), "Origin", origin))
		if err == nil {
			res.Body.Close()
		}
		bobs <- err
	}()
	<-entered
	closed, err := named.Revoke(t.Context(), made.ID)
	if err != nil || closed.Closed != 1 {
		t.Errorf("revoked: %+v, %v", closed, err)
	}
	if err := <-revoked; err == nil {
		t.Error("what was revoked went on")
	}
	select {
	case err := <-bobs:
		t.Errorf("bob's ended too: %v", err)
	default:
	}
	send("revoked", third, 401)
	if _, err := named.Revoke(t.Context(), made.ID); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("again: %v", err)
	}
	if kept := programs.Got(r.store.Senders())(t); len(kept) != 1 || kept[0].ID != ends.ID {
		t.Errorf("kept: %+v", kept)
	}
	r.access.CloseAll()
	<-bobs
	var kinds []string
	for _, line := range programs.Got(r.activity.Lines(20))(t) {
		kinds = append(kinds, line.Kind+" "+line.What)
	}
	for _, want := range []string{"sender-added of hmac-sha256", "sender-changed of hmac-sha256", "delivered of hmac-sha256", "sender-revoked of hmac-sha256", "delivered Ends", "delivery-refused "} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %q in %q", want, kinds)
		}
	}
}

// Weakness: a program that signs nothing sends a body slowly, or many, so that they fill the
// memory of this computer, or keep what is right out.
// Checked: a slow one is cut off; a right one beside passes; wrong ones are told to wait, and
// a right one from there still passes.
func TestSendersAreBounded(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t, func(c *proxy.Config) { c.DecideWithin = time.Second })
	var got atomic.Int64
	r.app("notes", func(_ http.ResponseWriter, q *http.Request) { got.Add(1) })
	made := add(t, named, agentapi.SenderGitHub, "/push")
	slow := r.raw(sni, "POST /push HTTP/1.1\r\nHost: "+sni+"\r\nContent-Length: 10\r\nX-Hub-Signature-256: sha256="+strings.Repeat("a", 64)+"\r\n\r\n12345")
	b := r.browser(true)
	counts := map[int]int{}
	for i := range 70 {
		status, _ := b.post(made.URL, strconv.Itoa(i), "X-Hub-Signature-256", "sha256="+strings.Repeat("a", 64))
		counts[status]++
	}
	if counts[401] < 60 || counts[429] == 0 || counts[401]+counts[429] != 70 {
		t.Errorf("answered %v", counts)
	}
	if status, body := r.browser(false).post(made.URL, "right", sign(agentapi.SenderGitHub, secretOf("/push"), "right", r.now())...); status != 200 {
		t.Errorf("a right one: %d %s", status, body)
	}
	slow.SetReadDeadline(time.Now().Add(30 * time.Second))
	answer, err := io.ReadAll(slow)
	if nerr, is := err.(net.Error); is && nerr.Timeout() || bytes.Contains(answer, []byte(" 200 ")) {
		t.Errorf("the slow one: %q, %v", answer, err)
	}
	if n := got.Load(); n != 1 {
		t.Errorf("the app got %d", n)
	}
}

// Where the disk does not say whether something was delivered, it is not, and whoever sent it
// is not told that it was signed wrongly, nor counted as one who guesses.
func TestSenderIsToldOfADiskThatFails(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	var got atomic.Int64
	r.app("notes", func(http.ResponseWriter, *http.Request) { got.Add(1) })
	made := add(t, named, agentapi.SenderGitHub, "/push")
	programs.Must(t, r.store.Close())
	b := r.browser(true)
	for range 70 {
		if status, body := b.post(made.URL, "right", sign(agentapi.SenderGitHub, secretOf("/push"), "right", r.now())...); status != 503 || !strings.Contains(body, "disk") {
			t.Fatalf("%d %s", status, body)
		}
	}
	if n := got.Load(); n != 0 {
		t.Errorf("the app got %d", n)
	}
}

// What is no sender is refused with a sentence.
func TestSendersAreChecked(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	r.app("photos", hello)
	r.app("shell", hello)
	r.change("shell", func(app *engine.App) { app.TCP = true })
	good := agentapi.SenderRequest{App: "notes", Name: "GitHub", Path: "/push", Kind: agentapi.SenderGitHub, Secret: secretOf("/push")}
	programs.Got(named.Add(t.Context(), good))(t)
	for what, change := range map[string]func(*agentapi.SenderRequest){
		"no web app":          func(q *agentapi.SenderRequest) { q.App = "shell" },
		"an app there is not": func(q *agentapi.SenderRequest) { q.App = "diary" },
		"no name":             func(q *agentapi.SenderRequest) { q.Name = " " },
		"an address as name":  func(q *agentapi.SenderRequest) { q.Name = "bob@example.com" },
		"the same path":       func(*agentapi.SenderRequest) {},
		"no path":             func(q *agentapi.SenderRequest) { q.Path = "" },
		"a relative path":     func(q *agentapi.SenderRequest) { q.Path = "push" },
		"an address as path":  func(q *agentapi.SenderRequest) { q.Path = "https://notes.maya.porch.test/push" },
		"another host":        func(q *agentapi.SenderRequest) { q.Path = "//evil.test/push" },
		"dots":                func(q *agentapi.SenderRequest) { q.Path = "/a/../push" },
		"a fragment":          func(q *agentapi.SenderRequest) { q.Path = "/a#b" },
		"a space":             func(q *agentapi.SenderRequest) { q.Path = "/a b" },
		"a line":              func(q *agentapi.SenderRequest) { q.Path = "/a\r\nX: y" },
		"ours":                func(q *agentapi.SenderRequest) { q.Path = "/.porchlight/me" },
		"a long path":         func(q *agentapi.SenderRequest) { q.Path = "/" + strings.Repeat("a", 1000) },
		"a kind there is not": func(q *agentapi.SenderRequest) { q.Kind = "md5" },
		"a header of github":  func(q *agentapi.SenderRequest) { q.Header = "X-Sig" },
		"hmac without header": func(q *agentapi.SenderRequest) { q.Kind = "hmac" },
		"a cookie":            func(q *agentapi.SenderRequest) { q.Kind, q.Header = "hmac", "cookie" },
		"one of ours":         func(q *agentapi.SenderRequest) { q.Kind, q.Header = "hmac", "x-service-user" },
		"no header":           func(q *agentapi.SenderRequest) { q.Kind, q.Header = "hmac", "a b" },
		"a short secret":      func(q *agentapi.SenderRequest) { q.Secret = "1234567" },
		"a long secret":       func(q *agentapi.SenderRequest) { q.Secret = strings.Repeat("a", 600) },
		"no base64":           func(q *agentapi.SenderRequest) { q.Kind, q.Secret = "svix", "whsec_%%%%%%%%%%%" },
		"an end that is over": func(q *agentapi.SenderRequest) { q.Until = "2020-01-01" },
		"no end":              func(q *agentapi.SenderRequest) { q.Until = "soon" },
	} {
		q := good
		if change(&q); q.Path == good.Path && what != "the same path" {
			q.Path = "/other"
		}
		if q.Secret == good.Secret && what != "the same path" {
			q.Secret = secretOf("/other")
		}
		made, err := named.Add(t.Context(), q)
		if code := agentapi.CodeOf(err); code != agentapi.CodeInvalid && code != agentapi.CodeConflict {
			t.Errorf("%s: %+v, %v", what, made, err)
		}
	}
	if all := programs.Got(named.List(t.Context()))(t); len(all) != 1 || all[0].Secrets != 1 || all[0].App != "Notes" {
		t.Errorf("listed %+v", all)
	}
	other := good
	other.App, other.Secret = "Photos", secretOf("of photos")
	programs.Got(named.Add(t.Context(), other))(t)
	for i := range senders.Most {
		other.Path = fmt.Sprintf("/push?n=%d", i)
		other.Secret = secretOf(other.Path)
		if _, err := named.Add(t.Context(), other); (err != nil) != (i >= senders.Most-2) {
			t.Fatalf("sender %d: %v", i+3, err)
		}
	}
}
