package connect

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/pebble"
	"porchlight/test/programs"
	"porchlight/test/resolver"
	"porchlight/test/visitor"
)

const ownName = "notes.maya.test"

// TestADomainOfOnesOwn: a name of the owner's opens an app once the DNS says so by two
// resolvers, with a certificate that the computer orders, a sign-in and a session of its own;
// taken off it leads nowhere, and what opened it is worth nothing.
func TestADomainOfOnesOwn(t *testing.T) {
	t.Parallel()
	var flags []string
	var resolvers []*resolver.Resolver
	for range 2 {
		r := programs.Got(resolver.New())(t)
		t.Cleanup(r.Close)
		resolvers, flags = append(resolvers, r), append(flags, "--resolver", r.Addr())
	}
	w := newWorld(t, flags...)
	w.app = talkative(t)
	_, portText, _ := net.SplitHostPort(w.control.Listens[0])
	authority := pebble.Start(t)
	authority.LookAt(programs.Got(strconv.Atoi(portText))(t))
	f := programs.Got(os.OpenFile(w.caFile, os.O_APPEND|os.O_WRONLY, 0))(t)
	programs.Got(f.Write(authority.Own))(t)
	f.Close()
	w.startAgent("--local", "--acme-directory", authority.Directory)
	w.publish()
	w.porchlight("approve", "notes")
	if code, _, said := w.run("domain", "add", ownName, "--app", "notes"); code != 1 || !strings.Contains(said, "needs a server") {
		t.Errorf("on its own: %d %s", code, said)
	}
	account := w.connect("cellar", "--acme-directory", authority.Directory)

	var added agentapi.OwnDomain
	w.decode(w.porchlight("domain", "add", ownName, "--app", "notes", "--json"), &added)
	if len(added.Records) != 2 || added.Records[0].Name != "_porchlight."+ownName || added.Records[0].Type != "TXT" || len(added.Records[0].Value) < 22 ||
		added.Records[1] != (agentapi.DNSRecord{Type: "CNAME", Name: ownName, Value: "notes." + hostOnly(account.Host)}) {
		t.Fatalf("the records are %+v", added.Records)
	}
	if err := w.unrouted(ownName); err != nil {
		t.Errorf("before it is proven: %v", err)
	}
	for _, r := range resolvers {
		r.Put(`_porchlight.`+ownName+`. 60 IN TXT "`+added.Records[0].Value+`"`, ownName+". 60 IN CNAME "+added.Records[1].Value+".")
	}
	var proven agentapi.OwnDomain
	w.decode(w.porchlight("domain", "check", ownName, "--json"), &proven)
	var all []agentapi.OwnDomain
	if w.decode(w.porchlight("domain", "list", "--json"), &all); proven.State != agentapi.DomainProven || len(all) != 1 || all[0].App != "notes" {
		t.Fatalf("checked it is %+v, and listed %+v", proven, all)
	}
	if leaf := w.handshake(t, authority, ownName+":"+portText).PeerCertificates[0]; len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != ownName {
		t.Errorf("the certificate is for %v", leaf.DNSNames)
	}

	trusted := w.roots.Clone()
	trusted.AppendCertsFromPEM(authority.Root)
	browser := visitor.New(trusted)
	defer browser.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	own := "https://" + ownName + ":" + portText + "/"
	page, err := browser.SignIn(ctx, own+"a?b=c", owner, w.mails)
	if err != nil || page.Status != http.StatusOK || page.Body != "notes of "+owner || page.URL.String() != own+"a?b=c" {
		t.Fatalf("the visit ended with %+v, %v", page, err)
	}
	// A session is of one name.
	address, _ := url.Parse(own)
	other, _ := url.Parse("https://notes." + account.Host + "/")
	carried := visitor.New(trusted)
	defer carried.Close()
	carried.SetCookies(other, browser.Cookies(address))
	req := programs.Got(http.NewRequestWithContext(ctx, http.MethodGet, other.String(), nil))(t)
	w.handshake(t, authority, "notes."+account.Host)
	if resp := programs.Got(carried.Once(req))(t); resp.StatusCode == http.StatusOK {
		t.Error("the session of the own domain opens the app's own host")
	}

	for name, begin := range map[string]func(*testing.T) realBrowser{"Chromium": newChromium, "Firefox": newFirefox} {
		t.Run("in "+name, func(t *testing.T) {
			w.browserAtAnOwnDomain(t, begin, "https://"+ownName+":"+portText, "https://notes."+account.Host, func(session http.Cookie) bool {
				again := visitor.New(trusted)
				defer again.Close()
				again.SetCookies(address, []*http.Cookie{&session})
				resp := programs.Got(again.Once(programs.Got(http.NewRequestWithContext(ctx, http.MethodGet, own, nil))(t)))(t)
				return resp.StatusCode == http.StatusOK
			})
		})
	}

	w.porchlight("domain", "remove", ownName)
	programs.Eventually(t, "the name leads nowhere", func() bool { return w.unrouted(ownName) == nil })
	var again agentapi.OwnDomain
	w.decode(w.porchlight("domain", "add", ownName, "--app", "notes", "--json"), &again)
	if again.Records[0].Value == added.Records[0].Value {
		t.Error("the bits of before are good again")
	}
	w.decode(w.porchlight("domain", "check", ownName, "--json"), &again)
	if again.State != agentapi.DomainWaiting || !strings.Contains(again.Problem, "TXT") {
		t.Errorf("with the record of before it is %+v", again)
	}
	for _, r := range resolvers {
		r.Put(`_porchlight.` + ownName + `. 60 IN TXT "` + again.Records[0].Value + `"`)
	}
	w.porchlight("domain", "check", ownName)
	w.handshake(t, authority, ownName+":"+portText)
	resp := programs.Got(browser.Once(programs.Got(http.NewRequestWithContext(ctx, http.MethodGet, own, nil))(t)))(t)
	if resp.StatusCode == http.StatusOK {
		t.Error("a session of before the name was taken off opens it again")
	}
}

// unrouted is nil where the relay brings nobody to a name.
func (w *world) unrouted(name string) error {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", w.control.Listens[0], &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err == nil {
		conn.Close()
		return http.ErrNotSupported
	}
	if !strings.Contains(err.Error(), "unrecognized name") {
		return err
	}
	return nil
}
