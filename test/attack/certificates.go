//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"html"
	"io"
	"math/big"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"porchlight/agent/agentapi"
)

// shower shows one certificate to a computer, and resumes sessions as a browser does.
type shower struct {
	*computer
	certificate tls.Certificate
	cache       tls.ClientSessionCache
	authority   []byte // name of who is asked for; nil where nobody was
	resumed     bool
}

// ask sends a request on a connection for host, and closes it.
func (s *shower) ask(ctx context.Context, host, request string) (answer, error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return answer{}, err
	}
	raw, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return answer{}, err
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{
		RootCAs: s.roots, ServerName: name, NextProtos: []string{"http/1.1"}, ClientSessionCache: s.cache,
		GetClientCertificate: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(asked.AcceptableCAs) == 1 {
				s.authority = asked.AcceptableCAs[0]
			}
			return &s.certificate, nil
		},
	})
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		return answer{}, nil //nolint:nilerr // refused in the handshake
	}
	s.resumed = conn.ConnectionState().DidResume
	got, _ := io.ReadAll(conn)
	if all := answers(got); len(all) > 0 {
		return all[0], nil
	}
	return answer{}, nil
}

func (c *computer) shows(certificate tls.Certificate) *shower {
	return &shower{computer: c, certificate: certificate, cache: tls.NewLRUClientSessionCache(0)}
}

// opened is the certificate in a file.
func opened(file []byte, code string) (tls.Certificate, *x509.Certificate, error) {
	key, leaf, err := pkcs12.Decode(file, code)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}, leaf, nil
}

// certificateLike is a certificate like one that is good, by a parent, or by itself where that is nil.
func certificateLike(like, parent *x509.Certificate, by any, change func(*x509.Certificate)) (tls.Certificate, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: like.SerialNumber, Subject: like.Subject, NotBefore: like.NotBefore, NotAfter: like.NotAfter,
		BasicConstraintsValid: true, KeyUsage: like.KeyUsage, ExtKeyUsage: like.ExtKeyUsage,
	}
	if change != nil {
		change(template)
	}
	if parent == nil {
		parent, by = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf, err := x509.ParseCertificate(raw)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, leaf, err
}

// certificateForgeries are certificates that look as if ours had made them; authority is its name.
func certificateForgeries(good tls.Certificate, leaf *x509.Certificate, authority []byte) (map[string]tls.Certificate, error) {
	all := map[string]tls.Certificate{}
	isCA := func(c *x509.Certificate) {
		c.IsCA, c.RawSubject, c.KeyUsage, c.ExtKeyUsage = true, authority, x509.KeyUsageCertSign, nil
	}
	root, rootLeaf, err := certificateLike(leaf, nil, nil, isCA)
	if err != nil {
		return nil, err
	}
	below, belowLeaf, err := certificateLike(leaf, rootLeaf, root.PrivateKey, isCA)
	if err != nil {
		return nil, err
	}
	for what, how := range map[string]struct {
		parent *x509.Certificate
		by     any
		change func(*x509.Certificate)
		chain  [][]byte
	}{
		"by itself":               {},
		"by another of that name": {parent: rootLeaf, by: root.PrivateKey},
		"with its root":           {parent: rootLeaf, by: root.PrivateKey, chain: root.Certificate},
		"by one below":            {parent: belowLeaf, by: below.PrivateKey, chain: [][]byte{below.Certificate[0], root.Certificate[0]}},
		"by a good one":           {parent: leaf, by: good.PrivateKey, chain: good.Certificate},
		"before a good one":       {chain: good.Certificate},
		"over":                    {parent: rootLeaf, by: root.PrivateKey, change: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }},
		"for servers":             {parent: rootLeaf, by: root.PrivateKey, change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }},
		"of another number":       {parent: rootLeaf, by: root.PrivateKey, change: func(c *x509.Certificate) { c.SerialNumber = big.NewInt(7) }},
		"of a long name":          {change: func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: strings.Repeat("a", 8<<10)} }},
		"of a long chain":         {chain: slicesOf(root.Certificate[0], 200)},
	} {
		one, _, err := certificateLike(leaf, how.parent, how.by, how.change)
		if err != nil {
			return nil, err
		}
		one.Certificate = append(one.Certificate, how.chain...)
		all[what] = one
	}
	all["the authority"] = root
	return all, nil
}

func slicesOf(raw []byte, n int) (all [][]byte) {
	for range n {
		all = append(all, raw)
	}
	return all
}

// attackCertificates shows apps certificates that are forged, of others, over or revoked, and
// has pages of other origins use good ones: nobody is let in.
func attackCertificates(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	mine, others := on.backends[0], on.backends[1:]
	made, err := on.owner.MakeDevice(ctx, agentapi.DeviceRequest{Name: "attacked", Apps: []string{mine.name}})
	if err != nil {
		return err
	}
	for _, b := range others { // so that they ask for one, too
		if _, err := on.owner.MakeDevice(ctx, agentapi.DeviceRequest{Name: "another", Apps: []string{b.name}}); err != nil {
			return err
		}
	}
	good, leaf, err := opened(made.File, made.Code)
	if err != nil {
		return err
	}
	honest := on.shows(good)
	if got, err := honest.ask(ctx, mine.host, "GET /hello HTTP/1.1\r\nHost: "+mine.host+"\r\nConnection: close\r\n\r\n"); err != nil || got.status != 200 {
		return fmt.Errorf("the honest certificate gets %d, %v", got.status, err)
	}
	all, err := certificateForgeries(good, leaf, honest.authority)
	if err != nil {
		return err
	}
	if err := on.showForged(ctx, t, all, good); err != nil {
		return err
	}
	if err := on.abuseCertificate(ctx, t, honest, mine, others); err != nil {
		return err
	}
	if err := on.membersCertificate(ctx, t, mine); err != nil {
		return err
	}
	if _, err := on.owner.RevokeDevice(ctx, made.ID); err != nil {
		return err
	}
	for range 4 { // by a new handshake and by the sessions that are left
		got, err := honest.ask(ctx, mine.host, "GET /hello HTTP/1.1\r\nHost: "+mine.host+"\r\nConnection: close\r\n\r\n")
		if err != nil {
			return err
		}
		t.try(1)
		if got.status == 200 {
			t.got("revoked, it opens the app, resumed: %v", honest.resumed)
		}
	}
	return nil
}

// showForged shows each app each forgery, and the others what is good at one.
func (on *ground) showForged(ctx context.Context, t *tally, all map[string]tls.Certificate, good tls.Certificate) error {
	requests := []string{
		"GET /hello HTTP/1.1\r\n", "POST /hello HTTP/1.1\r\nContent-Length: 0\r\n", "GET /.porchlight/me HTTP/1.1\r\n", "PROPFIND / HTTP/1.1\r\n",
		"GET /hello HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
	}
	fmt.Printf("   certificates %d × apps %d × requests %d = %d\n", len(all)+1, len(on.backends), len(requests), (len(all)+1)*len(on.backends)*len(requests))
	for i, b := range on.backends {
		show := all
		if i > 0 {
			show = map[string]tls.Certificate{"a good one of another app": good}
			for what, one := range all {
				show[what] = one
			}
		}
		for what, one := range show {
			by := on.shows(one)
			for _, request := range requests {
				got, err := by.ask(ctx, b.host, request+"Host: "+b.host+"\r\nConnection: close\r\n\r\n")
				if err != nil {
					return err
				}
				t.try(1)
				if got.status > 0 && got.status < 300 || got.status == 101 {
					t.got("a certificate %s opens %s: %.30q gets %d", what, b.name, request, got.status)
				}
			}
		}
	}
	return nil
}

// abuseCertificate has pages of other origins use a good certificate, and sends other hosts
// on its connection.
func (on *ground) abuseCertificate(ctx context.Context, t *tally, honest *shower, mine *backend, others []*backend) error {
	origins := []string{"", "https://evil.test", "null", "http://" + mine.host, "https://" + others[0].host, "https://" + mine.host + ".evil.test", "https://" + mine.host + "\r\nOrigin: https://evil.test"}
	webSocket := "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nConnection: Upgrade, close\r\n"
	for _, origin := range origins {
		for _, site := range []string{"", "cross-site", "same-site", "none", "same-origin", "else"} {
			if origin == "" && (site == "" || site == "none" || site == "same-origin") {
				continue
			}
			fields := ""
			if origin != "" {
				fields = "Origin: " + origin + "\r\n"
			}
			if site != "" {
				fields += "Sec-Fetch-Site: " + site + "\r\n"
			}
			for what, more := range map[string]string{
				"a form": "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", "an image": "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n",
				"a fetch": "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n", "a WebSocket": webSocket, "a frame": "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
			} {
				for _, method := range []string{"GET", "POST"} {
					got, err := honest.ask(ctx, mine.host, method+" /hello HTTP/1.1\r\nHost: "+mine.host+"\r\n"+fields+more+"Connection: close\r\n\r\n")
					if err != nil {
						return err
					}
					t.try(1)
					if got.status > 0 && got.status < 400 {
						t.got("%s of %q, %q by %s gets %d", what, origin, site, method, got.status)
					}
				}
			}
		}
	}
	for _, host := range []string{others[0].host, strings.TrimPrefix(mine.host, mine.name+"."), "evil.test", "x." + mine.host} {
		for _, path := range []string{"/hello", "/.porchlight/me", "/.porchlight/devices", "/.porchlight/device"} {
			got, err := honest.ask(ctx, mine.host, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if err != nil {
				return err
			}
			t.try(1)
			if got.status != 421 {
				t.got("%s of %s on a connection for %s gets %d", path, host, mine.host, got.status)
			}
		}
	}
	return nil
}

var (
	codeShown   = regexp.MustCompile(`<code class="whole">((?:[a-z2-7]{5}-){3}[a-z2-7]{5})</code>`)
	secretShown = regexp.MustCompile(`name="secret" value="([\w-]{43})"`)
)

// membersCertificate has a member make one on the page; nobody else does so in their name,
// fetches it, or ends others'. It ends with the member.
func (on *ground) membersCertificate(ctx context.Context, t *tally, mine *backend) error {
	root := strings.TrimPrefix(mine.host, mine.name+".")
	browser, person, err := on.invite(ctx, "second@example.com", "App "+mine.name)
	if err != nil {
		return err
	}
	defer browser.Close()
	if _, err := browser.Open(ctx, "https://"+root+"/.porchlight/devices"); err != nil {
		return err
	}
	cookie := ""
	for _, c := range browser.Cookies(&url.URL{Scheme: "https", Host: root, Path: "/"}) {
		cookie += c.Name + "=" + c.Value + "; "
	}
	post := func(path, fields string, form url.Values) (answer, error) {
		body := form.Encode()
		got, err := on.exchange(ctx, root, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nAccept: text/html\r\nSec-Fetch-Mode: navigate\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n%s", path, root, len(body), fields, body))
		if err != nil || len(got) == 0 {
			return answer{}, err
		}
		return got[0], nil
	}
	form := url.Values{"name": {"theirs"}, "app": {mine.name}}
	fromHere := "Origin: https://" + root + "\r\nSec-Fetch-Site: same-origin\r\n"
	for what, fields := range map[string]string{
		"without a session": fromHere, "of another site": "Cookie: " + cookie + "\r\nOrigin: https://evil.test\r\n", "of an app": "Cookie: " + cookie + "\r\nOrigin: https://" + mine.host + "\r\n",
		"by another site's form": "Cookie: " + cookie + "\r\nOrigin: null\r\nSec-Fetch-Site: cross-site\r\n", "by an app's session": "Cookie: " + mine.cookie + "\r\n" + fromHere,
	} {
		for _, more := range []url.Values{form, {"revoke": {"x"}}} {
			got, err := post("/.porchlight/devices", fields, more)
			if err != nil {
				return err
			}
			t.try(1)
			if got.status == 200 {
				t.got("a certificate is made %s", what)
			}
		}
	}
	for _, name := range []string{on.backends[1].name, "nothing", ""} { // of what they may not open
		got, err := post("/.porchlight/devices", "Cookie: "+cookie+"\r\n"+fromHere, url.Values{"name": {"theirs"}, "app": {mine.name, name}})
		if err != nil {
			return err
		}
		t.try(1)
		if got.status == 200 {
			t.got("a certificate for %q is made by somebody who may not open it", name)
		}
	}
	got, err := post("/.porchlight/devices", "Cookie: "+cookie+"\r\n"+fromHere, form)
	if err != nil {
		return err
	}
	code, secret := codeShown.FindStringSubmatch(html.UnescapeString(got.body)), secretShown.FindStringSubmatch(got.body)
	if got.status != 200 || code == nil || secret == nil {
		return fmt.Errorf("the honest form gets %d: %s", got.status, got.body)
	}
	for what, try := range map[string]struct{ fields, secret string }{
		"of another site": {"Origin: https://evil.test\r\n", secret[1]}, "by a guess": {fromHere, secret[1][1:] + "a"}, "by nothing": {fromHere, ""}, "by all of it": {fromHere, strings.Repeat(secret[1], 2)},
	} {
		got, err := post("/.porchlight/device", try.fields, url.Values{"secret": {try.secret}})
		if err != nil {
			return err
		}
		t.try(1)
		if got.status == 200 {
			t.got("a certificate is fetched %s", what)
		}
	}
	file, err := post("/.porchlight/device", fromHere, url.Values{"secret": {secret[1]}})
	if err != nil {
		return err
	}
	certificate, _, err := opened([]byte(file.body), code[1])
	if err != nil || !bytes.Equal([]byte(file.header.Get("Cache-Control")), []byte("no-store")) {
		return fmt.Errorf("fetching it gets %d, %v", file.status, err)
	}
	if again, err := post("/.porchlight/device", fromHere, url.Values{"secret": {secret[1]}}); err != nil || again.status == 200 {
		t.got("it is fetched twice, %v", err)
	}
	t.try(1)
	by, request := on.shows(certificate), "GET /hello HTTP/1.1\r\nHost: "+mine.host+"\r\nConnection: close\r\n\r\n"
	if got, err := by.ask(ctx, mine.host, request); err != nil || got.status != 200 {
		return fmt.Errorf("the member's gets %d, %v", got.status, err)
	}
	if _, err := on.owner.Remove(ctx, person.AccountID); err != nil {
		return err
	}
	for range 2 {
		got, err := by.ask(ctx, mine.host, request)
		if err != nil {
			return err
		}
		t.try(1)
		if got.status == 200 {
			t.got("it opens the app after its person was removed")
		}
	}
	return nil
}
