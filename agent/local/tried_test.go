package local

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/test/programs"
)

// TestTriedAddress: a try goes out by name and relay and comes back in, the app asked for
// nothing; dark, it says so; the report of everything names no person and no address.
func TestTriedAddress(t *testing.T) {
	t.Parallel()
	h := startHouseWith(t, func(c *Config) {
		root := RootCAPath(c.Agent.DataDir)
		c.Agent.Authorities = func() (doctor.Authorities, error) {
			return doctor.Authorities{Root: root, Control: doctor.Roots(root)}, nil
		}
	})
	address := h.publish(t)
	h.joined(t, "bob@example.com", "Notes")
	tried, err := ask[agentapi.TriedAddress](t, h, "POST", "/owner/apps/notes/try")
	if err != nil || !tried.Works || tried.Text != "" || "https://"+tried.Host != address {
		t.Fatalf("%+v, %v", tried, err)
	}
	if _, err := ask[agentapi.TriedAddress](t, h, "POST", "/owner/apps/nothing/try"); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("an app there is not: %v", err)
	}
	all, err := ask[agentapi.Examination](t, h, "POST", "/owner/health")
	if err != nil || all.Address == nil || !all.Address.Works {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, check := range []string{"data", "disk", "connection", "control plane", "clock", "visit", "app notes"} {
		if !slices.ContainsFunc(all.Findings, func(f agentapi.Finding) bool { return f.Check == check }) {
			t.Errorf("nothing is said of %s: %+v", check, all.Findings)
		}
	}
	account := h.account()
	for _, secret := range []string{"@", account.Host, strings.Split(account.Host, ":")[0], h.dataDir} {
		if strings.Contains(all.Report, secret) {
			t.Errorf("the report tells %q:\n%s", secret, all.Report)
		}
	}
	if !strings.Contains(all.Report, "app notes") {
		t.Errorf("the report:\n%s", all.Report)
	}
	programs.Got(h.owner.GoDark(t.Context()))(t)
	// Not of the same app, which is told for a moment as it was.
	programs.Got(h.open.Publish(t.Context(), agentapi.PublishRequest{Name: "wiki", Label: "Wiki", LocalPort: h.port}))(t)
	programs.Got(h.owner.Approve(t.Context(), "wiki"))(t)
	if tried, err := ask[agentapi.TriedAddress](t, h, "POST", "/owner/apps/wiki/try"); err != nil || tried.Works || !strings.Contains(tried.Text, "closed everything") {
		t.Errorf("dark: %+v, %v", tried, err)
	}
}

// ask sends what the window sends as it is.
func ask[Answer any](t *testing.T, h *house, method, path string) (answer Answer, err error) {
	t.Helper()
	raw, err := h.owner.Call(t.Context(), method, path, nil)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	return answer, err
}
