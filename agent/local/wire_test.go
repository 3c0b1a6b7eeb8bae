package local

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// TestARecordedHopShowsNoPlaintext listens between the visitor and the relay: a
// word that the app answers with, and the visitor's path, are nowhere in what
// went over the wire; the host name in the ClientHello is.
func TestARecordedHopShowsNoPlaintext(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	h.publish(t)
	link, err := h.owner.Open(t.Context(), "notes")
	if err != nil {
		t.Fatal(err)
	}
	recorded := &recording{}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: h.plane.ca.Pool()},
		DialContext:     recorded.dial,
	}
	t.Cleanup(transport.CloseIdleConnections)
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Transport: transport}
	resp, err := client.Get(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.HasPrefix(string(answer), "notes of ") {
		t.Fatalf("%q, %v", answer, err)
	}
	wire := recorded.String()
	host := "notes." + h.agent.Account().Host
	if name, _, _ := net.SplitHostPort(host); !strings.Contains(wire, name) {
		t.Error("the recording does not even hold the ClientHello's host name; is it a recording of this visit?")
	}
	for _, secret := range []string{"notes of ", "/.porchlight/open", "HTTP/1.1", "__Host-"} {
		if strings.Contains(wire, secret) {
			t.Errorf("%q went over the wire in clear", secret)
		}
	}
}
