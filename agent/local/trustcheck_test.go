package local

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// loader is a browser as far as the check of trust knows one: it has a list of
// authorities, or clicks warnings away.
func loader(t *testing.T, trusts *x509.CertPool, clicksAway bool) *http.Client {
	transport := &http.Transport{
		DialContext:     controlapi.DialContext,
		TLSClientConfig: &tls.Config{RootCAs: trusts, InsecureSkipVerify: clicksAway},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func (h *house) begins(t *testing.T) agentapi.TrustCheck {
	t.Helper()
	c, err := ask[agentapi.TrustCheck](t, h, "POST", "/owner/trust/check")
	if err != nil || c.State != agentapi.CheckWaiting || !strings.HasPrefix(c.URL, "https://"+c.Host+"/") {
		t.Fatalf("%+v, %v", c, err)
	}
	return c
}

// becomes waits until the check does not stand as it was.
func (h *house) becomes(t *testing.T, was, want string) agentapi.TrustCheck {
	t.Helper()
	for {
		c := programs.Got(ask[agentapi.TrustCheck](t, h, "GET", "/owner/trust/check?wait=8&was="+was))(t)
		if c.State != was || was == want {
			if c.State != want {
				t.Fatalf("%s, want %s", c.State, want)
			}
			return c
		}
	}
}

func load(t *testing.T, c *http.Client, url string) (status int, body string, h http.Header, err error) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		return 0, "", nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(raw), res.Header, err
}

var pictures = regexp.MustCompile(`<img src="([^"]+)"`)

// picture is the address of the picture that proves it.
func picture(t *testing.T, page string) string {
	t.Helper()
	found := pictures.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no picture in %s", page)
	}
	return found[1]
}

// A browser that trusts the authority loads the page and its picture, and that is the
// proof; each address works once.
func TestTrustIsProven(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	browser := loader(t, h.roots(), false)
	c := h.begins(t)
	status, page, head, err := load(t, browser, c.URL)
	if err != nil || status != 200 || !strings.Contains(page, "This page is from this computer") || head.Get("Set-Cookie") != "" || head.Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("%d %v, %v\n%s", status, head, err, page)
	}
	h.becomes(t, agentapi.CheckWaiting, agentapi.CheckOpened)
	at := picture(t, page)
	if !strings.HasPrefix(at, "https://check-") || strings.HasPrefix(at, "https://"+c.Host) || !strings.Contains(head.Get("Content-Security-Policy"), at[:strings.Index(at, "/.porch")]) {
		t.Errorf("the picture is at %s, under %s", at, head.Get("Content-Security-Policy"))
	}
	if status, _, _, err := load(t, browser, at); err != nil || status != 200 {
		t.Errorf("the picture: %d, %v", status, err)
	}
	if proven := h.becomes(t, agentapi.CheckOpened, agentapi.CheckProven); proven.URL != "" || proven.Milliseconds < 1 {
		t.Errorf("%+v", proven)
	}
	for _, again := range []string{c.URL, at} {
		if status, body, _, err := load(t, browser, again); err != nil || status != 404 || strings.Contains(body, "computer") {
			t.Errorf("a second time: %d %s, %v", status, body, err)
		}
	}
	if newer := h.begins(t); newer.URL == c.URL || newer.Host == c.Host {
		t.Errorf("the same again: %s", newer.URL)
	}
}

// A browser whose owner clicked the warning away has loaded the page and proves
// nothing: it asks nobody about a picture. One that loads nothing says so by ending the
// handshake.
func TestWarningsAreNoProof(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	strict := loader(t, x509.NewCertPool(), false)

	c := h.begins(t)
	if _, _, _, err := load(t, strict, c.URL); err == nil {
		t.Fatal("a browser without the authority loaded the page")
	}
	h.becomes(t, agentapi.CheckWaiting, agentapi.CheckRefused)

	c = h.begins(t)
	_, page, _, err := load(t, loader(t, nil, true), c.URL)
	programs.Must(t, err)
	h.becomes(t, agentapi.CheckWaiting, agentapi.CheckOpened)
	if _, _, _, err := load(t, strict, picture(t, page)); err == nil {
		t.Fatal("a browser without the authority loaded the picture")
	}
	h.becomes(t, agentapi.CheckOpened, agentapi.CheckRefused)
}

// Who guesses learns nothing: every address but the two is answered as one at which
// nothing is published, and no refused handshake of another name counts.
func TestCheckTellsStrangersNothing(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	browser := loader(t, h.roots(), false)
	account := programs.Got(h.owner.Account(t.Context()))(t)
	_, nothing, _, err := load(t, browser, "https://nobody."+account.Host+"/.porchlight/check/x")
	programs.Must(t, err)
	c := h.begins(t)
	token := c.URL[strings.LastIndexByte(c.URL, '/')+1:]
	host, port, _ := net.SplitHostPort(c.Host)
	for _, url := range []string{
		"https://" + c.Host + "/", "https://" + c.Host + "/.porchlight/check/", "https://" + c.Host + "/.porchlight/check/" + token[1:],
		"https://" + c.Host + "/.porchlight/check/" + token + "/", "https://" + c.Host + "/.porchlight/me",
		"https://nobody." + account.Host + "/.porchlight/check/" + token, "https://check." + account.Host + "/.porchlight/check/" + token,
	} {
		status, body, _, err := load(t, browser, url)
		if err != nil || status != 404 || body != nothing {
			t.Errorf("%s: %d %s, %v", url, status, body, err)
		}
	}
	conn := programs.Got(controlapi.DialContext(t.Context(), "tcp", account.Host))(t)
	other := tls.Client(conn, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "nobody." + strings.SplitN(host, ".", 2)[1]})
	if err := other.HandshakeContext(t.Context()); err == nil {
		t.Errorf("port %s was trusted", port)
	}
	other.Close()
	if now := h.becomes(t, agentapi.CheckWaiting+"?", agentapi.CheckWaiting); now.URL != "" {
		t.Errorf("the link is told again: %+v", now)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL, nil)
	if res, err := browser.Do(req); err != nil || res.StatusCode == 200 {
		t.Errorf("POST: %v, %v", res, err)
	} else {
		res.Body.Close()
	}
	if status, _, _, err := load(t, browser, c.URL); err != nil || status != 200 {
		t.Errorf("after all that: %d, %v", status, err)
	}
	programs.Got(h.owner.GoDark(t.Context()))(t)
	if _, err := ask[agentapi.TrustCheck](t, h, "POST", "/owner/trust/check"); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("in the dark: %v", err)
	}
}
