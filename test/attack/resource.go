//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// ofResource are spellings of an app's address, https://HOST, where HOST has a port.
// names says that it may mean the app; the others must mean nothing.
var ofResource = []struct {
	what  string
	names bool
	do    func(string) string
}{
	{"as it is", true, func(u string) string { return u }},
	{"a slash", true, func(u string) string { return u + "/" }},
	{"a path", true, func(u string) string { return u + "/mcp" }},
	{"a query", true, func(u string) string { return u + "/?resource=https://evil.example" }},
	{"dots in the path", true, func(u string) string { return u + "/x/../../y" }},
	{"dots as %2e in the path", true, func(u string) string { return u + "/%2e%2e/y" }},
	{"two slashes", true, func(u string) string { return u + "//evil.example/" }},
	{"capitals", true, strings.ToUpper},
	{"capitals in the scheme", true, with("https", "HTTPS")},
	{"a dot behind the host", false, beforePort(".")},
	{"a dot behind the port", false, func(u string) string { return u + "." }},
	{"two dots", false, with(".", "..")},
	{"a dot in front", false, with("://", "://.")},
	{"the usual port", false, withPort(":443")},
	{"the usual port behind the port", false, func(u string) string { return u + ":443" }},
	{"no port", false, withPort("")},
	{"an empty port", false, withPort(":")},
	{"another port", false, withPort(":1")},
	{"a zero before the port", false, beforePort(":0")},
	{"a user", false, with("://", "://evil.example@")},
	{"an empty user", false, with("://", "://@")},
	{"as a user", false, func(u string) string { return u + "@evil.example" }},
	{"a backslash", false, with("://", "://evil.example\\@")},
	{"a backslash behind", false, func(u string) string { return u + "\\@evil.example" }},
	{"backslashes for slashes", false, with("//", "\\\\")},
	{"the dots as %2e", false, with(".", "%2e")},
	{"a letter escaped", false, with("o", "%6f")},
	{"a NUL escaped", false, beforePort("%00")},
	{"a slash escaped", false, func(u string) string { return u + "%2f" }},
	{"a letter of another script", false, with("o", "\u043e")},
	{"a letter that folds to s", false, with("localhost", "localho\u017ft")},
	{"a wide letter", false, with("o", "\uff4f")},
	{"a wide dot", false, with(".", "\u3002")},
	{"a soft hyphen", false, with("o", "o\u00ad")},
	{"punycode", false, with("://", "://xn--")},
	{"a host below", false, with("://", "://x.")},
	{"a star", false, with("://", "://*.")},
	{"IPv6", false, func(u string) string { return "https://[::1]" + u[strings.LastIndexByte(u, ':'):] }},
	{"IPv4", false, func(u string) string { return "https://127.0.0.1" + u[strings.LastIndexByte(u, ':'):] }},
	{"a fragment", false, func(u string) string { return u + "/#x" }},
	{"an empty fragment", false, func(u string) string { return u + "#" }},
	{"a space before", false, func(u string) string { return " " + u }},
	{"a space behind", false, func(u string) string { return u + " " }},
	{"a tab", false, beforePort("\t")},
	{"a line", false, func(u string) string { return u + "\r\n" }},
	{"a NUL", false, func(u string) string { return u + "\x00" }},
	{"no TLS", false, with("https", "http")},
	{"WebSocket", false, with("https", "wss")},
	{"no scheme", false, with("https:", "")},
	{"no slashes", false, with("//", "")},
	{"three slashes", false, with("//", "///")},
	{"the host alone", false, with("https://", "")},
	{"two in one", false, func(u string) string { return u + " " + u }},
	{"two with a comma", false, func(u string) string { return u + "," + u }},
	{"as JSON", false, func(u string) string { return `["` + u + `"]` }},
	{"empty", false, func(string) string { return "" }},
}

func beforePort(text string) func(string) string {
	return func(u string) string {
		i := strings.LastIndexByte(u, ':')
		return u[:i] + text + strings.TrimPrefix(u[i:], strings.Repeat(":", strings.Count(text, ":")))
	}
}

func withPort(port string) func(string) string {
	return func(u string) string { return u[:strings.LastIndexByte(u, ':')] + port }
}

// confined is where programs try to get more than the one app they were let into: bob may
// open Notes and Photos on maya's computer and not Diary, and all on his own; zoe's
// computer is not his. What is his own of each is called notes.
type confined struct {
	*plane
	maya, bobs, zoe      *tenant
	photos, diary        *backend
	bob, carol           *visitor.Visitor
	root                 string            // host of maya's computer
	ids                  map[string]string // what a consent form says of an app, by its host
	places               []spot            // where there are apps
	notNotes, notAllowed []string          // hosts
}

// spot is a host of a computer.
type spot struct {
	on   *tenant
	host string
}

// attackResource has clients with a grant for one app (RFC 8707) try to get another one.
func attackResource(ctx context.Context, s *stage, t *tally) error {
	g, err := s.confine(ctx)
	if err != nil {
		return err
	}
	for _, attack := range []func(context.Context, *tally) error{
		g.askOddly, g.tamper, g.widen, g.exchangeWider, g.lookAround, g.comeTwice, g.approveAnew, g.loseClient,
	} {
		if err := attack(ctx, t); err != nil {
			return err
		}
	}
	for _, b := range []*backend{g.maya.app, g.photos, g.diary, g.zoe.app, g.bobs.app} {
		log, err := os.ReadFile(b.log)
		if err != nil {
			return err
		}
		if strings.Contains(string(log), beyond) {
			t.got("an app was sent what no token opens")
		}
	}
	return nil
}

// confine makes the three computers.
func (s *stage) confine(ctx context.Context) (g *confined, err error) {
	g = &confined{ids: map[string]string{}}
	if g.plane, err = s.startPlane(ctx, s.dir+"/plane"); err != nil {
		return nil, err
	}
	for name, to := range map[string]**tenant{"maya": &g.maya, "bob": &g.bobs, "zoe": &g.zoe} {
		if *to, err = g.newTenant(ctx, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	g.maya.mails, g.root = g.mails, g.maya.account.Host
	for label, to := range map[string]**backend{"Photos": &g.photos, "Diary": &g.diary} {
		if *to, err = s.startBackend(ctx, "go"); err != nil {
			return nil, err
		}
		if (*to).host, err = g.maya.publish(ctx, strings.ToLower(label), label, (*to).tap.port()); err != nil {
			return nil, err
		}
	}
	for _, email := range []string{g.bobs.email, "carol@example.net"} {
		invited, _, err := g.maya.invite(ctx, email, "Notes", "Photos")
		if err != nil {
			return nil, fmt.Errorf("inviting %s: %w", email, err)
		}
		invited.Close()
	}
	g.bob, g.carol = g.bobs.browser, visitor.New(g.maya.roots) // bob is signed in already
	if _, err = g.carol.SignIn(ctx, g.AuthURL+"/account", "carol@example.net", g.mails); err != nil {
		return nil, err
	}
	g.notAllowed = []string{g.diary.host, g.zoe.app.host, "none." + g.root}
	g.notNotes = append([]string{g.photos.host, g.bobs.app.host, g.root, "portal." + g.root}, g.notAllowed...)
	g.places = []spot{
		{g.maya, g.maya.app.host}, {g.maya, g.photos.host}, {g.maya, g.diary.host}, {g.maya, g.root}, {g.bobs, g.bobs.app.host}, {g.zoe, g.zoe.app.host},
	}
	for _, who := range []struct {
		browser *visitor.Visitor
		hosts   []string
	}{
		{g.maya.browser, []string{g.maya.app.host, g.diary.host, g.photos.host}}, {g.bobs.browser, []string{g.bobs.app.host}}, {g.zoe.browser, []string{g.zoe.app.host}},
	} {
		if err := g.learn(ctx, who.browser, who.hosts); err != nil {
			return nil, err
		}
	}
	return g, nil
}

var pickedOnPage = regexp.MustCompile(`name="app" value="([^"]+)"( checked)?><span class="row-text"><b [^>]*>[^<]*</b><span [^>]*>([^<]+)<`)

// learn reads what consent forms say of apps off the page of who may open them, as soon as
// the control plane knows of them all.
func (g *confined) learn(ctx context.Context, browser *visitor.Visitor, hosts []string) error {
	r, err := g.client(browser)
	if err != nil {
		return err
	}
	for end := time.Now().Add(programs.Patience); ; time.Sleep(50 * time.Millisecond) {
		page, err := r.askFor(ctx, "https://"+hosts[0])
		if err != nil {
			return err
		}
		for _, found := range pickedOnPage.FindAllStringSubmatch(page.Body, -1) {
			g.ids[found[3]] = found[1]
		}
		if !slices.ContainsFunc(hosts, func(host string) bool { return g.ids[host] == "" }) {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("the consent page shows %v, not all of %v: HTTP %d", g.ids, hosts, page.Status)
		}
	}
}

// client adds a client, in a browser that is signed in.
func (g *confined) client(browser *visitor.Visitor) (*remote, error) {
	var made struct{ ClientID, ClientSecret string }
	err := g.Run(&made, "client", "add", "--name", "Assistant", "--redirect-uri", callback)
	return &remote{authURL: g.AuthURL, id: made.ClientID, secret: made.ClientSecret, back: callback, browser: browser}, err
}

// askFor asks for consent with resources.
func (r *remote) askFor(ctx context.Context, resources ...string) (*visitor.Page, error) {
	r.verifier = rand.Text() + rand.Text()
	q := r.query(r.verifier)
	q["resource"] = resources
	return r.ask(ctx, q.Encode())
}

// grantedFor is a grant of somebody who allows just what is asked for.
func (r *remote) grantedFor(ctx context.Context, resources ...string) (tokens, error) {
	if err := r.allowFor(ctx, resources...); err != nil {
		return tokens{}, err
	}
	status, got, err := r.token(ctx, r.exchange())
	if err == nil && (status != http.StatusOK || got.Access == "") {
		err = errors.New("an honest code is refused: " + got.Error)
	}
	return got, err
}

func (r *remote) allowFor(ctx context.Context, resources ...string) error {
	page, err := r.askFor(ctx, resources...)
	if err != nil {
		return err
	}
	form := url.Values{"decision": {"allow"}, "pick": {"apps"}}
	for _, found := range pickedOnPage.FindAllStringSubmatch(page.Body, -1) {
		if found[2] != "" {
			form.Add("app", found[1])
		}
	}
	answer, err := r.decide(ctx, page, form)
	if err == nil && r.code == "" {
		err = fmt.Errorf("allowing %v ends with HTTP %d, then HTTP %d at %s", resources, page.Status, answer.Status, answer.Header.Get("Location"))
	}
	return err
}

// beyond begins the path of all that must not come to an app.
const beyond = "/beyond-"

// opens says whether a token opens a host, which it may.
func (p spot) opens(ctx context.Context, access, path string) (bool, error) {
	got, err := p.on.exchange(ctx, p.host, "GET "+path+" HTTP/1.1\r\nHost: "+p.host+"\r\nAuthorization: Bearer "+access+"\r\nConnection: close\r\n\r\n")
	return len(got) > 0 && got[0].status == http.StatusOK, err
}

// hold notes what a token opens besides the hosts that were allowed.
func (g *confined) hold(ctx context.Context, t *tally, what, access string, allowed ...string) error {
	if access == "" {
		return nil
	}
	for _, p := range g.places {
		if slices.Contains(allowed, p.host) {
			continue
		}
		opens, err := p.opens(ctx, access, beyond+"allowed")
		if err != nil {
			return err
		}
		if opens {
			t.got("%s: the token opens %s", what, p.host)
		}
	}
	return nil
}

// mustOpen is an error unless a token opens maya's notes, or a host of hers.
func (g *confined) mustOpen(ctx context.Context, access, host string) error {
	opens, err := spot{g.maya, host}.opens(ctx, access, "/allowed")
	if err == nil && !opens {
		err = fmt.Errorf("an honest token does not open %s", host)
	}
	return err
}
