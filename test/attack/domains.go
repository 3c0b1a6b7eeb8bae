//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/pebble"
	"porchlight/test/resolver"
)

// domainsTried is how often attackDomains tries something.
const domainsTried = 76

// outsideTest is what pebble.Start needs of a test, outside of one.
type outsideTest struct {
	testing.TB
	cleanups []func()
}

func (o *outsideTest) Helper()                   {}
func (o *outsideTest) Cleanup(f func())          { o.cleanups = append(o.cleanups, f) }
func (o *outsideTest) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (o *outsideTest) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (o *outsideTest) end() {
	for i := len(o.cleanups) - 1; i >= 0; i-- {
		o.cleanups[i]()
	}
}

// registrar is who writes the DNS of a name.
type registrar []*resolver.Resolver

func (r registrar) put(name, text, host string) {
	for _, one := range r {
		one.Put(fmt.Sprintf("_porchlight.%s. 60 IN TXT %q", name, text), name+". 60 IN CNAME "+host+".")
	}
}

// attackDomains has strangers and another tenant take an own domain: names that are not
// proven, freed, dangling or another's, Host and SNI apart, codes and cookies carried over.
func attackDomains(ctx context.Context, s *stage, t *tally) error {
	out := &outsideTest{}
	defer out.end()
	var dns registrar
	var flags []string
	for range 2 {
		r, err := resolver.New()
		if err != nil {
			return err
		}
		defer r.Close()
		dns, flags = append(dns, r), append(flags, "--resolver", r.Addr())
	}
	p, err := s.startPlane(ctx, s.dir+"/plane", flags...)
	if err != nil {
		return err
	}
	_, portText, _ := net.SplitHostPort(p.Listens[0])
	port, err := strconv.Atoi(portText)
	if err != nil {
		return err
	}
	p.authority = pebble.Start(out)
	p.authority.LookAt(port)
	w := &domainWorld{plane: p, dns: dns, port: portText, t: t}
	if w.maya, err = p.newTenant(ctx, "maya"); err != nil {
		return err
	}
	if w.anna, err = p.newTenant(ctx, "anna"); err != nil {
		return err
	}
	for _, try := range []func(context.Context) error{w.names, w.unproven, w.anothers, w.apart, w.codes, w.freed} {
		if err := try(ctx); err != nil {
			return err
		}
	}
	return nil
}

type domainWorld struct {
	*plane
	dns        registrar
	port       string
	maya, anna *tenant
	t          *tally
}

const stolenName = "notes.maya.test"

// short is the host of a tenant's app without its port.
func short(of *tenant) string { return controlapi.HostName(of.app.host) }

// reached says whether the relay brings somebody with this server name to a computer: it
// turns others away itself.
func (w *domainWorld) reached(name string) bool {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", w.Listens[0], &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err == nil {
		conn.Close()
		return true
	}
	return !strings.Contains(err.Error(), "unrecognized name")
}

// names are no own domains.
func (w *domainWorld) names(ctx context.Context) error {
	for _, name := range []string{
		"localhost", "maya.localhost", short(w.anna), controlapi.HostName(w.anna.account.Host), "control.localhost", "x.control.localhost",
		"com", "co.uk", "github.io", "192.0.2.1", "::1", "[::1]", "127.1", "*.maya.test", "maya", "_porchlight.maya.test", "maya..test", "maya.test:443", "a/../b.test",
	} {
		w.t.try(1)
		if _, err := w.maya.owner.AddDomain(ctx, agentapi.DomainRequest{Name: name, App: "notes"}); err == nil {
			w.t.got("%q is taken for an own domain", name)
		}
	}
	return nil
}

// unproven names are forwarded to nobody.
func (w *domainWorld) unproven(ctx context.Context) error {
	added, err := w.maya.owner.AddDomain(ctx, agentapi.DomainRequest{Name: stolenName, App: "notes"})
	if err != nil {
		return err
	}
	all := []string{stolenName, strings.ToUpper(stolenName), "x." + stolenName, "maya.test", "evil.test", "_porchlight." + stolenName}
	look := func(when string, names ...string) {
		for _, name := range names {
			w.t.try(1)
			if w.reached(name) {
				w.t.got("%s, %s is forwarded", when, name)
			}
		}
	}
	check := func(what, text, host string) error {
		w.dns.put(stolenName, text, host)
		d, err := w.maya.owner.CheckDomain(ctx, stolenName)
		if w.t.try(1); err == nil && d.State != agentapi.DomainWaiting {
			w.t.got("%s proves %s", what, stolenName)
		}
		look(what, stolenName)
		return err
	}
	look("only claimed", all...)
	text := added.Records[0].Value
	for what, c := range map[string][2]string{
		"no bits": {"", short(w.maya)}, "half of the bits": {text[:11], short(w.maya)}, "bits in capitals": {strings.ToUpper(text), short(w.maya)},
		"bits and more": {text + "x", short(w.maya)}, "another tenant's host": {text, short(w.anna)}, "a stranger's host": {text, "evil.test"},
		"the control plane": {text, "control.localhost"}, "itself": {text, stolenName},
	} {
		if err := check(what, c[0], c[1]); err != nil {
			return err
		}
	}
	w.dns[1].Drop(stolenName)
	w.dns[0].Put(fmt.Sprintf("_porchlight.%s. 60 IN TXT %q", stolenName, text), stolenName+". 60 IN CNAME "+short(w.maya)+".")
	d, err := w.maya.owner.CheckDomain(ctx, stolenName)
	if w.t.try(1); err == nil && d.State != agentapi.DomainWaiting {
		w.t.got("one resolver alone proves it")
	}
	if err != nil {
		return err
	}
	w.dns.put(stolenName, text, short(w.maya))
	if d, err = w.maya.owner.CheckDomain(ctx, stolenName); err != nil || d.State != agentapi.DomainProven {
		return fmt.Errorf("the very records do not prove it: %+v, %w", d, err)
	}
	look("another is proven", all[2:]...)
	return w.opens(ctx, w.maya)
}

// opens waits until a tenant's computer has a certificate of the name.
func (w *domainWorld) opens(ctx context.Context, of *tenant) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		var conn *tls.Conn
		conn, err = tls.Dial("tcp", w.Listens[0], &tls.Config{ServerName: stolenName, RootCAs: of.roots})
		if err == nil {
			return conn.Close()
		}
	}
	state, _ := of.owner.State(ctx)
	return fmt.Errorf("%s's computer does not answer at its own domain: %w (%s)", of.email, err, state.Trouble)
}

// anothers is what another tenant tries with a name that is proven.
func (w *domainWorld) anothers(ctx context.Context) error {
	claims := map[string]error{}
	_, claims["claims it"] = w.anna.owner.AddDomain(ctx, agentapi.DomainRequest{Name: stolenName, App: "notes"})
	_, claims["looks at it"] = w.anna.owner.CheckDomain(ctx, stolenName)
	_, claims["removes it"] = w.anna.owner.RemoveDomain(ctx, stolenName)
	for what, err := range claims {
		if w.t.try(1); err == nil {
			w.t.got("another tenant %s", what)
		}
	}
	if w.t.try(1); !w.reached(stolenName) {
		w.t.got("another tenant's tries end it")
	}
	return nil
}

// request sends one request under a server name with another Host.
func (w *domainWorld) request(ctx context.Context, server, host, path, cookie string) (status int, err error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", w.Listens[0], &tls.Config{ServerName: server, InsecureSkipVerify: true})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+path, nil)
	if err != nil {
		return 0, err
	}
	req.Host = host
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	client := &http.Client{Transport: &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// apart are Host and SNI that differ, and sessions of one name at the other.
func (w *domainWorld) apart(ctx context.Context) error {
	own := stolenName + ":" + w.port
	for _, pair := range [][2]string{{stolenName, w.maya.app.host}, {short(w.maya), own}, {stolenName, w.maya.account.Host}, {stolenName, "evil.test:" + w.port}, {stolenName, stolenName}, {stolenName, w.anna.app.host}} {
		status, err := w.request(ctx, pair[0], pair[1], "/hello", w.maya.app.cookie)
		if w.t.try(1); err == nil && status != http.StatusMisdirectedRequest {
			w.t.got("SNI %s with Host %s: HTTP %d", pair[0], pair[1], status)
		}
	}
	status, err := w.request(ctx, stolenName, own, "/hello", w.maya.app.cookie)
	if w.t.try(1); err != nil || status == http.StatusOK {
		w.t.got("the session of the app's own host at the own domain: HTTP %d, %v", status, err)
	}
	return nil
}

// codes go to a name that is proven for that app alone.
func (w *domainWorld) codes(ctx context.Context) error {
	own := "https://" + stolenName + ":" + w.port
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, own+"/hello", nil))
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	req.Header.Set("Sec-Fetch-Dest", "document")
	req.Header.Set("Accept", "text/html")
	started, err := w.maya.browser.Once(req)
	if err != nil {
		return err
	}
	started.Body.Close()
	visit, err := url.Parse(started.Header.Get("Location"))
	if err != nil || visit.Path != controlapi.PathVisit {
		return fmt.Errorf("an own domain leads to sign in at %q, %w", started.Header.Get("Location"), err)
	}
	for _, back := range []string{
		"https://evil.test:" + w.port, "https://evil.test", "https://" + stolenName, "https://" + stolenName + ":1", "http://" + stolenName + ":" + w.port,
		"https://x." + stolenName + ":" + w.port, "https://" + stolenName + ".evil.test:" + w.port, "https://" + stolenName + "@evil.test:" + w.port, "https://" + w.anna.app.host,
	} {
		q := visit.Query()
		q.Set(controlapi.ParamRedirectURI, back+controlapi.CallbackPath)
		visit.RawQuery = q.Encode()
		w.code(ctx, visit, back)
	}
	return nil
}

// code asks for a visitor's code for an address that must get none.
func (w *domainWorld) code(ctx context.Context, visit *url.URL, back string) {
	w.t.try(1)
	resp, err := w.maya.browser.Once(must(http.NewRequestWithContext(ctx, http.MethodGet, visit.String(), nil)))
	if err != nil {
		return
	}
	resp.Body.Close()
	if to := resp.Header.Get("Location"); strings.Contains(to, "code=") || strings.HasPrefix(to, back) {
		w.t.got("a code is sent to %s", to)
	}
}

func must(req *http.Request, err error) *http.Request {
	if err != nil {
		panic(err)
	}
	return req
}

// freed is a name that goes to another tenant, who is sent what browsers kept of the first.
func (w *domainWorld) freed(ctx context.Context) error {
	own := stolenName + ":" + w.port
	page, err := w.maya.browser.Open(ctx, "https://"+own+"/hello")
	if err != nil || page.Status != http.StatusOK {
		return fmt.Errorf("the owner cannot sign in at their domain: %+v, %w", page, err)
	}
	cookie, err := cookieOf(ctx, w.maya.browser, own)
	if err != nil {
		return err
	}
	stale := []string{short(w.maya)}
	old, err := w.maya.owner.OwnDomains(ctx)
	if err != nil {
		return err
	}
	// It leads to anna's app, whose bits are not there yet.
	w.dns.put(stolenName, old[0].Records[0].Value, short(w.anna))
	added, err := w.anna.owner.AddDomain(ctx, agentapi.DomainRequest{Name: stolenName, App: "notes"})
	if err != nil {
		return fmt.Errorf("a name that leads here now cannot be claimed: %w", err)
	}
	time.Sleep(2100 * time.Millisecond) // a route is known for two seconds
	if w.t.try(1); w.reached(stolenName) {
		w.t.got("the first computer is reached though the name leads to another")
	}
	d, err := w.anna.owner.CheckDomain(ctx, stolenName)
	if w.t.try(1); err != nil || d.State == agentapi.DomainProven {
		w.t.got("another tenant's TXT proves it: %v", err)
	}
	w.dns.put(stolenName, added.Records[0].Value, short(w.anna))
	if d, err = w.anna.owner.CheckDomain(ctx, stolenName); err != nil || d.State != agentapi.DomainProven {
		return fmt.Errorf("the next owner cannot prove it: %+v, %w", d, err)
	}
	time.Sleep(2100 * time.Millisecond)
	if err := w.opens(ctx, w.anna); err != nil {
		return err
	}
	for _, host := range append(stale, controlapi.HostName(w.maya.account.Host), stolenName, short(w.anna)) {
		status, err := w.request(ctx, host, host+":"+w.port, "/hello", cookie)
		if w.t.try(1); err == nil && status == http.StatusOK {
			w.t.got("the session of before opens %s", host)
		}
	}
	if w.t.try(1); w.maya.isUntouched(ctx, w.t) != nil {
		w.t.got("maya's app is not what it was")
	}
	// Dangling: anna gives it up, and its records stay; nobody gets it by them.
	if _, err := w.anna.owner.RemoveDomain(ctx, stolenName); err != nil {
		return err
	}
	time.Sleep(2100 * time.Millisecond)
	if w.t.try(1); w.reached(stolenName) {
		w.t.got("a name that was given up is forwarded")
	}
	for _, by := range []*tenant{w.maya, w.anna} {
		if by == w.anna {
			if _, err := by.owner.AddDomain(ctx, agentapi.DomainRequest{Name: stolenName, App: "notes"}); err != nil {
				return err
			}
		}
		d, err := by.owner.CheckDomain(ctx, stolenName)
		if w.t.try(1); err == nil && d.State == agentapi.DomainProven {
			w.t.got("the records that were left prove it for %s", by.email)
		}
	}
	return nil
}
