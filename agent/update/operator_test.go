package update_test

import (
	"crypto/ed25519"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/update"
	"porchlight/control/controlapi"
)

// The operator of the server names an address where the owner named none; the owner's own
// counts more, and so does their wish for none.
func TestTheOperatorNamesAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := w.chosen
	theirs := own
	theirs.Address = w.server.URL + "/operators.json"
	w.set(func() { w.chosen, w.theirs = controlapi.UpdateNotice{}, &theirs })
	if got := w.ask(); got.Version != "1.3.0" || got.By != agentapi.ByOperator || got.Address != theirs.Address || (<-w.asked).URL.Path != "/operators.json" {
		t.Errorf("told %+v", got)
	}
	w.set(func() { w.chosen = own })
	if got := w.checker.Update(); got.By != agentapi.ByOwner || got.Version != "" {
		t.Errorf("with an address of the owner's, before it was asked: %+v", got)
	}
	if got := w.ask(); got.Version != "1.3.0" || (<-w.asked).URL.Path != "/update.json" {
		t.Errorf("told %+v", got)
	}
	w.set(func() { w.chosen = controlapi.UpdateNotice{Address: agentapi.NoAddress} })
	if got := w.checker.Update(); got != nil {
		t.Errorf("the owner wants none: %+v", got)
	}
	w.rests("it asked where the owner wants it nowhere")
	// A manifest that another key signed is told of as such, whoever named the address.
	w.set(func() {
		w.chosen = controlapi.UpdateNotice{}
		w.now = epoch.Add(25 * time.Hour)
		_, other, _ := ed25519.GenerateKey(nil)
		w.file, _ = update.Sign(update.Manifest{Version: "9.0.0", Date: w.now, Expires: w.now.AddDate(0, 1, 0)}, other)
	})
	if got := w.ask(); got.Version != "" || !strings.Contains(got.Problem, "not signed by the key") {
		t.Errorf("told %+v", got)
	}
}

// What an operator names is a stranger's to this computer: nothing but an https address
// with its key is asked.
func TestAnOperatorsAddressThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.chosen
	w.chosen = controlapi.UpdateNotice{}
	for what, change := range map[string]func(*controlapi.UpdateNotice){
		"in clear":     func(n *controlapi.UpdateNotice) { n.Address = "http://" + strings.TrimPrefix(n.Address, "https://") },
		"a file":       func(n *controlapi.UpdateNotice) { n.Address = "file:///etc/passwd" },
		"a user":       func(n *controlapi.UpdateNotice) { n.Address = "https://maya@porch.example/" },
		"the wish":     func(n *controlapi.UpdateNotice) { n.Address = agentapi.NoAddress },
		"empty":        func(n *controlapi.UpdateNotice) { n.Address = "" },
		"long":         func(n *controlapi.UpdateNotice) { n.Address += strings.Repeat("a", 600) },
		"no key":       func(n *controlapi.UpdateNotice) { n.Key = "" },
		"a short key":  func(n *controlapi.UpdateNotice) { n.Key = "AAAA" },
		"two in a row": func(n *controlapi.UpdateNotice) { n.Key += n.Key },
	} {
		bad := good
		change(&bad)
		w.set(func() { w.theirs = &bad })
		if got := w.checker.Update(); got == nil || got.Address != "" || !strings.Contains(got.Problem, "cannot be asked") {
			t.Errorf("%s: %+v", what, got)
		}
		w.rests(what + " was asked")
	}
}

// An operator may name another address with every word of theirs; it is asked no more than
// once an hour all the same, also after a start. The owner's own is asked at once.
func TestAnOperatorWhoNamesAnotherAddressAllTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := w.chosen
	theirs := own
	w.set(func() { w.chosen, w.theirs = controlapi.UpdateNotice{}, &theirs })
	w.ask()
	<-w.asked
	for _, path := range []string{"/a.json", "/b.json"} {
		w.set(func() { next := own; next.Address = w.server.URL + path; w.theirs = &next })
		w.rests(path + " was asked at once")
		w.open()
		w.rests(path + " was asked at the start")
	}
	w.set(func() { w.chosen = own; w.chosen.Address += "?mine" })
	w.ask()
	if r := <-w.asked; r.URL.RawQuery != "mine" {
		t.Errorf("asked %s", r.URL)
	}
	w.set(func() { w.chosen, w.now = controlapi.UpdateNotice{}, epoch.Add(61*time.Minute) })
	if got := w.ask(); got.Version != "1.3.0" || (<-w.asked).URL.Path != "/b.json" {
		t.Errorf("after an hour it tells %+v", got)
	}
}

// An operator's address leads nowhere but to the internet, also by a name or a redirect;
// the owner's own may be in their network.
func TestAnOperatorsAddressInTheOwnersNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := w.server.Listener.Addr().(*net.TCPAddr).Port
	named := w.chosen
	refused := func(what string) {
		t.Helper()
		if got := w.ask(); got.By != agentapi.ByOperator || !strings.Contains(got.Problem, "your own network") {
			t.Errorf("%s: told %+v", what, got)
		}
	}
	w.allowed = nil
	w.chosen = controlapi.UpdateNotice{}
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "10.0.0.1", "172.31.0.1", "192.168.1.1", "100.64.0.1",
		"169.254.169.254", "[fe80::1]", "[fd00::1]", "224.0.0.1", "255.255.255.255", "[64:ff9b::10.0.0.1]", "[2002:a00:1::]",
	} {
		theirs := named
		theirs.Address = fmt.Sprintf("https://%s:%d/update.json", host, port)
		w.set(func() { w.theirs, w.kept = &theirs, update.Kept{} })
		w.open()
		refused(host)
	}
	if len(w.asked) > 0 {
		t.Fatal("it was asked")
	}
	w.allowed = func(at netip.Addr) bool { return at == here }
	w.answer = func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, fmt.Sprintf("https://127.0.0.2:%d/elsewhere.json", port), http.StatusFound)
	}
	w.set(func() { w.theirs, w.kept = &named, update.Kept{} })
	w.open()
	refused("led on")
	<-w.asked
	w.set(func() { w.chosen, w.answer = named, nil; w.chosen.Address += "?mine" })
	w.allowed = nil
	w.open()
	if got := w.ask(); got.Version != "1.3.0" || got.By != agentapi.ByOwner {
		t.Errorf("the owner's own: told %+v", got)
	}
}
