package local

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestPlainHTTPIsSentOn: in local mode too, an address that begins with http:// leads
// to the same one by HTTPS.
func TestPlainHTTPIsSentOn(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	secure, err := url.Parse(h.publish(t))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.listeners[0].Addr().String()+"/page?x=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = strings.ToUpper(secure.Host)
	res, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if want := "https://" + secure.Host + "/page?x=1"; res.StatusCode != http.StatusPermanentRedirect || res.Header.Get("Location") != want {
		t.Errorf("%s to %q, want %q", res.Status, res.Header.Get("Location"), want)
	}
}
