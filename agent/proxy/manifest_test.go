package proxy_test

import (
	"encoding/json"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/engine"
	"porchlight/agent/proxy"
)

// The launcher can be installed: its manifest and icons come without a cookie, say what
// the host says, and are of no app's host. It says who shares what is there.
func TestLauncherIsInstallable(t *testing.T) {
	t.Parallel()
	apps := []engine.App{{ID: "id-notes", Name: "notes", Label: "Notes", Live: true}}
	called := ""
	r := newRig(t, func(c *proxy.Config) {
		c.List = func() []engine.App { return apps }
		c.DisplayName = func() string { return called }
	})
	root := "https://" + rootHost
	stranger := r.browser(false)
	res, body := stranger.get(root + "/.porchlight/manifest.webmanifest")
	var manifest struct {
		Name, Display string
		Start         string `json:"start_url"`
		Icons         []struct{ Src, Sizes, Purpose string }
	}
	if err := json.Unmarshal([]byte(body), &manifest); err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/manifest+json" {
		t.Fatalf("%v %s %v %s", err, res.Status, res.Header, body)
	}
	if !strings.HasPrefix(rootHost, manifest.Name) || manifest.Display != "standalone" || manifest.Start != "/" || len(manifest.Icons) != 3 || len(res.Cookies()) != 0 {
		t.Errorf("%+v", manifest)
	}
	icons := map[string]string{"/.porchlight/icon-touch.png": "180x180"}
	for _, icon := range manifest.Icons {
		icons[icon.Src] = icon.Sizes
	}
	for path, size := range icons {
		res, body := stranger.get(root + path)
		c, err := png.DecodeConfig(strings.NewReader(body))
		if want := strings.Split(size, "x")[0]; err != nil || res.StatusCode != http.StatusOK || c.Width != c.Height || want != map[int]string{180: "180", 192: "192", 512: "512"}[c.Width] {
			t.Errorf("%s: %s %v %+v", path, res.Status, err, c)
		}
	}
	b := r.browser(true)
	r.publish("notes", 1)
	b.gets(http.StatusNotFound, "of an app's host", "https://notes."+rootHost+"/.porchlight/manifest.webmanifest")
	b.signIn(root+"/", bobID)
	res, body = b.get(root + "/")
	if !strings.Contains(body, `<link rel="manifest" href="/.porchlight/manifest.webmanifest">`) || !strings.Contains(res.Header.Get("Content-Security-Policy"), "manifest-src 'self'") {
		t.Errorf("%v %s", res.Header, body)
	}
	if !strings.Contains(body, "Shared by <b>maya@example.com</b>.") {
		t.Errorf("who shares: %s", body)
	}
	called = "Maya & Ben"
	if _, body = b.get(root + "/"); !strings.Contains(body, "Shared by <b>Maya &amp; Ben</b>, maya@example.com.") {
		t.Errorf("by name: %s", body)
	}
	owner := r.browser(false)
	owner.signIn(root+"/", ownerID)
	if _, body = owner.get(root + "/"); strings.Contains(body, "Shared by") {
		t.Errorf("to the owner: %s", body)
	}
}
