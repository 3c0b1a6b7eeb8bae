package nodes

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// ours is what a node serves itself; all else is Prometheus's own.
var ours = regexp.MustCompile(`\b(?:porchlight|process|go)_[a-z0-9_]+\b`)

// rule is an alert; panel is one of the dashboard.
type rule struct {
	Alert       string
	Expr        string
	Labels      struct{ Severity string }
	Annotations struct{ Summary string }
}

type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

// TestMonitoringNamesWhatIsThere: an alert on a metric that no node serves never rings,
// and nobody notices.
func TestMonitoringNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	served := metrics(t)
	asked := map[string]string{} // expressions, by who asks
	var rules struct{ Groups []struct{ Rules []rule } }
	programs.Must(t, yaml.Unmarshal(monitoring(t, "rules.yaml"), &rules))
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			asked[r.Alert] = r.Expr
			if r.Alert == "" || len(r.Annotations.Summary) < 30 || r.Labels.Severity != "wake" && r.Labels.Severity != "day" {
				t.Errorf("%+v does not say whom to tell what", r)
			}
		}
	}
	var dashboard struct{ Panels []panel }
	programs.Must(t, json.Unmarshal(monitoring(t, "dashboard.json"), &dashboard))
	for _, p := range dashboard.Panels {
		for i, target := range p.Targets {
			asked[fmt.Sprint(p.Title, " ", i)] = target.Expr
		}
	}
	if len(asked) < 20 {
		t.Fatalf("only %d rules and panels were read", len(asked))
	}
	isPromQL(t, asked)
	for who, expr := range asked {
		named := ours.FindAllString(expr, -1)
		if len(named) == 0 && !strings.HasPrefix(expr, "up{") {
			t.Errorf("%s asks for nothing: %s", who, expr)
		}
		for _, name := range named {
			if !strings.Contains(served, "\n"+name+"{") && !strings.Contains(served, "\n"+name+" ") {
				t.Errorf("%s asks for %s, which a node does not serve", who, name)
			}
		}
	}
}

// isPromQL has Prometheus's own tool look at the rules as they are, and at every
// expression of the dashboard as a rule.
func isPromQL(t *testing.T, asked map[string]string) {
	t.Helper()
	type record struct{ Record, Expr string }
	var all struct{ Groups []map[string]any }
	var records []record
	for _, expr := range asked {
		records = append(records, record{fmt.Sprint("asked:", len(records)), strings.ReplaceAll(expr, "$__rate_interval", "1m")})
	}
	all.Groups = []map[string]any{{"name": "all", "rules": records}}
	raw := programs.Got(yaml.Marshal(all))(t)
	each := filepath.Join(t.TempDir(), "asked.yaml")
	programs.Must(t, os.WriteFile(each, raw, 0o600))
	for _, file := range []string{filepath.Join("..", "..", "build", "monitoring", "rules.yaml"), each} {
		if out, err := exec.Command("promtool", "check", "rules", file).CombinedOutput(); err != nil {
			t.Errorf("promtool, of the Debian package prometheus (build/setup.sh test): %v\n%s", err, out)
		}
	}
}

// TestCertificateAlerts: two weeks before a certificate ends somebody reads of it in the
// morning, two days before it wakes them, and one that is renewed in time rings nowhere.
func TestCertificateAlerts(t *testing.T) {
	t.Parallel()
	rules := programs.Got(filepath.Abs(filepath.Join("..", "..", "build", "monitoring", "rules.yaml")))(t)
	const day = 86400
	file := filepath.Join(t.TempDir(), "certificate.yaml")
	programs.Must(t, os.WriteFile(file, fmt.Appendf(nil, `rule_files: [%q]
evaluation_interval: 5m
tests:
  - interval: 5m
    input_series:
      - {series: 'porchlight_certificate_ends_timestamp_seconds{instance="renewed"}', values: '%d+0x100'}
      - {series: 'porchlight_certificate_ends_timestamp_seconds{instance="late"}', values: '%d+0x100'}
      - {series: 'porchlight_certificate_ends_timestamp_seconds{instance="over"}', values: '%d+0x100'}
    promql_expr_test:
      - eval_time: 2h
        expr: 'sum by (alertname, instance, severity) (ALERTS{alertname=~"PorchlightCertificate.*", alertstate="firing"})'
        exp_samples:
          - {value: 1, labels: '{alertname="PorchlightCertificateNotRenewed", instance="late", severity="day"}'}
          - {value: 1, labels: '{alertname="PorchlightCertificateNotRenewed", instance="over", severity="day"}'}
          - {value: 1, labels: '{alertname="PorchlightCertificateEnds", instance="over", severity="wake"}'}
`, rules, 15*day, 13*day, day), 0o600))
	if out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool, of the Debian package prometheus (build/setup.sh test): %v\n%s", err, out)
	}
}

func monitoring(t *testing.T, name string) []byte {
	t.Helper()
	return programs.Got(os.ReadFile(filepath.Join("..", "..", "build", "monitoring", name)))(t)
}

// metrics are those of a node that has everything: a database, a mail server, others
// beside it, and somebody who asked something.
func metrics(t *testing.T) string {
	t.Helper()
	n := start(t, "watched", pgtest.Database(t), t.TempDir(), "--smtp", "smtp://127.0.0.1:1", "--metrics", "127.0.0.1:0")
	transport := &http.Transport{TLSClientConfig: &tls.Config{ServerName: "control.porch.test", InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	get := func(host, url string) string {
		req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		req.Host = host
		res := programs.Got(transport.RoundTrip(req))(t)
		defer res.Body.Close()
		raw := programs.Got(io.ReadAll(res.Body))(t)
		return string(raw)
	}
	get("control.porch.test", "https://"+n.Listens[0]+"/auth/pubkey")
	return get("", n.Metrics+"/metrics")
}
