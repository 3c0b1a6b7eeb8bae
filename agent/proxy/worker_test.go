package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/engine"
	"porchlight/agent/proxy"
)

// The launcher has browsers keep a page for when this computer is off: a worker of the root
// host alone, with nothing in it that says whose it is, and which another one replaces and
// ends. An app's host has its own /worker.js, and none of ours.
func TestWorkerOfTheLauncher(t *testing.T) {
	t.Parallel()
	tell := true
	r := newRig(t, func(c *proxy.Config) {
		c.List = func() []engine.App { return nil }
		c.TellOff = func() bool { return tell }
	})
	root := "https://" + rootHost
	stranger := r.browser(false)
	res, worker := stranger.get(root + "/worker.js")
	for field, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; connect-src 'self'", "Service-Worker-Allowed": "", "Set-Cookie": "",
	} {
		if got := res.Header.Get(field); res.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %s is %q", res.Status, field, got)
		}
	}
	if !strings.Contains(worker, "This computer is off") || strings.Contains(worker, "maya") || strings.Contains(worker, "Service") {
		t.Errorf("the worker is %s", worker)
	}
	if res, body := stranger.get(root+"/worker.js", "If-None-Match", res.Header.Get("Etag")); res.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("the same again: %s %s", res.Status, body)
	}

	// A browser says of what its worker passes on only that it loads a page or a frame.
	for from, status := range map[string]int{root: http.StatusSeeOther, origin: http.StatusUnauthorized} {
		if res, _ := stranger.fetch("GET", from+"/", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "empty"); res.StatusCode != status {
			t.Errorf("a stranger at %s is answered %s", from, res.Status)
		}
	}
	b := r.browser(true)
	b.signIn(root+"/", bobID)
	res, body := b.get(root + "/")
	policy := "; script-src " + root + "/.porchlight/launcher.js; worker-src " + root + "/worker.js"
	if !strings.Contains(body, `<script src="`+root+`/.porchlight/launcher.js" defer></script>`) || !strings.HasSuffix(res.Header.Get("Content-Security-Policy"), policy) {
		t.Errorf("%v %s", res.Header, body)
	}
	if _, body := b.get(root + "/.porchlight/launcher.js"); !strings.Contains(body, "/worker.js") {
		t.Errorf("what keeps it: %s", body)
	}
	b.signIn(origin+"/", bobID)
	b.gets(http.StatusNotFound, "ours at an app's host", origin+"/.porchlight/launcher.js")
	if _, body := b.get(origin + "/worker.js"); strings.Contains(body, "off") {
		t.Errorf("an app's own: %s", body)
	}
	if res, _ := b.get(root + "/.porchlight/sign-out"); strings.Contains(res.Header.Get("Content-Security-Policy"), "script") {
		t.Errorf("another page has a script: %v", res.Header)
	}

	tell = false
	if _, body := stranger.get(root + "/worker.js"); !strings.Contains(body, "unregister") || strings.Contains(body, "fetch") {
		t.Errorf("where it is not wanted: %s", body)
	}
	if res, body := b.get(root + "/"); strings.Contains(body, "<script") || strings.Contains(res.Header.Get("Content-Security-Policy"), "script") {
		t.Errorf("the launcher where it is not wanted: %v %s", res.Header, body)
	}
}
