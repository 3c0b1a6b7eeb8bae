package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/agent/store"
	"porchlight/agent/trust"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// doctor runs it and returns what it found by check; its exit code has to follow
// from that.
func (s shell) doctor(args ...string) map[string]finding {
	s.t.Helper()
	began := time.Now()
	code, out, errOut := s.run(append([]string{"doctor", "--json"}, args...)...)
	var found []finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		s.t.Fatalf("doctor printed %q, %s: %v", out, errOut, err)
	}
	by, want := map[string]finding{}, 0
	for _, f := range found {
		if by[f.Check].State != agentapi.VerdictWrong {
			by[f.Check] = f
		}
		if f.State == agentapi.VerdictWrong {
			want = commandline.ExitRefused
		}
	}
	if code != want {
		s.t.Errorf("exit %d, want %d: %s", code, want, out)
	}
	s.t.Logf("doctor took %v", time.Since(began).Round(time.Millisecond))
	return by
}

// finds runs doctor and wants one check to be of a state, to say so, and to name
// the next step.
func (s shell) finds(check string, state agentapi.Verdict, text, next string, args ...string) {
	s.t.Helper()
	all := s.doctor(args...)
	if f := all[check]; f.State != state || !strings.Contains(f.Text, text) || !strings.Contains(f.Next, next) {
		s.t.Errorf("%s: %+v\nwant %s, %q, next %q\nof %+v", check, f, state, text, next, all)
	}
}

// TestDoctorFindsTheDataAtFault plants what goes wrong with a data directory while
// no agent runs, and mends it by the next step.
func TestDoctorFindsTheDataAtFault(t *testing.T) {
	t.Parallel()
	s := shell{t, filepath.Join(t.TempDir(), "data")}
	programs.Must(t, os.Mkdir(s.dir, 0o700))
	path := filepath.Join(s.dir, store.FileName)
	programs.Must(t, os.WriteFile(path, nil, 0o600))
	s.finds("agent", agentapi.VerdictWrong, "not running", "porchlight agent --local", "--api", "127.0.0.1:1")
	s.finds("store", agentapi.VerdictWrong, "is empty", "rm "+path)
	programs.Must(t, os.Remove(path))
	if _, still := s.doctor()["store"]; still {
		t.Error("removed, and still found empty")
	}

	damaged := filepath.Join(s.dir, "agent.json")
	programs.Must(t, os.WriteFile(damaged, []byte("{"), 0o600))
	s.finds("agent", agentapi.VerdictWrong, damaged+" is damaged", "Quit Porchlight where it runs, and start it again")

	if os.Geteuid() != 0 {
		t.Skip("the rest needs root: it gives the directory to another user")
	}
	programs.Must(t, os.Chown(s.dir, 65534, -1))
	s.finds("data", agentapi.VerdictWrong, "belongs to nobody", "Run it as nobody")
}

// TestDoctorFindsAFullDisk plants one, where the system lets the test mount it.
func TestDoctorFindsAFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	if f := doctor.Disk(dir); f.State != agentapi.VerdictWrong || !strings.Contains(f.Text, "nearly full") || !strings.Contains(f.Next, "Make room") {
		t.Errorf("%+v", f)
	}
	if f := doctor.Disk(filepath.Join(dir, "none")); f.State != agentapi.VerdictNote {
		t.Errorf("a disk nobody knows: %+v", f)
	}
}

// TestDoctorFindsAnotherProgram: what has the address of the loopback API is told
// from an agent, whether it answers something else or nothing at all.
func TestDoctorFindsAnotherProgram(t *testing.T) {
	t.Parallel()
	s := shell{t, t.TempDir()}
	programs.Must(t, os.Chmod(s.dir, 0o700))
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	const next = "Quit that program, or start Porchlight beside it with another --api"
	s.finds("agent", agentapi.VerdictWrong, "does not answer like Porchlight", next, "--api", other.Listener.Addr().String())
	s.finds("agent", agentapi.VerdictWrong, "does not answer like Porchlight", next, "--api", silent(t))

	// An agent left word and is gone; another program came after it.
	word := agentapi.Running{API: silent(t), PID: os.Getppid(), Protocol: agentapi.Protocol, OwnerSocket: "/none"}
	programs.Must(t, agentapi.WriteRunning(s.dir, word))
	s.finds("agent", agentapi.VerdictWrong, "does not answer like Porchlight", next)
}

// silent is a listener that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

// TestDoctorFindsNoSecret: the file with the owner secret is gone, or others may
// read it; starting again makes another.
func TestDoctorFindsNoSecret(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	path := programs.Got(ownersecret.File(s.dir).Path())(t)
	programs.Must(t, os.Chmod(path, 0o644))
	s.finds("owner", agentapi.VerdictWrong, "chmod go=", "Close the file")
	programs.Must(t, os.Remove(path))
	s.finds("owner", agentapi.VerdictWrong, "The owner secret of", "start it again")
}

// TestDoctorFindsTheAppAtFault plants what goes wrong with apps, and everything
// being dark.
func TestDoctorFindsTheAppAtFault(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	publish := func(name, address string) {
		t.Helper()
		_, port, _ := net.SplitHostPort(address)
		s.ok("publish", name, "--label", "App "+name, "--port", port)
	}
	slow := silent(t)
	publish("slow", slow)
	s.finds("app slow", agentapi.VerdictNote, "waits for you", "porchlight approve slow")
	s.ok("approve", "slow")
	s.finds("app slow", agentapi.VerdictWrong, "does not answer a request", "start it again")

	both := httptest.NewUnstartedServer(http.NotFoundHandler())
	both.Config.Protocols = new(http.Protocols)
	both.Config.Protocols.SetUnencryptedHTTP2(true)
	both.Start()
	t.Cleanup(both.Close)
	publish("two", both.Listener.Addr().String())
	s.ok("approve", "two")
	s.ok("options", "two", "--h2c")
	s.finds("app two", agentapi.VerdictFine, "answers on port", "")

	s.ok("dark")
	s.finds("visit", agentapi.VerdictNote, "Nobody gets through", "porchlight dark off")
	s.finds("connection", agentapi.VerdictNote, "Everything is closed by you", "porchlight dark off")
	s.ok("dark", "off")
	s.finds("visit", agentapi.VerdictFine, "gets through", "")
}

// TestDoctorFindsTheControlPlaneAtFault: one that hangs, that nobody here trusts,
// and whose clock differs, each a server that is so.
func TestDoctorFindsTheControlPlaneAtFault(t *testing.T) {
	t.Parallel()
	ask := func(url string, roots *x509.CertPool) map[string]finding {
		by := map[string]finding{}
		for _, f := range doctor.ControlPlane(t.Context(), url, roots) {
			by[f.Check] = f
		}
		return by
	}
	if f := ask("https://"+silent(t), nil)["control plane"]; f.State != agentapi.VerdictWrong || !strings.Contains(f.Text, "did not answer within") || !strings.Contains(f.Next, "ask whoever runs") {
		t.Errorf("hanging: %+v", f)
	}
	late := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(70*time.Second).UTC().Format(http.TimeFormat))
	}))
	late.Config.ErrorLog = log.New(io.Discard, "", 0) // that its certificate was refused
	late.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	late.StartTLS()
	t.Cleanup(late.Close)
	if f := ask(late.URL, nil)["control plane"]; f.State != agentapi.VerdictWrong || !strings.Contains(f.Text, "not one this computer trusts") || !strings.Contains(f.Next, "porchlight connect "+late.URL+" --ca FILE") {
		t.Errorf("untrusted: %+v", f)
	}
	roots := x509.NewCertPool()
	roots.AddCert(late.Certificate())
	if f := ask(late.URL, roots)["clock"]; f.State != agentapi.VerdictWrong || !strings.Contains(f.Text, "behind the control plane's") || !strings.Contains(f.Next, "timedatectl") {
		t.Errorf("a clock that is 70 s off: %+v", f)
	}
	if f := ask("https://control.localhost:1", nil)["control plane"]; !strings.Contains(f.Next, "quit it, and start it again") {
		t.Errorf("of this computer: %+v", f)
	}
}

// TestDoctorEnds: with everything hanging doctor waits for the agent, then for the
// keychain, then for all the rest at once.
func TestDoctorEnds(t *testing.T) {
	t.Parallel()
	if most := 2*doctor.Within + proveWithin; most >= 15*time.Second {
		t.Errorf("doctor may take %v", most)
	}
}

// ownOf is the authority of a data directory, as doctor asks for it.
func ownOf(dir string) func() (*trust.Authority, error) {
	return func() (*trust.Authority, error) { return host.OwnAuthority(dir) }
}
