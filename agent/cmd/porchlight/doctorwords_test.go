package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
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
	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
	"porchlight/test/golden"
	"porchlight/test/programs"
)

// TestDoctorWords keeps every sentence doctor can say, for reading them in one
// place: each says what is so, and what to type about it. Run with -update after
// a change. It changes the environment, so it runs beside no other test.
func TestDoctorWords(t *testing.T) {
	var said bytes.Buffer
	places := strings.NewReplacer()
	say := func(when string, f ...finding) {
		fmt.Fprintf(&said, "# %s\n%s\n", when, places.Replace(doctor.Lines(f)))
	}

	// Programs are there or are not as bin has them.
	dir, bin := t.TempDir(), t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", bin)
	const port = 3000
	places = strings.NewReplacer(dir, "DIR")

	say("the data directory is not there yet", doctor.Data(filepath.Join(dir, "none"))...)
	say("others may enter it", doctor.Data(chmod(t, dir, 0o755))[0])
	say("it is as it should be", doctor.Data(chmod(t, dir, 0o700))[0])

	local, connected := agentapi.Account{Local: true, URL: "https://maya.localhost:8443", Connected: true},
		agentapi.Account{Connected: true, Email: "maya@example.net", URL: "https://maya.porch.example"}
	since := time.Now()
	say("local mode", doctor.Connection(agentapi.OwnerState{Account: local}))
	say("connected", doctor.Connection(agentapi.OwnerState{Account: connected}))
	say("closed by the owner", doctor.Connection(agentapi.OwnerState{Account: connected, DarkSince: &since}))
	say("not connected", doctor.Connection(agentapi.OwnerState{}))

	own := agentapi.OwnDomain{Name: "notes.maya.net", App: "notes", State: agentapi.DomainWaiting, Records: []agentapi.DNSRecord{
		{Type: "TXT", Name: "_porchlight.notes.maya.net", Value: "BITS"}, {Type: "CNAME", Name: "notes.maya.net", Value: "notes.maya.porch.example"},
	}}
	say("an own domain waits", doctor.Domains([]agentapi.OwnDomain{own})...)
	own.State = agentapi.DomainGone
	say("its records are gone", doctor.Domains([]agentapi.OwnDomain{own})...)
	own.State = agentapi.DomainProven
	say("it is proven", doctor.Domains([]agentapi.OwnDomain{own})...)
	own.Words = words.Text{words.Of(`The DNS of %[1]s does not let %[2]s give certificates. Where the domain is registered, add: %[1]s CAA 0 issue "%[3]s"`, own.Name, "letsencrypt.org", "letsencrypt.org")}
	say("its DNS forbids certificates", doctor.Domains([]agentapi.OwnDomain{own})...)

	say("clocks agree", doctor.Clock(0))
	say("the clock is as far ahead as may be", doctor.Clock(doctor.SkewAllowed))
	say("the clock is as far behind as may be", doctor.Clock(-doctor.SkewAllowed))
	say("the clock is ahead", doctor.Clock(5*time.Minute))
	say("the clock is behind", doctor.Clock(-90*time.Second))

	say("neighbours and the sign-in page are one site", doctor.Cookies("https://maya.porch.example", "https://control.porch.example")[0])
	say("neighbours are one site", doctor.Cookies("https://maya.porch.example", "https://control.example")[0])
	if f := doctor.Cookies("https://maya.github.io", "https://control.github.io"); f != nil {
		t.Errorf("under a public suffix: %+v", f)
	}

	say("nothing to try names with", doctor.Names(t.Context(), "maya.localhost"))
	program(t, bin, "getent", "exit 2")
	say("names are not found", doctor.Names(t.Context(), "maya.localhost"))
	program(t, bin, "getent", "exit 0")
	say("names are found", doctor.Names(t.Context(), "maya.localhost"))

	say("no authority yet", doctor.Browsers(t.Context(), ownOf(dir)))
	root, der := keepAuthority(t, dir)
	say("certutil is missing", doctor.Browsers(t.Context(), ownOf(dir)))
	program(t, bin, "apt", "")
	say("certutil is missing on Debian", doctor.Browsers(t.Context(), ownOf(dir)))
	program(t, bin, "certutil", "exit 255")
	say("browsers do not trust the authority", doctor.Browsers(t.Context(), ownOf(dir)))
	program(t, bin, "certutil", "/bin/cat "+der)
	say("browsers trust it", doctor.Browsers(t.Context(), ownOf(dir)))
	programs.Must(t, os.WriteFile(root, []byte("nonsense"), 0o600))
	say("the authority's file is damaged", doctor.Browsers(t.Context(), ownOf(dir)))

	notes := agentapi.AppSummary{Name: "notes", Label: "Notes", LocalPort: port, Status: agentapi.StatusLive}
	answering, paused := agentapi.OwnerApp{AppSummary: notes}, agentapi.OwnerApp{AppSummary: notes}
	paused.Paused = true
	for _, h := range healths(port) {
		say("an app: "+string(h.Health), doctor.App(t.Context(), answering, does(h))...)
	}
	answers := does(agentapi.AppHealth{Health: agentapi.HealthAnswers, HealthDetail: "It answers on port 3000."})
	say("an app is paused", doctor.App(t.Context(), paused, answers)...)
	asks := answering
	asks.Status = agentapi.StatusPending
	say("an app waits", doctor.App(t.Context(), asks, answers)...)
	asks.ApprovedListener, asks.Listener = &agentapi.Listener{User: "maya"}, agentapi.Listener{User: "ben", Program: "python3"}
	say("an app's port has another user's program", doctor.App(t.Context(), asks, answers)...)
	troubled := answering
	troubled.Certificate = &agentapi.Certificate{Problem: "notes.maya.porch.example has no certificate: the authority does not answer."}
	say("an app has no certificate", doctor.App(t.Context(), troubled, answers)[1])
	say("our own reading of requests failed", append(doctor.HTTP(1), doctor.HTTP(3)...)...)
	crowded := time.Now()
	say("visitors had all they may have", doctor.Crowded(&crowded)...)
	say("another user asks", doctor.Users([]agentapi.LocalUser{{ID: "33", Name: "www-data", Standing: agentapi.UserAsks}, {ID: "34", Standing: agentapi.UserDenied}})...)
	programs.Must(t, os.WriteFile(filepath.Join(dir, "agent.db"), nil, 0o600))
	say("a mail was given up", doctor.Mails([]string{"ben@example.net"})...)
	say("a store is empty", doctor.Stores(dir)...)
	say("who may issue certificates", doctor.CAA("https://maya.porch.example", "https://acme-v02.api.letsencrypt.org/acme/acct/1234"))
	say("all apps have one certificate", doctor.Logs(true))
	say("each app has its own certificate", doctor.Logs(false))

	const at = "https://maya.porch.example"
	for _, c := range []struct {
		when string
		err  error
	}{
		{"no DNS record", &net.DNSError{Name: "maya.porch.example", IsNotFound: true}},
		{"no tunnel", &net.OpError{Op: "remote error", Err: errors.New(doctor.UnrecognizedName)}},
		{"an expired certificate", x509.CertificateInvalidError{Reason: x509.Expired}},
		{"a certificate nobody trusts", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		{"no answer", context.DeadlineExceeded},
		{"anything else", io.ErrUnexpectedEOF},
	} {
		say(c.when, doctor.Said("visit", agentapi.VerdictWrong, doctor.Unreached(at, c.err), doctor.VisitNext(c.err)), doctor.Said("control plane", agentapi.VerdictWrong, doctor.Unreached(at, c.err), doctor.ControlPlaneNext(at, c.err)))
	}
	for _, o := range []struct {
		when string
		err  error
		mode agentapi.Mode
	}{
		{"the keychain is locked", ownersecret.ErrLocked, agentapi.ModeDesktop},
		{"outside the desktop's session", ownersecret.ErrUnavailable, agentapi.ModeDesktop},
		{"others may read the secret", ownersecret.ErrExposed, agentapi.ModeHeadless},
		{"there is no secret", ownersecret.ErrNotFound, agentapi.ModeHeadless},
	} {
		say(o.when, doctor.Found("owner", agentapi.VerdictWrong, inWords(o.err), ownerNext(o.err, o.mode)))
	}

	golden.Check(t, filepath.Join("testdata", "doctor.golden"), said.String())
}

// does answers for an app's health.
func does(h agentapi.AppHealth) doctor.Asker {
	return func(context.Context, string) (agentapi.AppHealth, error) { return h, nil }
}

// healths are one of each state, in the agent's own words.
func healths(port int) []agentapi.AppHealth {
	at := time.Date(2026, 11, 22, 10, 30, 0, 0, time.Local)
	failed := &agentapi.AppError{At: at, Text: "It answered with two lengths."}
	h := func(state agentapi.Health, detail string, option map[string]any) agentapi.AppHealth {
		ailment := "ails"
		if state == agentapi.HealthUnknown || state == agentapi.HealthAnswers {
			ailment = ""
		}
		return agentapi.AppHealth{Health: state, Ailment: ailment, HealthDetail: strings.ReplaceAll(detail, "PORT", fmt.Sprint(port)), HealthOption: option, HealthAt: &at}
	}
	wrongly := h(agentapi.HealthWrong, "It answered with two lengths.", nil)
	wrongly.LastError = failed
	return []agentapi.AppHealth{
		{},
		h(agentapi.HealthAnswers, "It answers on port PORT.", nil),
		h(agentapi.HealthAnswers, "It answers, and does not know that its address begins with https://: the option to tell it its address helps.", map[string]any{"publicAddress": true}),
		h(agentapi.HealthNothing, "It does not answer on port PORT: nothing listens there.", nil),
		h(agentapi.HealthRefuses, "It refuses what is sent to notes.maya.example.net (status 403) and takes what is sent to localhost: the option to call it localhost helps.", map[string]any{"localhostHost": true}),
		h(agentapi.HealthHTTPS, "It speaks HTTPS on port PORT, and is asked in HTTP: the option to reach it over HTTPS helps.", map[string]any{"upstream": "https"}),
		h(agentapi.HealthH2C, "It speaks HTTP/2 without TLS on port PORT, and is asked in HTTP: the option to speak HTTP/2 to it helps.", map[string]any{"upstream": "h2c"}),
		h(agentapi.HealthSilent, "It takes connections on port PORT and does not answer a request within 2 seconds: it may be starting, or hang.", nil),
		wrongly,
	}
}

// program puts a shell script where commands are looked for.
func program(t *testing.T, bin, name, script string) {
	t.Helper()
	programs.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// keepAuthority writes a certificate where a data directory of local mode has
// its authority's, and once more as bytes.
func keepAuthority(t *testing.T, dir string) (root, der string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.StartTLS()
	srv.Close()
	raw := srv.Certificate().Raw
	root, der = local.RootCAPath(dir), filepath.Join(t.TempDir(), "der")
	programs.Must(t, os.MkdirAll(filepath.Dir(root), 0o700))
	for path, content := range map[string][]byte{root: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), der: raw} {
		programs.Must(t, os.WriteFile(path, content, 0o600))
	}
	return root, der
}

func chmod(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	programs.Must(t, os.Chmod(dir, mode))
	return dir
}
