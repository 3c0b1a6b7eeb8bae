package local

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// TestNobodyForgesAnIdentity sends what other products let through (spellings
// that frameworks fold into our names, headers named in Connection, trailers)
// over the whole way, relay and tunnel included, and looks at what the app got:
// exactly the five headers (the interface, Identity headers), once each.
func TestNobodyForgesAnIdentity(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	address := h.publish(t)
	account := h.agent.Account()
	for _, http2 := range []bool{false, true} {
		client := h.ownersClient(t, http2)
		body, send := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/forge", body)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(address)
		req.Header = http.Header{
			"Origin":             {"https://" + u.Host},
			"X-Service-Role":     {"owner"},
			"x-service-user":     {"forged"},
			"X_Service_User":     {"forged"},
			"X-Service_Email":    {"forged@example.com"},
			"X.Service.Role":     {"forged"},
			"X-Forwarded-For":    {"203.0.113.9"},
			"X_Forwarded_Host":   {"forged.example"},
			"Forwarded":          {"for=203.0.113.9"},
			"X-Real-Ip":          {"203.0.113.9"},
			"Remote-User":        {"forged"},
			"X-Remote-User":      {"forged"},
			"X-Webauth-User":     {"forged"},
			"X-Kept":             {"yes"},
			"Content-Type":       {"text/plain"},
			"X-Service-Whatever": {"forged"},
		}
		if !http2 {
			req.Header.Set("Connection", "X-Service-User, X-Service-Role")
		}
		req.Trailer = http.Header{"X-Service-User": nil, "X-Honest": nil}
		go func() {
			io.WriteString(send, "body")
			req.Trailer.Set("X-Service-User", "forged")
			req.Trailer.Set("X-Honest", "yes")
			send.Close()
		}()
		before := h.requests()
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		protocol := resp.Proto
		if resp.StatusCode != http.StatusOK || (resp.ProtoMajor == 2) != http2 {
			t.Fatalf("HTTP %d over %s", resp.StatusCode, protocol)
		}
		h.mu.Lock()
		if len(h.seen) != before+1 {
			t.Fatalf("%s: the app saw %d requests", protocol, len(h.seen)-before)
		}
		seen := h.seen[before]
		h.mu.Unlock()

		got := map[string]string{}
		for name, values := range seen.Header {
			folded := strings.Map(func(r rune) rune {
				if r == '_' || r == '.' {
					return '-'
				}
				return r
			}, strings.ToLower(name))
			if strings.HasPrefix(folded, "x-service-") {
				got[name] = strings.Join(values, "|")
			}
			if strings.Contains(fmt.Sprint(values), "forged") || strings.Contains(fmt.Sprint(values), "203.0.113.9") {
				t.Errorf("%s: the app got %s: %v", protocol, name, values)
			}
		}
		want := map[string]string{
			"X-Service-User": account.AccountID, "X-Service-Email": account.Email, "X-Service-Name": account.Name,
			"X-Service-App": "Notes", "X-Service-Role": "owner",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: headers %v, want %v", protocol, got, want)
		}
		if seen.Header.Get("X-Kept") != "yes" {
			t.Errorf("%s: an honest header was dropped", protocol)
		}
		if _, there := seen.Trailer["X-Service-User"]; there || seen.Trailer.Get("X-Honest") != "yes" {
			t.Errorf("%s: trailers %v", protocol, seen.Trailer)
		}
		if strings.Contains(seen.Header.Get("Cookie"), "porchlight") {
			t.Errorf("%s: our cookie reached the app", protocol)
		}
	}
}

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
