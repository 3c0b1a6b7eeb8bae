package main

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/local"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// TestDoctor: what works is fine, and each thing that is broken is found, said in
// a sentence, and makes the command end with 1.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	app := s.publishing("notes", "Notes", http.NotFoundHandler())
	healthy := s.doctor()
	for name, f := range healthy {
		if f.State == agentapi.VerdictWrong {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, name := range []string{"data", "agent", "owner", "connection", "control plane", "clock", "visit", "app notes"} {
		if healthy[name].State != agentapi.VerdictFine {
			t.Errorf("%s: %+v", name, healthy[name])
		}
	}
	for _, name := range []string{"names", "browsers"} { // depend on the machine
		if state := healthy[name].State; state != agentapi.VerdictFine && state != agentapi.VerdictNote {
			t.Errorf("%s: %+v", name, healthy[name])
		}
	}

	refused := func(want string) {
		t.Helper()
		code, out, errOut := s.run("doctor")
		if code != commandline.ExitRefused || !strings.Contains(out, want) || !strings.Contains(errOut, "wrong") {
			t.Errorf("exit %d, and not %q\nout: %s\nerr: %s", code, want, out, errOut)
		}
	}
	s.ok("pause", "notes")
	app.Close()
	s.finds("app notes", agentapi.VerdictNote, "", "porchlight resume notes")
	s.ok("resume", "notes")
	refused("Notes does not answer on port")
	s.ok("revoke", "notes")
	programs.Must(t, os.Chmod(s.dir, 0o755))
	refused("chmod 700 " + s.dir)
}

func TestDoctorWithoutAgent(t *testing.T) {
	t.Parallel()
	s := shell{t, t.TempDir()}
	programs.Must(t, os.Chmod(s.dir, 0o700))
	code, out, errOut := s.run("doctor")
	if code != commandline.ExitRefused || !strings.Contains(out, "Porchlight is not running here") || !strings.Contains(errOut, "one thing is wrong") {
		t.Errorf("exit %d\nout: %s\nerr: %s", code, out, errOut)
	}
}

// TestDoctorSeesNoVisitor: a relay that has no tunnel for the name, a name nobody
// knows and an authority nobody trusts are told apart.
func TestDoctorSeesNoVisitor(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	root := local.RootCAPath(s.dir)
	strange := httptest.NewUnstartedServer(http.NotFoundHandler())
	strange.Config.ErrorLog = log.New(io.Discard, "", 0) // that its certificate was refused
	strange.StartTLS()
	t.Cleanup(strange.Close)
	address := strings.Fields(s.ok("status"))[2]
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(address, "https://"))
	for url, want := range map[string]string{
		address:                            "gets through",
		"https://nobody.localhost:" + port: "knows no computer of this name",
		strange.URL:                        "not one this computer trusts",
		"https://127.0.0.1:1":              "cannot be reached",
	} {
		if f := doctor.Visit(t.Context(), agentapi.OwnerState{Account: agentapi.Account{URL: url}}, root); !strings.Contains(f.Text, want) || (f.State == agentapi.VerdictFine) != (url == address) {
			t.Errorf("%s: %+v", url, f)
		}
	}
	lost := &net.DNSError{Err: "no such host", Name: "porch.example", IsNotFound: true}
	if text := doctor.Unreached("https://porch.example", errors.Join(lost)); !strings.Contains(text.String(), "porch.example leads nowhere") {
		t.Error(text)
	}
}

// TestTrust: browsers' stores get this computer's authority, and lose it again.
// It changes the environment, so it runs beside no other test.
func TestTrust(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	none := shell{t, t.TempDir()}
	if code, _, errOut := none.run("trust"); code != commandline.ExitRefused || !strings.Contains(errOut, "no certificate authority yet") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	s := startAgent(t)
	browsers := func() finding { return doctor.Browsers(t.Context(), ownOf(s.dir)) }
	if f := browsers(); f.State != agentapi.VerdictNote || !strings.Contains(f.Next, "porchlight trust") {
		t.Errorf("before: %+v", f)
	}
	s.wants(0, "trust "+local.RootCAPath(s.dir), "trust")
	if f := browsers(); f.State != agentapi.VerdictFine {
		t.Errorf("after: %+v", f)
	}
	s.ok("trust", "--undo")
	if f := browsers(); f.State != agentapi.VerdictNote {
		t.Errorf("undone: %+v", f)
	}
}
