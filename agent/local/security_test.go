package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// weakness is one that was seen in a product like this one. Its test is here, a
// function that attacks over the whole way, or where the code is that withstands
// it.
type weakness struct {
	name string // of the test: TestSecurity/name
	seen string // elsewhere
	test func(*testing.T, *street)
	at   string // "directory:Test", of one kept elsewhere
}

var weaknesses = []weakness{
	{"header-aliases", "X_Forwarded_For, x_service_user (oauth2-proxy CVE-2025-64484, Caddy GHSA-f59h-q822-g45g, Traefik CVE-2026-39858)", headerAliases, ""},
	{"identity-in-trailers", "identity in trailers (Traefik CVE-2026-88004)", nil, "agent/proxy:TestTrailersCarryNoIdentity"},
	{"named-in-connection", "Connection: X-Service-User (golang/go#50580, Traefik CVE-2024-45410, Go CVE-2021-33197)", nil, "agent/proxy:TestIdentityHeadersCannotBeForged"},
	{"set-without-delete", "identity set without being deleted first (Caddy GHSA-7r4p-vjf4-gxv4)", nil, "agent/proxy:TestDefaultDeny"},
	{"exempt-paths", "exemptions by path or header (oauth2-proxy CVE-2026-40575, CVE-2026-34457)", exemptPaths, ""},
	{"proxy-header", "a PROXY header from anybody", foreignProxyHeader, ""},
	{"path-confusion", "path confusion (Envoy CVE-2021-32777)", pathConfusion, ""},
	{"absolute-form", "absolute-form targets reach other loopback services (zrok before 2.0.3)", absoluteForm, ""},
	{"own-ports", "the product's own ports are published", ownPorts, ""},
	{"own-secrets", "the proxy's own secret reaches the app (GHSA-g936-7jqj-mwv8)", ownSecrets, ""},
	{"cookies-for-siblings", "an app sets, or clears, its siblings' cookies", cookiesForSiblings, ""},
	{"open-redirect", "open redirect after sign-in (Pomerium CVE-2021-29651)", openRedirect, ""},
	{"header-bombs", "cookie-stripe exhaustion, header bombs", nil, "agent/proxy:TestLongHeads"},
	{"loopback-from-the-web", "web pages reach loopback APIs (Zoom CVE-2019-13450, Tailscale CVE-2022-41924, Ollama CVE-2024-28224, MCP Go SDK CVE-2026-34742)", nil, "agent/localapi:TestGuard"},
	{"name-takeover", "any process takes over an approved name", nameTakeover, ""},
	{"told-of-the-capability", "a published app with SSRF registers and invites its attacker", nil, "agent/people:TestToldAndUndone"},
	{"squatted-port", "another user of the computer squats 8765 and collects the owner secret", nil, "agent/localapi:TestW7_Tiers"},
	{"lured-stranger", "an owner lures a signed-in stranger to learn who they are", luredStranger, ""},
	{"forwarded-invitation", "a forwarded invitation is a login to the invitee's account", nil, "control/web:TestInvitationSessionIsLimited"},
	{"sibling-forgery", "sibling apps forge requests (plivo-labs/glance PR 71, coder#19930)", nil, "agent/proxy:TestSiblingsCannotForgeRequests"},
	{"device-code-phishing", "device-code phishing", nil, "control:TestEnrolmentWantsAFreshSession"},
	{"acme-on-the-path", "whoever is between agent and relay answers the ACME probe", nil, "control/relay:TestChallengeNeverTravelsPlain"},
	{"request-smuggling", "CL/TE, bare LF, obs-fold, chunk extensions", nil, "agent/proxy:TestRequestSmuggling"},
	{"outlived-revocation", "WebSockets outlive revocation (Pomerium#1279, Home Assistant#56760)", nil, "agent/local:TestAccessEnds"},
	{"expired-fetch", "an expired session turns fetch() into a cross-origin redirect", nil, "agent/proxy:TestOnlyNavigationsAreRedirected"},
	{"reconnect-storms", "reconnect storms (Teleport#6889)", nil, "control/relay:TestStormIsPutOff"},
	{"consumed-by-scanners", "magic links consumed by scanners (supabase/auth#1214, emdash#3298)", nil, "control/web:TestScannersChangeNothing"},
	{"script-in-names", "XSS from app names or inviter text (zrok CVE-2026-40302)", scriptInNames, ""},
	{"script-in-mails", "links in inviter text", nil, "control/mail:TestPlainLabel"},
	{"stolen-data-directory", "a stolen data directory opens the owner tier", nil, "agent/cmd/porchlight:TestNothingSecretOnDisk"},
	{"secrets-in-logs", "tokens and links in logs", nil, "control/cmd/porchlight-control:TestWholeRunHoldsNoSecrets"},
	{"relay-reads-along", "the relay reads, or could obtain certificates", nil, "agent/local:TestARecordedHopShowsNoPlaintext"},
}

// TestSecurity attacks as products like this one were attacked. Each function
// says the weakness, the attack, and what is checked.
func TestSecurity(t *testing.T) {
	t.Parallel()
	s := startStreet(t)
	for _, w := range weaknesses {
		t.Run(w.name, func(t *testing.T) {
			if w.test == nil {
				keptElsewhere(t, w.at)
				return
			}
			w.test(t, s)
		})
	}
}

// keptElsewhere checks that the test it names is there.
func keptElsewhere(t *testing.T, at string) {
	t.Helper()
	dir, test, _ := strings.Cut(at, ":")
	files := programs.Got(filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*_test.go")))(t)
	for _, file := range files {
		source := programs.Got(os.ReadFile(file))(t)
		if strings.Contains(string(source), "\nfunc "+test+"(t *testing.T)") {
			t.Logf("see %s in %s", test, dir)
			return
		}
	}
	t.Fatalf("%s has no %s any more", dir, test)
}

// TestSecurityTable prints which test is for which weakness, with go test -v.
func TestSecurityTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	var table strings.Builder
	for _, w := range weaknesses {
		if names[w.name] || (w.test == nil) == (w.at == "") {
			t.Errorf("%s: one name and one test each", w.name)
		}
		names[w.name] = true
		test := "TestSecurity/" + w.name
		if w.at != "" {
			test += " → " + w.at
		}
		fmt.Fprintf(&table, "%-24s %s\n%-24s   %s\n", w.name, w.seen, "", test)
	}
	t.Log("\n" + table.String())
}
