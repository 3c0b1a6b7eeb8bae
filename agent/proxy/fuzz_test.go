package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/engine"
)

// A return target never leads off the host, by the rules of the standard
// library's resolver and by those of browsers, which drop tabs and newlines and
// read backslashes as slashes.
func FuzzSafeReturn(f *testing.F) {
	for _, s := range []string{"/", "/a?b=c", "//x", "/\\x", "/\t/x", "/%2f%2fx", "/%5c", "https://x", "/.porchlight/callback", "/%2eporchlight/x", "/a#b", "", "/ü", "/a%00"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://notes.maya.test/start")
	browsers := strings.NewReplacer("\t", "", "\n", "", "\r", "", "\\", "/")
	f.Fuzz(func(t *testing.T, target string) {
		got := safeReturn(target)
		if got != "/" && got != target {
			t.Fatalf("%q became %q", target, got)
		}
		for _, read := range []string{got, browsers.Replace(got), strings.TrimSpace(browsers.Replace(got))} {
			u, err := base.Parse(read)
			if err != nil || u.Host != base.Host || u.Scheme != "https" || u.User != nil {
				t.Fatalf("%q leads to %v (%v)", target, u, err)
			}
			if isOurs(u.Path) {
				t.Fatalf("%q leads to our own path %q", target, u.Path)
			}
		}
		if strings.HasPrefix(got, "//") || len(got) > maxReturn {
			t.Fatalf("%q is kept as %q", target, got)
		}
		if safeReturn(got) != got {
			t.Fatalf("%q changes when it is cleaned again", got)
		}
	})
}

// No cookie of ours is left in what the app gets, and no other is lost.
func FuzzStripCookies(f *testing.F) {
	for _, s := range []string{"a=b", "__Host-porchlight-x=1", "a=b; __host-PORCHLIGHT-x=1;c", ";;=;", " __Host-porchlight-x", "a=\"; __Host-porchlight-x=1\"", "\t__Host-porchlight-x\t=1"} {
		f.Add(s, "z=1")
	}
	names := func(lines []string) (ours, others []string) {
		eachCookie(lines, func(name, value string) bool {
			switch {
			case ourCookie(name):
				ours = append(ours, name)
			case name != "" || value != "":
				others = append(others, name+"="+value)
			}
			return true
		})
		return ours, others
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		_, before := names([]string{a, b})
		kept := stripCookies([]string{a, b})
		ours, after := names(kept)
		if len(ours) > 0 {
			t.Fatalf("%q %q leaves %q", a, b, ours)
		}
		if !slices.Equal(before, after) {
			t.Fatalf("%q %q: others were %q, are %q", a, b, before, after)
		}
		if !containsFold(a, cookiePrefix) && !containsFold(b, cookiePrefix) && !slices.Equal(kept, []string{a, b}) {
			t.Fatalf("%q %q became %q", a, b, kept)
		}
	})
}

// plainly says whether a folded name is one of those.
func plainly(n *names, folded string) bool {
	for _, some := range n {
		for _, p := range some {
			if folded == p.name || p.open && strings.HasPrefix(folded, p.name) {
				return true
			}
		}
	}
	return false
}

// The matcher agrees with the rule written out plainly.
func FuzzReservedName(f *testing.F) {
	for _, s := range []string{"X-Service-User", "x_service_user", "X-Forwarded", "X-Forwarded-", "Forwarded", "remote_user", "X-Real-IP", "X-WEBAUTH-X", "proxy", "", "x", "x-", "X-Email", "OIDC_CLAIM_sub", "X-Services", "X\xc1ForwArded "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		plain := []byte(name) // bytes, as headers are; they need be no UTF-8
		for i, c := range plain {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
				plain[i] = c
			}
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				plain[i] = '-'
			}
		}
		n := string(plain)
		if got, want := reservedName(name), plainly(&reserved, n); got != want {
			t.Fatalf("%q is reserved: %v, want %v", name, got, want)
		}
		if got, want := sentByPages.has(name), plainly(&sentByPages, n); got != want {
			t.Fatalf("%q is sent by pages: %v, want %v", name, got, want)
		}
	})
}

// Whatever an app sets, it is neither ours nor a parent's once it has passed.
func FuzzSetCookie(f *testing.F) {
	for _, s := range []string{"a=b", "a=b; Domain=maya.test", "__Host-porchlight-x=1; Path=/", "=__Host-porchlight-x=1", "a=b; domain=.notes.maya.test", ";", "a;DOMAIN= test"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if !maySet(line, "notes.maya.test") {
			return
		}
		if c, err := http.ParseSetCookie(line); err == nil {
			if ourCookie(c.Name) {
				t.Fatalf("%q sets %q", line, c.Name)
			}
			if d := strings.ToLower(strings.TrimPrefix(strings.Trim(c.Domain, " \t"), ".")); d != "" && d != "notes.maya.test" {
				t.Fatalf("%q sets a cookie for %q", line, c.Domain)
			}
		}
	})
}

// State and nonce cookies are parsed without a panic and only in the form they
// are written.
func FuzzNonce(f *testing.F) {
	nonce := make([]byte, 32)
	f.Add(nonceState(nonce, 1), nonceCookie(nonce, "/x"))
	f.Add("", ".")
	f.Fuzz(func(t *testing.T, state, value string) {
		if digest, restarts, ok := parseState(state); ok && (len(digest) != 64 || restarts < 0 || restarts > maxRestarts || !isHex(digest)) {
			t.Fatalf("%q: %q %d", state, digest, restarts)
		}
		if n, back, ok := parseNonce(value); ok && (len(n) != 32 || safeReturn(back) != back) {
			t.Fatalf("%q: %x %q", value, n, back)
		}
	})
}

// Whatever an app's answer names, an address that was changed is one of its own
// host, what follows the host is as it was, and nothing else of the field has changed.
func FuzzToPublic(f *testing.F) {
	for _, s := range []string{
		"http://localhost:3000/a?b#c", "//localhost:3000", "http://localhost:3000@evil.test/", "/x", "http:localhost:3000", "http://LOCALHOST:3000//evil.test",
		"http://localhost:3000\\@evil", "%", "http://[::1]:3000/\\x", "https://127.0.0.1:3000?x", "http://notes.maya.test/x", "5; url='http://localhost:3000/'",
		"0,http://localhost:3000/", "<http://localhost:3000/a>; rel=\"x, <y>\", <//localhost:3000>", "<http://localhost:3000/a", "http://localhost:3000\t/", "http://localhost:03000/",
	} {
		f.Add(s)
	}
	const public = "https://notes.maya.test"
	f.Fuzz(func(t *testing.T, value string) {
		vhost := &virtualHost{app: engine.App{Port: 3000}, host: "notes.maya.test", origin: public}
		for _, n := range naming {
			n.in(value, func(address string) string {
				to, _ := vhost.public(address)
				if to == address {
					return to
				}
				u, err := url.Parse(to)
				if err == nil && (u.Scheme != "https" || u.Host != "notes.maya.test" || u.User != nil) {
					t.Fatalf("%q became %q", address, to)
				}
				rest, ours := strings.CutPrefix(to, public+"/")
				if !ours || !strings.HasSuffix(address, rest) {
					t.Fatalf("%q became %q", address, to)
				}
				return to
			})
			if untouched := n.in(value, func(address string) string { return address }); untouched != value {
				t.Fatalf("%s: %q is %q without a change", n.field, value, untouched)
			}
		}
	})
}

// Most answers name no address, and to look for one costs them nothing.
func TestToPublicOfMostAnswersIsFree(t *testing.T) {
	vhost := &virtualHost{app: engine.App{Port: 3000}, host: "notes.maya.test", origin: "https://notes.maya.test"}
	h := http.Header{"Content-Type": {"text/html"}, "Content-Length": {"5"}, "Etag": {"x"}}
	if n := testing.AllocsPerRun(100, func() { vhost.toPublic(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is left of Clear-Site-Data never names cookies, in any reading.
func FuzzSiteData(f *testing.F) {
	for _, s := range []string{`"cookies"`, `"*"`, `"cache", "cookies"`, `"cache","*"`, `cookies`, `"COOKIES"`, `"cache" , "storage:x"`, `"a,b"`, `"cache\"cookies"`} {
		f.Add(s, `"storage"`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		kept := keepSiteData([]string{a, b})
		for directive := range strings.SplitSeq(strings.Join(kept, ", "), ", ") {
			if len(kept) > 0 && !slices.Contains(siteData, directive) {
				t.Fatalf("%q %q leaves %q", a, b, kept)
			}
		}
	})
}
