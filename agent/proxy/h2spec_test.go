package proxy_test

import (
	"crypto/tls"
	"encoding/xml"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/test/programs"
)

// h2spec finds no more to say about our way in than about a bare net/http server.
// H2SPEC names the program (build/soak.sh h2spec).
func TestH2Spec(t *testing.T) {
	program := os.Getenv("H2SPEC")
	if program == "" {
		t.Skip("H2SPEC is not set")
	}
	var r *rig
	r = newRig(t, func(c *proxy.Config) {
		c.Root = func() engine.Root { return engine.Root{Name: "maya", Host: "localhost:" + portOf(t, r.addr)} }
	})
	bare := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead { // as the proxy's own asset
			http.Error(w, "This address does not take such requests.", http.StatusMethodNotAllowed)
			return
		}
		w.Write(make([]byte, 4096))
	}))
	bare.EnableHTTP2 = true
	bare.TLS = &tls.Config{GetCertificate: certificate}
	bare.StartTLS()
	t.Cleanup(bare.Close)

	theirs, all := h2spec(t, program, portOf(t, bare.Listener.Addr().String()))
	ours, _ := h2spec(t, program, portOf(t, r.addr))
	only := maps.Clone(ours)
	maps.DeleteFunc(only, func(name, _ string) bool { _, both := theirs[name]; return both })
	// Some cases ask whether a frame is refused that may come when the answer is out
	// already, which a busy machine makes likely. What fails has to fail every time.
	for range 10 {
		if len(only) == 0 {
			break
		}
		again, _ := h2spec(t, program, portOf(t, r.addr), sections(only)...)
		maps.DeleteFunc(only, func(name, _ string) bool { _, still := again[name]; return !still })
	}
	t.Logf("%d cases; %d fail at net/http, %d at the proxy", all, len(theirs), len(ours))
	if all < 100 {
		t.Fatalf("h2spec ran only %d cases", all)
	}
	for name, why := range only {
		t.Errorf("%s fails at the proxy only: %s", name, why)
	}
}

// sections are the parts of h2spec that cases belong to.
func sections(cases map[string]string) (all []string) {
	for name := range cases {
		section, _, _ := strings.Cut(name, ": ")
		all = append(all, section)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	programs.Must(t, err)
	return port
}

// h2spec runs every case, or those of some sections, against a server and returns
// those that fail.
func h2spec(t *testing.T, program, port string, sections ...string) (failed map[string]string, all int) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.xml")
	args := append([]string{"-h", "localhost", "-p", port, "-t", "-k", "-P", "/.porchlight/style.css", "-j", report}, sections...)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	raw, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatalf("h2spec: %v\n%s", err, out)
	}
	var suites struct {
		Suites []struct {
			Cases []struct {
				Package string `xml:"package,attr"`
				Name    string `xml:"classname,attr"`
				Failure *struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
				Error *struct {
					Text string `xml:",chardata"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	programs.Must(t, xml.Unmarshal(raw, &suites))
	failed = map[string]string{}
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			all++
			switch {
			case c.Failure != nil:
				failed[c.Package+": "+c.Name] = c.Failure.Text
			case c.Error != nil:
				failed[c.Package+": "+c.Name] = c.Error.Text
			}
		}
	}
	return failed, all
}
