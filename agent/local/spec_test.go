package local

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// TestSpecVisits shows the promises of docs/interface.md about visits, over the
// whole way: relay, tunnel, TLS in the agent, proxy, app. (Access tokens, X6 and
// X7, are shown where there is a key to sign some with: agent/proxy.)
func TestSpecVisits(t *testing.T) {
	t.Parallel()
	s := startStreet(t)
	ctx := t.Context()
	status := func(t *testing.T, v *visitor.Visitor, address string) int {
		t.Helper()
		page := programs.Got(v.Open(ctx, address))(t)
		return page.Status
	}

	t.Run("X1_no_inbound_identity", func(t *testing.T) { headerAliases(t, s) })

	t.Run("X2_the_five_headers", func(t *testing.T) {
		for what, head := range map[string]string{
			"a page":      "Connection: close\r\n",
			"a WebSocket": "Connection: Upgrade, close\r\nUpgrade: websocket\r\nOrigin: " + s.address + "\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		} {
			s.app.forget()
			s.raw(t, s.host, "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n"+head+"\r\n")
			got := s.only(t)
			if s.identity(t, got); strings.Contains(head, "Upgrade") != strings.Contains(got, "Upgrade: websocket") {
				t.Errorf("%s reached the app as\n%s", what, got)
			}
		}
	})

	t.Run("X3_owner_and_member_from_127_0_0_1", func(t *testing.T) {
		link := programs.Got(s.owner.Open(ctx, "notes"))(t)
		maya := s.browser(t)
		for role, open := range map[string]func() int{
			"owner":  func() int { return status(t, maya, link.URL) },
			"member": func() int { return status(t, s.bob, s.address) },
		} {
			s.app.forget()
			if got := open(); got != http.StatusOK {
				t.Errorf("as %s: HTTP %d", role, got)
			}
			s.app.mu.Lock()
			peers := s.app.peers
			s.app.mu.Unlock()
			if got := s.only(t); !strings.Contains(got, "\r\nX-Service-Role: "+role+"\r\n") || !strings.HasPrefix(peers[0], "127.0.0.1:") {
				t.Errorf("the app sees %v and\n%s", peers, got)
			}
		}
	})

	t.Run("X4_nobody_reaches_nothing", func(t *testing.T) {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"} {
			for _, path := range []string{"/", "/favicon.ico", "/health", "/.well-known/x"} {
				answer := s.raw(t, s.host, method+" "+path+" HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nX-Service-User: "+s.bobID+"\r\nContent-Length: 0\r\n\r\n")
				if got := statusOf(answer); got != "401" {
					t.Errorf("%s %s: %.80q", method, path, answer)
				}
			}
		}
		page, err := s.browser(t).Open(ctx, s.address)
		if err != nil || "https://"+page.URL.Host != s.account().AuthURL {
			t.Errorf("a browser was led to %+v, %v", page, err)
		}
		s.untouched(t)
	})

	published := func(t *testing.T, name, label string) string {
		t.Helper()
		programs.Got(s.open.Publish(ctx, agentapi.PublishRequest{Name: name, Label: label, LocalPort: s.app.port}))(t)
		pub := programs.Got(s.house.owner.Approve(ctx, name))(t)
		return pub.URL
	}
	t.Run("X5_X9_a_new_app_is_for_nobody", func(t *testing.T) {
		diary := published(t, "diary", "Diary")
		if got := status(t, s.bob, diary); got != http.StatusForbidden {
			t.Errorf("a member who was not given the app: HTTP %d", got)
		}
		s.untouched(t)
		if got := status(t, s.bob, s.address); got != http.StatusOK {
			t.Errorf("the app he was given: HTTP %d", got)
		}
		s.app.forget()
	})

	t.Run("X8_stopped_and_removed", func(t *testing.T) {
		for what, step := range map[string]func(context.Context, string) error{
			"stopped": func(ctx context.Context, name string) error { _, err := s.open.Unpublish(ctx, name); return err },
			"removed": func(ctx context.Context, name string) error { _, err := s.house.owner.Revoke(ctx, name); return err },
		} {
			address := published(t, what, "App that is "+what)
			programs.Must(t, step(ctx, what))
			u := programs.Got(url.Parse(address))(t)
			for who, v := range map[string]*visitor.Visitor{"a member": s.bob, "nobody": s.browser(t)} {
				if page, err := v.Open(ctx, address); err == nil && page.Status == http.StatusOK && page.URL.Host == u.Host {
					t.Errorf("%s app, %s: %+v", what, who, page)
				}
			}
		}
		s.untouched(t)
	})
}

// TestSpecRevocation: what ends elsewhere ends here within a poll cycle, for
// requests and for what is open. (TestAccessEnds has every cause.)
func TestSpecRevocation(t *testing.T) {
	t.Parallel()
	for row, name := range map[string]string{
		"V1_withdrawn_grant": "one app withdrawn elsewhere",
		"V2_revoked_person":  "the person revoked elsewhere",
		"V3_revoked_client":  "the remote client revoked on the account page",
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			for _, c := range causes {
				if c.name == name {
					c.check(t, false)
					return
				}
			}
			t.Fatalf("there is no cause %q", name)
		})
	}
}
