package local

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: names are stripped exactly, and apps fold others into the same
// variable. Attack: a member sends every spelling. Checked: the app is sent the
// five, with the verified values, and not a byte of the attacker's.
func headerAliases(t *testing.T, s *street) {
	var head strings.Builder
	for _, name := range []string{
		"X-Service-User", "x_service_user", "X-Service_Role", "x.service.email", "X-SERVICE-NAME", "x~service~app", "X-Service-Other",
		"X-Forwarded-For", "X_Forwarded_For", "x-forwarded-user", "Forwarded", "X-Real-IP", "Remote-User", "REMOTE_USER", "X-Remote-User",
		"X-WEBAUTH-USER", "X-Auth-Request-Email", "Remote-Groups", "X-Original-URL", "X-Rewrite-URL", "Proxy",
	} {
		head.WriteString(name + ": forged\r\n")
	}
	if status, answer := s.ask(t, "GET /", head.String()); status != "200" {
		t.Fatal(answer)
	}
	got := s.only(t)
	if strings.Contains(got, "forged") {
		t.Errorf("the app was sent\n%s", got)
	}
	s.identity(t, got)
}

// Weakness: some paths, agents or headers need no session. Attack: those that
// did elsewhere. Checked: 401, or a page of ours, and the app is not asked.
func exemptPaths(t *testing.T, s *street) {
	for _, path := range []string{
		"/health", "/ping", "/robots.txt", "/favicon.ico", "/.well-known/acme-challenge/x", "/.well-known/openid-configuration",
		"/oauth2/sign_in", "/static/../admin", "/.porchlight/../admin", "/.porchlight/%2e%2e/admin", "/.porchlight", "/api;/.porchlight/style.css", "/a?x=/health", "/%2e%2e",
	} {
		for _, head := range []string{"", "User-Agent: kube-probe/1\r\n", "User-Agent: GoogleHC/1.0\r\n", "X-Original-URL: /health\r\n", "X-Forwarded-Uri: /health\r\n", "X-Real-IP: 127.0.0.1\r\n", "X-Forwarded-For: 127.0.0.1\r\n"} {
			answer := s.raw(t, s.host, "GET "+path+" HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n"+head+"\r\n")
			if status := statusOf(answer); status != "401" && status != "404" {
				t.Errorf("%s %q: %s", path, head, status)
			}
		}
	}
	s.untouched(t)
}

// Weakness: whoever sends a PROXY header says where they are. Attack: a visitor
// puts one before the handshake, of both versions. Checked: no handshake
// follows it.
func foreignProxyHeader(t *testing.T, s *street) {
	for _, preface := range []string{
		"PROXY TCP4 127.0.0.1 127.0.0.1 1 443\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x01\x01\xbb",
	} {
		c := programs.Got(controlapi.DialContext(t.Context(), "tcp", s.host))(t)
		name, _, _ := net.SplitHostPort(s.host)
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Write([]byte(preface)); err != nil {
			t.Error(err)
		}
		if err := tls.Client(c, &tls.Config{RootCAs: s.roots(), ServerName: name}).HandshakeContext(t.Context()); err == nil {
			t.Errorf("a handshake after %.5q", preface)
		}
		c.Close()
	}
	s.untouched(t)
}

// Weakness: access is decided on one reading of the path, and another is served.
// Attack: paths that leave the host in some reading, and other hosts on a
// connection made for this one. Checked: the path has no say; the app is sent it
// as it came, and another host is 421.
func pathConfusion(t *testing.T, s *street) {
	for _, path := range []string{"/a/../../b", "/%2e%2e/%2f", "//photos.example/x", "/a//b/;x=1", "/a%00b", "/a%5cb", "/.//", "/x?y?z=/../"} {
		if status, answer := s.ask(t, "GET "+path, ""); status != "200" {
			t.Errorf("%s: %s", path, answer)
			continue
		}
		if got := s.only(t); !strings.HasPrefix(got, "GET "+path+" HTTP/1.1\r\n") {
			t.Errorf("%s arrived as %.60q", path, got)
		}
	}
	root := s.account().Host
	name, _, _ := net.SplitHostPort(s.host)
	for _, host := range []string{"photos." + root, root, "portal." + root, name, name + ":1", name + ".:443", "127.0.0.1:8765", "localhost", ""} {
		answer := s.raw(t, s.host, "GET / HTTP/1.1\r\nHost: "+host+"\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n")
		if status := statusOf(answer); status != "421" {
			t.Errorf("Host %q: %s", host, status)
		}
	}
	s.untouched(t)
}

// Weakness: the target of a request line decides where it goes. Attack: the
// agent's own API and other places, as absolute targets and by CONNECT. Checked:
// refused; neither the app nor the API hears of it.
func absoluteForm(t *testing.T, s *street) {
	for _, line := range []string{
		"GET http://" + s.Addr() + "/status", "POST http://" + s.Addr() + "/publish", "GET http://169.254.169.254/latest", "GET x:http://127.0.0.1/",
		"GET http:127.0.0.1", "CONNECT " + s.Addr(), "CONNECT HOST", "GET *", "GET @127.0.0.1/", "GET HOST",
	} {
		if status, answer := s.ask(t, line, ""); status != "400" && status != "405" && status != "421" {
			t.Errorf("%s: %.100q", line, answer)
		}
	}
	s.untouched(t)
	if apps := s.state(t).Apps; len(apps) != 1 {
		t.Errorf("something was published: %+v", apps)
	}
}

// Weakness: an app is served from the product's own port, so that visitors reach
// the API or go round for ever. Attack: publish both ports. Checked: refused.
func ownPorts(t *testing.T, s *street) {
	for _, addr := range []string{s.Addr(), s.listeners[0].Addr().String()} {
		_, err := s.open.Publish(t.Context(), agentapi.PublishRequest{Name: "inner", Label: "Inner", LocalPort: portOf(t, addr)})
		if agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("port of %s: %v", addr, err)
		}
	}
}

// Weakness: the proxy's own secrets reach the app, which replays them. Attack:
// none is needed. Checked: neither the session, nor an access token, nor what
// opens the local API is sent on; what is the app's is.
func ownSecrets(t *testing.T, s *street) {
	answer := s.raw(t, s.host, "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: theirs=1; COOKIE; more=2\r\nConnection: close\r\n"+
		"x-engine-capability: leaked\r\nX_Owner_Secret: leaked\r\nAuthorization: Basic dTpw\r\n\r\n")
	if statusOf(answer) != "200" {
		t.Fatal(answer)
	}
	got := s.only(t)
	_, session, _ := strings.Cut(s.cookie, "=")
	if strings.Contains(got, session) || strings.Contains(strings.ToLower(got), "porchlight") || strings.Contains(got, "leaked") {
		t.Errorf("the app was sent\n%s", got)
	}
	if !strings.Contains(got, "\r\nCookie: theirs=1; more=2\r\n") || !strings.Contains(got, "\r\nAuthorization: Basic dTpw\r\n") {
		t.Errorf("what is the app's is missing:\n%s", got)
	}
}

// Weakness: an app's answer reaches past its own host. Attack: cookies for the
// parent, a session of ours, and clearing everybody's cookies. Checked: only
// what is the app's own gets through.
func cookiesForSiblings(t *testing.T, s *street) {
	name, _, _ := strings.Cut(s.cookie, "=")
	root, _, _ := net.SplitHostPort(s.account().Host)
	s.app.answerWith("Set-Cookie: mine=1; Path=/\r\nSet-Cookie: wide=1; Domain=" + root + "\r\nSet-Cookie: wider=1; Domain=localhost\r\n" +
		"Set-Cookie: " + name + "=planted; Secure; Path=/\r\nClear-Site-Data: \"cookies\", \"cache\"\r\nStrict-Transport-Security: max-age=9\r\n")
	defer s.app.answerWith("")
	_, answer := s.ask(t, "GET /", "")
	s.app.forget()
	for _, gone := range []string{"wide=", "wider=", "planted", `"cookies"`, "Strict-Transport"} {
		if strings.Contains(answer, gone) {
			t.Errorf("%s got through:\n%s", gone, answer)
		}
	}
	if !strings.Contains(answer, "Set-Cookie: mine=1; Path=/\r\n") || !strings.Contains(answer, "Clear-Site-Data: \"cache\"\r\n") {
		t.Errorf("what is the app's own is missing:\n%s", answer)
	}
}
