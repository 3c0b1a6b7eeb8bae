package local

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestPlainHTTPIsSentOn: in local mode too, an address that begins with http:// leads
// to the same one by HTTPS.
func TestPlainHTTPIsSentOn(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	secure := programs.Got(url.Parse(h.publish(t)))(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.listeners[0].Addr().String()+"/page?x=1", nil)
	programs.Must(t, err)
	req.Host = strings.ToUpper(secure.Host)
	res := programs.Got(new(http.Transport).RoundTrip(req))(t)
	defer res.Body.Close()
	if want := "https://" + secure.Host + "/page?x=1"; res.StatusCode != http.StatusPermanentRedirect || res.Header.Get("Location") != want {
		t.Errorf("%s to %q, want %q", res.Status, res.Header.Get("Location"), want)
	}
}
