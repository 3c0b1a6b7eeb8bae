package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"porchlight/agent/agentapi"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const photosOrigin = "https://photos." + rootHost

var bobsDay = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// deviceRig has the apps notes and photos, of which Bob may open notes.
func deviceRig(t testing.TB, options ...func(*proxy.Config)) *rig {
	t.Helper()
	r := newRig(t, options...)
	r.app("notes", told)
	r.app("photos", told)
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Since = bobsDay })...)
	return r
}

// device is a certificate of somebody for some apps, as its file has it.
func (r *rig) device(accountID string, apps ...string) (certificate tls.Certificate, id string) {
	r.t.Helper()
	for _, p := range r.access.Snapshot().People {
		if p.AccountID != accountID {
			continue
		}
		made := programs.Got(r.devices.Make(p, devices.Wanted{Name: "phone", Apps: apps}))(r.t)
		key, leaf, err := pkcs12.Decode(made.File, made.Code)
		programs.Must(r.t, err)
		return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}, made.ID
	}
	r.t.Fatalf("nobody is %s", accountID)
	return
}

// shown is what a server asked a browser for, by its name.
type shown struct {
	mu    sync.Mutex
	asked map[string][][]byte // names of authorities
}

func (s *shown) of(serverName string) (authorities [][]byte, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	authorities, asked = s.asked[serverName]
	return authorities, asked
}

// showing is a browser with a certificate, which it shows to whoever asks for any.
func (r *rig) showing(certificate tls.Certificate, http2 bool) (*browser, *shown) {
	s := &shown{asked: map[string][][]byte{}}
	b := r.browser(http2)
	c := b.client.Transport.(*http.Transport).TLSClientConfig
	c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	c.GetClientCertificate = func(q *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked[sni] = q.AcceptableCAs
		return &certificate, nil
	}
	return b, s
}

func (r *rig) by(certificate tls.Certificate) func(http2 bool) *browser {
	return func(http2 bool) *browser { b, _ := r.showing(certificate, http2); return b }
}

// drop has a browser make a new connection for the next request.
func (b *browser) drop() { b.client.CloseIdleConnections() }

func (r *rig) end(id string) (closed int) {
	r.t.Helper()
	_, closed, err := r.access.EndDevices(func(d store.Device) bool { return d.ID == id })
	programs.Must(r.t, err)
	return closed
}

// A certificate lets in whose it is, at the apps it is for, and is asked for there alone and
// by no other authority's name. The app keeps its own Authorization.
func TestCertificateLetsIn(t *testing.T) {
	t.Parallel()
	r := deviceRig(t)
	before := r.browser(true)
	before.fetches(401, "without one", "GET", origin+"/")
	bobs, _ := r.device(bobID, "id-notes")
	mayas, _ := r.device(ownerID, "id-notes")
	kept, _, err := r.store.DeviceAuthority()
	programs.Must(t, err)
	authority := programs.Got(x509.ParseCertificate(kept.Certificate))(t)
	for _, http2 := range []bool{false, true} {
		b, asked := r.showing(bobs, http2)
		for _, method := range []string{"GET", "POST", "PROPFIND", "OPTIONS"} {
			for _, own := range []string{"", "Bearer the-apps", "Basic eDp5"} {
				var header []string
				want := "[]"
				if own != "" {
					header, want = []string{"Authorization", own}, "["+own+"]"
				}
				if res, body := b.fetch(method, origin+"/", header...); res.StatusCode != 200 || body != bobID+" bob@example.com maya Notes member "+method+want {
					t.Errorf("%s, %q: %s %q", method, own, res.Status, body)
				}
			}
		}
		if names, _ := asked.of(sni); len(names) != 1 || !bytes.Equal(names[0], authority.RawSubject) {
			t.Errorf("asked for a certificate of %q", names)
		}
		b.gets(200, "a page", origin+"/", "Sec-Fetch-Site", "none", "Sec-Fetch-Dest", "document")
		if res, body := b.fetch("GET", origin+"/.porchlight/me"); res.StatusCode != 200 || !strings.Contains(body, "bob@example.com") {
			t.Errorf("me: %s %s", res.Status, body)
		}
		owners, _ := r.showing(mayas, http2)
		if res, body := owners.fetch("GET", origin+"/"); res.StatusCode != 200 || !strings.Contains(body, " owner ") {
			t.Errorf("the owner: %s %s", res.Status, body)
		}
		for _, elsewhere := range []string{photosOrigin, "https://" + rootHost, "https://none." + rootHost} {
			b, asked := r.showing(mayas, http2)
			if res, body := b.fetch("GET", elsewhere+"/"); res.StatusCode < 400 || strings.Contains(body, "owner") {
				t.Errorf("%s: %s %s", elsewhere, res.Status, body)
			}
			if _, was := asked.of(sni); was {
				t.Errorf("%s asks for a certificate", elsewhere)
			}
		}
	}
	old, asked := r.showing(bobs, false)
	old.client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	old.fetches(401, "over TLS 1.2, where others on the way read it", "GET", origin+"/")
	if _, was := asked.of(sni); was {
		t.Error("it is asked for over TLS 1.2")
	}
	r.change("notes", func(app *engine.App) { app.TCP = true })
	tcp, asked := r.showing(bobs, true)
	tcp.fetches(401, "an app reached by TCP", "GET", origin+"/")
	if _, was := asked.of(sni); was {
		t.Error("an app reached by TCP asks for it")
	}
	r.change("notes", func(app *engine.App) { app.TCP = false })
	ws, _, err := r.by(bobs)(false).dial("wss://photos." + rootHost + "/")
	if err == nil {
		ws.CloseNow()
		t.Error("a WebSocket of another app")
	}
}

// Weakness: a browser shows a certificate by itself with whatever any page causes, and no
// SameSite keeps it away. Checked: what another origin causes is refused, be it a form, an
// image, a fetch or a WebSocket, siblings included, also where they may come with a cookie; a
// session beside it is judged as ever.
func TestCertificateFromHereAlone(t *testing.T) {
	t.Parallel()
	r, rec := deviceRig(t), newRecorder(t)
	r.publish("notes", rec.port)
	r.change("notes", func(app *engine.App) { app.Options.AllowCrossOrigin = true })
	bobs, _ := r.device(bobID, "id-notes")
	for what, c := range map[string]struct {
		header []string
		status int
	}{
		"a program":             {nil, 200},
		"from here":             {[]string{"Origin", origin, "Sec-Fetch-Site", "same-origin"}, 200},
		"typed":                 {[]string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"another's origin":      {[]string{"Origin", "https://evil.test"}, 403},
		"nobody's origin":       {[]string{"Origin", "null"}, 403},
		"two origins":           {[]string{"Origin", origin, "Origin", origin}, 403},
		"a sibling's fetch":     {[]string{"Origin", photosOrigin, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		"a sibling's origin":    {[]string{"Origin", photosOrigin}, 403},
		"an image":              {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		"a link":                {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"a frame":               {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		"a form":                {[]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"nothing that is known": {[]string{"Sec-Fetch-Site", "elsewhere"}, 403},
	} {
		for _, http2 := range []bool{false, true} {
			b, n := r.by(bobs)(http2), len(rec.requests())
			for _, method := range []string{"GET", "HEAD", "POST"} {
				b.fetches(c.status, what, method, origin+"/", c.header...)
			}
			b.fetches(c.status, what+", me", "GET", origin+"/.porchlight/me", c.header...)
			if got := len(rec.requests()) - n; (got == 3) != (c.status == 200) || c.status != 200 && got > 0 {
				t.Errorf("%s: %d requests reached the app", what, got)
			}
		}
	}
	r.app("notes", echo)
	for from, open := range map[string]bool{"": true, origin: true, "https://evil.test": false, photosOrigin: false, "null": false} {
		var header []string
		if from != "" {
			header = []string{"Origin", from}
		}
		ws, _, err := r.by(bobs)(false).dial("wss://"+sni+"/", header...)
		if (err == nil) != open {
			t.Errorf("a WebSocket of a page of %q: %v", from, err)
		}
		if err == nil {
			ws.CloseNow()
		}
	}
	// A sibling may come with the cookie, and that is what lets it in.
	r.app("notes", told)
	r.change("notes", func(app *engine.App) { app.Options.AllowCrossOrigin = true })
	in := r.by(bobs)(false)
	in.cookies = r.signedIn("notes", bobID, false).cookies
	in.fetches(200, "a sibling with a cookie", "GET", origin+"/", "Origin", photosOrigin, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors")
}

// signed is a certificate of a template by a parent, of which it may have none.
func signed(t *testing.T, template, parent *x509.Certificate, by any) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key := programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	if parent == nil {
		parent, by = template, key
	}
	raw := programs.Got(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by))(t)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, programs.Got(x509.ParseCertificate(raw))(t)
}

// Weakness: a certificate is taken for what its issuer's name says, or for what it chains to.
// Attack: certificates of another authority of that name, by themselves, by the key of a good
// one, by an authority below ours; a good one for another app, or of somebody who may not,
// or over. Checked: each is as none, and whoever has it may sign in.
func TestBadCertificatesAreNone(t *testing.T) {
	t.Parallel()
	r := deviceRig(t)
	good, _ := r.device(bobID, "id-notes")
	kept, _, err := r.store.DeviceAuthority()
	programs.Must(t, err)
	ours := programs.Got(x509.ParseCertificate(kept.Certificate))(t)
	oursKey := programs.Got(x509.ParsePKCS8PrivateKey(kept.Key))(t)
	leaf := programs.Got(x509.ParseCertificate(good.Certificate[0]))(t)
	like := func(change func(*x509.Certificate)) *x509.Certificate {
		c := &x509.Certificate{
			SerialNumber: leaf.SerialNumber, Subject: leaf.Subject, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
			BasicConstraintsValid: true, KeyUsage: leaf.KeyUsage, ExtKeyUsage: leaf.ExtKeyUsage,
		}
		if change != nil {
			change(c)
		}
		return c
	}
	isCA := func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage, c.Subject, c.ExtKeyUsage = true, x509.KeyUsageCertSign, ours.Subject, nil
	}
	bad := map[string]tls.Certificate{}
	twin, twinRoot := signed(t, like(isCA), nil, nil)
	bad["another authority of its name"], _ = signed(t, like(nil), twinRoot, twin.PrivateKey)
	bad["its own"], _ = signed(t, like(nil), nil, nil)
	bad["by a good one"], _ = signed(t, like(nil), leaf, good.PrivateKey)
	below, belowRoot := signed(t, like(isCA), ours, oursKey)
	chained, _ := signed(t, like(nil), belowRoot, below.PrivateKey)
	chained.Certificate = append(chained.Certificate, below.Certificate[0], kept.Certificate)
	bad["by an authority below"] = chained
	bad["an authority"] = below
	bad["ours, that was never given out"], _ = signed(t, like(nil), ours, oursKey)
	bad["for servers"], _ = signed(t, like(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), ours, oursKey)
	bad["over"], _ = signed(t, like(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), ours, oursKey)
	bad["of many names"], _ = signed(t, like(func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: strings.Repeat("x", 2000)}
		c.SerialNumber = big.NewInt(1)
	}), nil, nil)
	behind := good
	behind.Certificate = [][]byte{bad["its own"].Certificate[0], good.Certificate[0]}
	behind.PrivateKey = bad["its own"].PrivateKey
	bad["a good one behind it"] = behind
	bad["for another app"], _ = r.device(ownerID, "id-photos")
	none := func(what string, certificate tls.Certificate) {
		t.Helper()
		for _, http2 := range []bool{false, true} {
			b := r.by(certificate)(http2)
			b.fetches(401, what, "GET", origin+"/")
			b.gets(303, what, origin+"/")
			b.fetches(401, what, "GET", origin+"/.porchlight/me")
			b.fetches(401, what, "GET", origin+"/", "Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site")
		}
	}
	for what, certificate := range bad {
		none(what, certificate)
	}
	r.by(good)(true).fetches(200, "a good one", "GET", origin+"/")
	huge := good
	for range 100 {
		huge.Certificate = append(huge.Certificate[:len(huge.Certificate):len(huge.Certificate)], kept.Certificate)
	}
	if res, err := r.by(huge)(false).try(r.browser(false).request("GET", origin+"/", nil)); err == nil {
		res.Body.Close()
		t.Errorf("a handshake of %d KiB: %s", 100*len(kept.Certificate)>>10, res.Status)
	}

	// What it may, and its person, change under a connection that stays.
	lasting := r.by(good)(true)
	lasting.fetches(200, "before", "GET", origin+"/")
	signedOut := r.person(bobID, func(p *controlapi.Person) { p.Epoch = 7 })
	r.setPeople(signedOut...)
	lasting.fetches(200, "signed out everywhere", "GET", origin+"/")
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = nil })...)
	lasting.drop() // it ends by itself, and may not have yet
	none("not given any more", good)
	r.setPeople(signedOut...)
	none("given again", good)
	good, _ = r.device(bobID, "id-notes")
	r.access.NarrowDevices(bobID, "id-notes")
	none("withdrawn and given again", good)
	good, _ = r.device(bobID, "id-notes")
	r.by(good)(true).fetches(200, "a new one", "GET", origin+"/")
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Since = bobsDay.Add(time.Hour) })...)
	none("removed and invited again", good)
	if all := r.access.Devices(); len(all) != 1 {
		t.Errorf("kept: %+v", all)
	}
	good, id := r.device(bobID, "id-notes")
	r.end(id)
	none("revoked", good)
	good, _ = r.device(bobID, "id-notes")
	r.advance(366 * 24 * time.Hour)
	r.sync()
	none("a year later", good)
	if r.access.HasDevices("id-notes") {
		t.Error("it is asked for")
	}
}

// Weakness: a resumed session stands for what was judged when it began. Checked: a session
// that is resumed carries the certificate, whose worth is asked anew; and it is worth nothing
// at another app.
func TestCertificateOfResumedSessions(t *testing.T) {
	t.Parallel()
	r := deviceRig(t)
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = []string{"id-notes", "id-photos"} })...)
	bobs, id := r.device(bobID, "id-notes")
	r.device(bobID, "id-photos")
	b, _ := r.showing(bobs, false)
	resumed := func() bool {
		res, _ := b.fetch("GET", origin+"/")
		return res.TLS.DidResume
	}
	b.fetches(200, "the first time", "GET", origin+"/")
	b.drop()
	if !resumed() {
		t.Fatal("no session is resumed")
	}
	b.drop()
	b.fetches(200, "resumed", "GET", origin+"/")
	c := b.client.Transport.(*http.Transport).TLSClientConfig
	c.ServerName = sni // the session's, with the other app's address
	b.drop()
	b.fetches(421, "at another app", "GET", photosOrigin+"/")
	c.ServerName = ""
	b.drop()
	b.fetches(401, "at another app, by its own name", "GET", photosOrigin+"/")
	r.end(id)
	b.drop()
	if res, body := b.fetch("GET", origin+"/"); res.StatusCode != 401 {
		t.Errorf("revoked, resumed: %v: %s %s", res.TLS.DidResume, res.Status, body)
	}
}

// What a certificate has open ends with it, and so does a connection that is kept; what else
// is open goes on.
func TestRevokedCertificateCloses(t *testing.T) {
	t.Parallel()
	r := deviceRig(t)
	r.app("notes", lasting)
	bobs, id := r.device(bobID, "id-notes")
	other, _ := r.device(bobID, "id-notes")
	mayas, _ := r.device(ownerID, "id-notes")
	wantCut := r.openThreeBy(r.by(bobs))
	r.by(other)(true).stream()
	r.by(mayas)(false).stream()
	r.signedIn("notes", bobID, false).stream()
	kept := programs.Got(tls.Dial("tcp", r.addr, &tls.Config{RootCAs: r.roots, ServerName: sni, Certificates: []tls.Certificate{bobs}}))(t)
	t.Cleanup(func() { kept.Close() })
	fmt.Fprintf(kept, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", sni)
	answers := bufio.NewReader(kept)
	if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != 200 || res.Close {
		t.Fatalf("%+v, %v", res, err)
	}
	if closed := r.end(id); closed != 3 {
		t.Errorf("%d connections closed", closed)
	}
	wantCut()
	if _, err := answers.ReadByte(); err == nil {
		t.Error("a connection that was kept goes on")
	}
	within(t, "only what others have open is left", func() bool { return r.access.Connections()["id-notes"] == 3 })
}

// Weakness: two apps' names lead to one address, and a connection made for one is used for
// the other, certificate and all. Checked: that is 421 before any sign-in is looked at, with
// whatever a request says of who asks.
func TestOtherHostsOnAConnectionAreMisdirected(t *testing.T) {
	t.Parallel()
	r := deviceRig(t)
	r.passwords = passwordRig(t).passwords
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = []string{"id-notes", "id-photos"} })...)
	bobs, _ := r.device(bobID, "id-notes", "id-photos")
	for _, http2 := range []bool{false, true} {
		b := r.by(bobs)(http2)
		b.client.Transport.(*http.Transport).TLSClientConfig.ServerName = sni
		b.fetches(200, "its own", "GET", origin+"/")
		for _, host := range []string{photosOrigin, "https://" + rootHost, "https://www.example.com", "https://x.notes." + rootHost} {
			for what, header := range map[string][]string{
				"nothing": nil, "Basic": basic(bobsMail, bobsPassword), "a wrong key": key("plp_x"), "another's origin": {"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"},
			} {
				for _, path := range []string{"/", "/.porchlight/me", "/.porchlight/device"} {
					b.fetches(http.StatusMisdirectedRequest, host+path+", "+what, "GET", host+path, header...)
				}
			}
		}
	}
}

// A certificate beside a key of somebody else names two people; beside a session or a
// password it is not looked at.
func TestCertificateBesideOthers(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", told)
	r.passwords = passwordRig(t).passwords
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Since = bobsDay })...)
	bobs, _ := r.device(bobID, "id-notes")
	mayas, _ := r.device(ownerID, "id-notes")
	r.by(bobs)(true).fetches(200, "their own key", "GET", origin+"/", key(bobsPassword)...)
	r.by(mayas)(true).fetches(400, "somebody's key", "GET", origin+"/", key(bobsPassword)...)
	in := r.by(mayas)(true)
	in.cookies = r.signedIn("notes", bobID, false).cookies
	for what, header := range map[string][]string{"a session": nil, "a password": basic(bobsMail, bobsPassword), "a token": {"Authorization", "Bearer " + r.token(bobID)}} {
		if _, body := in.fetch("GET", origin+"/", header...); !strings.HasPrefix(body, bobID) {
			t.Errorf("%s: %s", what, body)
		}
	}
	r.by(bobs)(true).fetches(401, "a wrong password", "GET", origin+"/", basic(bobsMail, "plp_x")...)

	for besides, status := range map[string]int{"": 403, agentapi.BesidesTokens: 403, agentapi.BesidesPasswords: 200} {
		r.change("notes", func(a *engine.App) { a.Options.OnlyPasskey, a.Options.BesidesPasskey = true, besides })
		r.by(bobs)(true).fetches(status, "where a passkey is asked for, and "+besides, "GET", origin+"/")
		if status != 200 {
			r.by(bobs)(true).gets(303, "a page there", origin+"/")
		}
	}
}
