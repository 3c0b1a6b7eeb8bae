package connect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"porchlight/test/mailserver"
	"porchlight/test/programs"
)

// finding is what doctor prints of one check.
type finding struct{ Check, State, Text, Next string }

// doctor runs it, however much is wrong.
func (w *world) doctor() []finding {
	w.t.Helper()
	began := time.Now()
	_, out, errOut := w.run("doctor", "--json")
	var found []finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		w.t.Fatalf("doctor printed %q, %s: %v", out, errOut, err)
	}
	w.t.Logf("doctor took %v and says %+v", time.Since(began).Round(time.Millisecond), found)
	return found
}

// finds waits until doctor says something of a check, since a computer learns
// some of it only in time, and wants a next step there.
func (w *world) finds(check, state, text, next string) {
	w.t.Helper()
	programs.Eventually(w.t, fmt.Sprintf("doctor says of %s that it is %s, %q and %q", check, state, text, next), func() bool {
		return slices.ContainsFunc(w.doctor(), func(f finding) bool {
			return f.Check == check && f.State == state && strings.Contains(f.Text, text) && strings.Contains(f.Next, next)
		})
	})
}

// stopped holds a process as a debugger does, for as long as do takes.
func stopped(p *programs.Process, do func()) {
	p.Signal(syscall.SIGSTOP)
	defer p.Signal(syscall.SIGCONT)
	do()
}

// TestDoctorOfAConnectedComputer: neighbours whose pages can set cookies, an
// authority that gives no certificate, a control plane and an agent that hang.
func TestDoctorOfAConnectedComputer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile)
	w.connect("cellar", "--acme-directory", "https://127.0.0.1:1/directory")
	w.publish()
	w.porchlight("approve", "notes")
	w.finds("cookies", "note", "under porch.localhost", "Public Suffix List")
	w.finds("app notes", "wrong", "certificate", "CAA record")
	w.finds("app notes", "ok", "answers on port", "")
	stopped(w.control.Process, func() {
		w.finds("control plane", "wrong", "did not answer within", "ask whoever runs the control plane")
		w.finds("visit", "wrong", "did not answer within", "")
	})
	stopped(agent, func() {
		w.finds("agent", "wrong", "does not answer: it hangs", "kill -KILL")
	})
	w.finds("agent", "ok", "runs as process", "")
}

// TestDoctorTellsOfMailsGivenUp: an invitation that the mail server refuses is told
// to the owner who sent it, until the same person is invited anew.
func TestDoctorTellsOfMailsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile)
	w.connect("cellar")
	w.publish()
	w.porchlight("approve", "notes")
	w.control.Stop()
	mails := mailserver.New()
	mails.NoTLS, mails.OnRcpt = true, func(string) error { return &smtp.SMTPError{Code: 550, Message: "nobody of this name"} }
	programs.Must(t, mails.Start(false))
	t.Cleanup(mails.Stop)
	w.startControl(w.control.Listens[0], "--smtp", "smtp://"+mails.Address+"?starttls=never")
	w.finds("control plane", "ok", "answers", "")
	programs.Eventually(t, "an invitation is taken", func() bool {
		code, _, _ := w.run("people", "invite", "ben@example.net", "--app", "Notes")
		return code == 0
	})
	w.finds("mail", "wrong", "An invitation for ben@example.net was given up", "porchlight people invite ben@example.net")
	if out, err := w.control.Output("outbox", "--failed"); err != nil || !strings.Contains(out, "ben@example.net") {
		t.Errorf("outbox --failed: %s, %v", out, err)
	}
}
