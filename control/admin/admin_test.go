package admin

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/control"
	"porchlight/control/archive"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var naming = control.Naming{Domain: "porch.test", AuthHost: "control.porch.test", PublicPort: 8443}

func newService(t *testing.T, store kv.Store) *control.Service {
	t.Helper()
	return programs.Got(control.New(control.Config{Store: store, Naming: naming, Mail: mail.NewOutbox(store, nil)}))(t)
}

// madeAdmin is an Admin, and what it was made of.
type madeAdmin struct {
	*Admin
	cfg Config
}

// newAdmin is an Admin above a real store.
func newAdmin(t *testing.T) *madeAdmin {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"), kv.Options{}))(t)
	t.Cleanup(func() { _ = store.Close() })
	service := newService(t, store)
	cfg := Config{
		Audit:    audit.New(audit.Config{Store: store}),
		Accounts: service.Accounts, Computers: service.Computers, Clients: service.Clients, Keys: service.Keys, Suspensions: service.Suspensions, Recovery: service.Recovery, Operators: service.Operators, Tokens: service.AdminTokens, Overview: service.Overview, Challenges: service.Challenges,
		Store: store, Naming: naming, Outbox: mail.NewOutbox(store, nil), RootPEM: []byte("pem"),
		Files: func() ([]archive.File, error) { return []archive.File{{Name: "root.pem", Data: []byte("pem")}}, nil },
	}
	return &madeAdmin{programs.Got(New(cfg))(t), cfg}
}

// serve runs a on dir until the test ends, or stop is called.
func serve(t *testing.T, a *madeAdmin, dir string) (stop func()) {
	t.Helper()
	s := programs.Got(a.Listen(dir))(t)
	return programs.Run(t, s.Run)
}

// Over the socket and within the process the verbs are the same.
func TestVerbs(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, a *madeAdmin, c *Client) {
		ctx := t.Context()
		added, err := c.AddAccount(ctx, AddAccount{Email: "Anna@Example.net"})
		if err != nil || !added.New || added.Email != "anna@example.net" || added.Computer != nil {
			t.Fatalf("AddAccount: %+v %v", added, err)
		}
		with, err := c.AddAccount(ctx, AddAccount{Email: "anna@example.net", Short: "anna"})
		if err != nil || with.New || with.ID != added.ID || with.Credential == "" || with.Computer.URL != "https://anna.porch.test:8443" {
			t.Fatalf("AddAccount with a computer: %+v %v", with, err)
		}
		again, err := c.AddAccount(ctx, AddAccount{Email: "anna@example.net", Short: "anna"})
		if err != nil || again.Credential != "" || again.Computer == nil {
			t.Errorf("AddAccount again: %+v %v", again, err)
		}
		if _, err := newService(t, a.cfg.Store).Agents.Authenticate(ctx, with.Credential); err != nil {
			t.Errorf("the credential given out first: %v", err)
		}
		for _, ask := range []AddAccount{{}, {Email: "x"}, {Email: "ben@example.net", Short: "anna"}, {Email: "ben@example.net", Short: "portal"}, {Email: "ben@example.net", Short: "control"}} {
			if _, err := c.AddAccount(ctx, ask); !isRefusal(err) {
				t.Errorf("%+v: %v", ask, err)
			}
		}
		accounts, err := c.Accounts(ctx)
		if err != nil || len(accounts) != 1 || accounts[0].ID != added.ID {
			t.Errorf("Accounts after refusals: %+v %v", accounts, err)
		}
		computers, err := c.Computers(ctx)
		if err != nil || len(computers) != 1 || computers[0].Owner != "anna@example.net" || computers[0].CreatedAt.IsZero() {
			t.Errorf("Computers: %+v %v", computers, err)
		}
		if list, err := c.Outbox(ctx); err != nil || list == nil || len(list) != 0 {
			t.Errorf("Outbox: %v %v", list, err)
		}
		if pem, err := c.RootPEM(ctx); err != nil || string(pem) != "pem" {
			t.Errorf("RootPEM: %q %v", pem, err)
		}
		for rows, files := range map[bool]int{false: 1, true: 0} {
			var b bytes.Buffer
			programs.Must(t, c.Backup(ctx, &b, rows))
			if err := archive.Check(bytes.NewReader(b.Bytes())); err != nil {
				t.Error(err)
			}
			if r, err := archive.NewReader(&b); err != nil || len(r.Files) != files {
				t.Errorf("Backup: %+v %v", r, err)
			}
		}
		// A backup that cannot be finished is an error, not a short file.
		programs.Must(t, a.cfg.Store.Close())
		if err := c.Backup(ctx, &bytes.Buffer{}, false); err == nil {
			t.Error("a backup of a closed store worked")
		}
		_, err = c.Accounts(ctx)
		if failed, ok := errors.AsType[*controlapi.Error](err); !ok || failed.HTTPStatus != http.StatusInternalServerError {
			t.Errorf("the accounts of a closed store: %v", err)
		}
	})
}

// What is suspended by the command line says so, is listed, and is resumed by the same name.
// An account that mail does not sign in is recovered, which its person is told of; not where
// nobody delivers that mail.
func TestRecoverVerb(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, a *madeAdmin, c *Client) {
		ctx := t.Context()
		if _, err := c.RecoverAccount(ctx, "anna@example.net"); !control.IsRefusal(err, controlapi.CodeNotFound) {
			t.Errorf("nobody: %v", err)
		}
		account := programs.Got(a.cfg.Accounts.Ensure(ctx, "anna@example.net"))(t)
		if _, err := c.RecoverAccount(ctx, "anna@example.net"); !control.IsRefusal(err, controlapi.CodeInvalid) || !strings.Contains(err.Error(), "asks for a link") {
			t.Errorf("by mail: %v", err)
		}
		account.MailOff = true
		programs.Must(t, a.cfg.Store.Update(ctx, func(tx kv.Tx) error { return kv.PutJSON(tx, "account/"+account.ID, account, 0) }))
		began, err := c.RecoverAccount(ctx, "Anna@Example.net")
		if left := time.Until(began.Until); err != nil || began.Email != "anna@example.net" || left > control.RecoverIn || left < control.RecoverIn-time.Hour {
			t.Errorf("%+v, %v", began, err)
		}
		if mails := programs.Got(a.cfg.Outbox.List(ctx, 1))(t); mails[0].To != "anna@example.net" || len(mails[0].Links) != 1 {
			t.Errorf("mailed: %+v", mails)
		}
		a.Admin.cfg.Recovery = nil
		if _, err := c.RecoverAccount(ctx, "anna@example.net"); err == nil || !strings.Contains(err.Error(), "Start the control plane first") {
			t.Errorf("without mail: %v", err)
		}
	})
}

func TestSuspendVerbs(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, _ *madeAdmin, c *Client) {
		ctx := t.Context()
		added := programs.Got(c.AddAccount(ctx, AddAccount{Email: "anna@example.net", Short: "anna"}))(t)
		done, err := c.Suspend(ctx, Suspend{Kind: control.SuspendComputer, ID: "anna", Reason: "Complaint 2211"})
		if err != nil || done.ID != added.Computer.ID || done.Name != "anna" || done.By != control.ByCommandLine || done.At.IsZero() {
			t.Errorf("Suspend: %+v %v", done, err)
		}
		if list := programs.Got(c.Suspensions(ctx))(t); len(list) != 1 || list[0] != done {
			t.Errorf("Suspensions: %+v", list)
		}
		if _, err := c.Suspend(ctx, Suspend{Kind: control.SuspendAccount, ID: "anna@example.net"}); !isRefusal(err) {
			t.Errorf("without a reason: %v", err)
		}
		if back := programs.Got(c.Resume(ctx, Suspend{Kind: control.SuspendComputer, ID: "anna", Reason: "a mistake"}))(t); back.ID != done.ID || back.Reason != "a mistake" {
			t.Errorf("Resume: %+v", back)
		}
		if list := programs.Got(c.Suspensions(ctx))(t); list == nil || len(list) != 0 {
			t.Errorf("Suspensions after Resume: %+v", list)
		}
	})
}

func TestOperatorVerbs(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, _ *madeAdmin, c *Client) {
		ctx := t.Context()
		olga := programs.Got(c.AddOperator(ctx, "olga@porch.example"))(t)
		if list := programs.Got(c.Operators(ctx))(t); olga.Email != "olga@porch.example" || len(list) != 1 || list[0] != olga {
			t.Errorf("Operators: %+v, added %+v", list, olga)
		}
		if gone := programs.Got(c.RemoveOperator(ctx, "olga@porch.example"))(t); gone != olga {
			t.Errorf("RemoveOperator: %+v", gone)
		}
		if _, err := c.RemoveOperator(ctx, "olga@porch.example"); !isRefusal(err) {
			t.Errorf("RemoveOperator again: %v", err)
		}
	})
}

// Each act is kept, refused or not, with no address; looking is not, but at what gives access.
func TestActsAreKept(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, _ *madeAdmin, c *Client) {
		ctx := t.Context()
		programs.Got(c.AddAccount(ctx, AddAccount{Email: "anna@example.net", Short: "anna"}))(t)
		programs.Must(t, c.DisconnectComputer(ctx, "anna"))
		if err := c.RemoveAccount(ctx, "nobody@example.net"); !isRefusal(err) {
			t.Error(err)
		}
		programs.Got(c.Accounts(ctx))(t)
		programs.Got(c.Outbox(ctx))(t)
		programs.Must(t, c.Backup(ctx, &bytes.Buffer{}, true))
		var acts []string
		programs.Must(t, c.Audit(ctx, func(r audit.Row) error { acts = append(acts, r.Kind+" "+r.By+" "+r.What+" "+r.On); return nil }))
		want := []string{
			"operator command-line POST /accounts ", "operator command-line POST /computers/{name}/disconnect anna",
			"operator command-line DELETE /accounts/{email}, refused ", "operator command-line GET /outbox ", "operator command-line GET /backup ",
		}
		if !slices.Equal(acts, want) {
			t.Errorf("kept are %q", acts)
		}
		if report := programs.Got(c.VerifyAudit(ctx, nil))(t); len(report.Problems) > 0 || report.Chains[0].Rows != len(want) {
			t.Errorf("%+v", report)
		}
	})
}

func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code != controlapi.CodeInternal && refusal.Message != ""
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	c := a.Direct()
	defer c.Close()
	for body, want := range map[string]int{
		"": 400, "{": 400, "[]": 400, `{"email":1}`: 400, `{"email":"a@b.example","admin":true}`: 400,
		`{"email":"a@b.example"} {}`: 400, `{"email":"` + strings.Repeat("x", bodyLimit) + `"}`: 400,
	} {
		resp := programs.Got(c.http.Post("http://admin/accounts", "application/json", strings.NewReader(body)))(t)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%.40q: %d, want %d", body, resp.StatusCode, want)
		}
	}
	for path, want := range map[string]int{"/": 404, "/nowhere/x": 404} {
		resp := programs.Got(c.http.Get("http://admin" + path))(t)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	if err := c.do(t.Context(), http.MethodDelete, "/accounts", nil, nil); err == nil {
		t.Error("DELETE /accounts worked")
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	short := filepath.Join(t.TempDir(), "d")
	long := filepath.Join(t.TempDir(), strings.Repeat("d", maxSocketPath))
	for _, dir := range []string{short, long} {
		if _, err := Dial(dir); !errors.Is(err, ErrNotRunning) {
			t.Errorf("Dial where nobody ever was: %v", err)
		}
		stop := serve(t, a, dir)
		w := programs.Got(readWord(dir))(t)
		if in := filepath.Dir(w.Socket) == dir; in != (dir == short) {
			t.Errorf("the socket is %s", w.Socket)
		}
		for path, want := range map[string]os.FileMode{
			dir: 0o700, filepath.Dir(w.Socket): 0o700, w.Socket: 0o600, filepath.Join(dir, wordName): 0o600,
		} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v %v", path, info, err)
			}
		}
		c := programs.Got(Dial(dir))(t)
		if _, err := c.Accounts(t.Context()); err != nil {
			t.Error(err)
		}
		c.Close()
		if _, err := a.Listen(dir); err == nil || !strings.Contains(err.Error(), "another control plane") {
			t.Errorf("a second one: %v", err)
		}
		stop()
		if _, err := os.Stat(w.Socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", w.Socket, err)
		}
		if _, err := Dial(dir); !errors.Is(err, ErrNotRunning) {
			t.Errorf("Dial afterwards: %v", err)
		}
		if n, ok, err := ReadNaming(dir); err != nil || !ok || n != a.cfg.Naming {
			t.Errorf("ReadNaming: %+v %t %v", n, ok, err)
		}
	}
}

// What a killed process leaves is replaced; a damaged word is said to be.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	dir := t.TempDir()
	path := filepath.Join(dir, socketName)
	l := programs.Got(net.Listen("unix", path))(t)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	programs.Must(t, writeWord(dir, word{Socket: path, PID: 1, Naming: a.cfg.Naming}))
	if _, err := Dial(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial of a leftover: %v", err)
	}
	serve(t, a, dir)()

	// A socket elsewhere, in a directory anybody could have made.
	open := t.TempDir()
	programs.Must(t, os.Chmod(open, 0o777))
	l = programs.Got(net.Listen("unix", filepath.Join(open, socketName)))(t)
	defer l.Close()
	programs.Must(t, writeWord(dir, word{Socket: filepath.Join(open, socketName)}))
	if _, err := Dial(dir); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "not to be trusted") {
		t.Errorf("Dial of a socket in an open directory: %v", err)
	}

	programs.Must(t, os.WriteFile(filepath.Join(dir, wordName), []byte("{"), 0o600))
	if _, err := Dial(dir); err == nil || errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial with a damaged word: %v", err)
	}
}

// The operator can end what an owner could end, and a whole account.
func TestRemoving(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, a *madeAdmin, c *Client) {
		ctx := t.Context()
		add := func(email, short string) Added {
			t.Helper()
			return programs.Got(c.AddAccount(ctx, AddAccount{Email: email, Short: short}))(t)
		}
		works := func(credential string) bool {
			t.Helper()
			_, err := newService(t, a.cfg.Store).Agents.Authenticate(ctx, credential)
			if err != nil && !control.IsRefusal(err, controlapi.CodeUnauthorized) {
				t.Fatal(err)
			}
			return err == nil
		}
		names := func() (out []string) {
			t.Helper()
			list := programs.Got(c.Computers(ctx))(t)
			for _, computer := range list {
				out = append(out, computer.Name)
			}
			return out
		}
		laptop, server, other := add("anna@example.net", "laptop"), add("anna@example.net", "server"), add("ben@example.net", "other")
		programs.Must(t, c.DisconnectComputer(ctx, "laptop"))
		if works(laptop.Credential) || !works(server.Credential) || len(names()) != 3 {
			t.Errorf("after disconnecting: %t %t %v", works(laptop.Credential), works(server.Credential), names())
		}
		programs.Must(t, c.RemoveComputer(ctx, "server"))
		if works(server.Credential) || len(names()) != 2 {
			t.Errorf("after removing: %t %v", works(server.Credential), names())
		}
		for _, name := range []string{"server", "none", "../accounts", ""} {
			if err := c.RemoveComputer(ctx, name); err == nil {
				t.Errorf("removing %q worked", name)
			}
		}
		programs.Must(t, c.RemoveAccount(ctx, "Anna@Example.net"))
		if got := names(); len(got) != 1 || got[0] != "other" || !works(other.Credential) {
			t.Errorf("after removing an account: %v", got)
		}
		if list, err := c.Accounts(ctx); err != nil || len(list) != 1 {
			t.Errorf("accounts: %+v %v", list, err)
		}
		for _, email := range []string{"anna@example.net", "nobody", "a/b@example.net"} {
			if err := c.RemoveAccount(ctx, email); !isRefusal(err) {
				t.Errorf("removing %s: %v", email, err)
			}
		}
	})
}
