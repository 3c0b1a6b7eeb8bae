package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// adminRig is a server with something to see: computers that carried something, mails that did
// not arrive, and an operator who is in.
func adminRig(t *testing.T) (r *rig, olga *browser) {
	t.Helper()
	clock := &movedClock{}
	clock.move(-89 * 24 * time.Hour)
	r = newRig(t, clockOf(clock), func(c *control.Config) {
		c.Audit = audit.New(audit.Config{Store: c.Store})
		c.AbuseContact = "abuse@porch.example"
		c.Nodes = func(context.Context) ([]control.Node, error) {
			return []control.Node{{Name: "fra-1", Version: "0.1.0", Address: "fra-1.porch.example:443", This: true, Computers: 402, Visits: 118}, {Name: "nyc-1", Version: "0.1.0", Address: "nyc-1.porch.example:443", Draining: true}}, nil
		}
		c.CertificateOf = func(context.Context, string) *control.Certificate {
			return &control.Certificate{Issuer: "A test’s", Ends: time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC), Problem: "it is nobody’s"}
		}
		c.Limits = func() []control.Limit {
			return []control.Limit{{Name: "visitors", Value: 16384}, {Name: "admissions", Value: 500, Reached: 3}, {Name: "open-files"}}
		}
	})
	programs.Must(t, r.svc.Overview.IndexAll(t.Context()))
	for i := range 90 {
		r.svc.Usage.Count(r.owner.Computer.ID, int64(i)*31e6, int64(i%17)*2e9+int64(i)*1e8)
		r.svc.Usage.Count(r.owner.Computer.ID, 1e6, 0)
		if i < 89 {
			clock.move(24 * time.Hour)
		}
	}
	now := clock.now()
	programs.Must(t, r.store.Update(t.Context(), func(tx kv.Tx) error {
		for i, to := range []string{"lena@gmx.example", "tomas@gmx.example", "a.rather.long.address.indeed@department.university.example.net"} {
			at := now.Add(-time.Duration(i) * time.Hour).UTC()
			row := map[string]any{"to": to, "subject": "Secret Diary is shared", "at": at, "failedAt": at, "reason": []string{"refused", "refused", "expired"}[i], "code": []int{550, 550, 0}[i], "tries": i + 1}
			if err := kv.PutJSON(tx, fmt.Sprintf("mail-failed/%020d-%d", 1<<62-at.UnixNano(), i), row, time.Hour); err != nil {
				return err
			}
		}
		return nil
	}))
	r.member("a.rather.long.address.indeed@department.university.example.net", "app1")
	olga, _ = r.operates("olga@porch.example")
	return r, olga
}

// look opens a page of /admin, and says nothing of apps and visitors whatever it is.
func (b *browser) look(path string, has ...string) answer {
	b.t.Helper()
	a := b.get(path).want(b.t, http.StatusOK)
	for _, want := range has {
		if !strings.Contains(unescaped(a.body), want) {
			b.t.Errorf("%s lacks %q: %s", path, want, a.body)
		}
	}
	if strings.Contains(a.body, "Secret Diary") || strings.Contains(a.body, "app1") {
		b.t.Errorf("%s names an app: %s", path, a.body)
	}
	if dir := os.Getenv("PORCHLIGHT_SHOTS"); dir != "" {
		name := strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(path, "-"), "-") + ".html"
		body := strings.NewReplacer(stylePath, "style.css", adminStylePath, "admin.css", timesPath, "times.js").Replace(a.body)
		for file, data := range map[string][]byte{name: []byte(body), "style.css": styleSheet, "admin.css": adminStyle} {
			programs.Must(b.t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
		}
	}
	return a
}

// A computer that is on says so, with the certificate that it shows.
func TestAdminComputerIsOn(t *testing.T) {
	t.Parallel()
	r, b := adminRig(t)
	r.first(tells(t, r.svc, r.owner.Credential))
	b.look("/admin/computers/"+r.owner.Computer.ID, `<span class="dot on"></span>On`, "A test’s, until 1 March 2027", "it is nobody’s")
}

// What an operator sees: how much and who, on pages that lead to one another.
func TestAdminPages(t *testing.T) {
	t.Parallel()
	r, b := adminRig(t)
	long := "a.rather.long.address.indeed@department.university.example.net"
	lena := programs.Got(r.svc.Accounts.Ensure(t.Context(), "lena@example.com"))(t)
	r.stop() // which writes what was carried
	b.look("/admin", "The limit admissions was reached", "2 mails to gmx.example did not arrive", "Carried today", "2 yesterday", "fra-1", "<rect ")
	b.look("/admin/accounts", "lena@example.com", "maya@example.com", long, "/admin/accounts/"+lena.ID)
	if a := b.look("/admin/accounts?q=MAY", "maya@example.com"); strings.Contains(a.body, "lena@") {
		t.Error("the search finds others")
	}
	b.look("/admin/accounts?q=%40department", long)
	b.look("/admin/accounts?q=nobody", "No account begins with that.")
	maya := programs.Got(r.svc.Accounts.ByEmail(t.Context(), "maya@example.com"))(t)
	b.look("/admin/accounts/"+maya.ID, "Account since", "maya.localhost:8443", "Suspend…")
	b.look("/admin/computers", "maya.localhost:8443", "maya@example.com")
	b.look("/admin/computers/"+r.owner.Computer.ID, "in 90 days", "Each day", "<rect ")
	b.look("/admin/nodes", "fra-1.porch.example:443", "Draining", "abuse@porch.example", "16,384", "3 times")
	b.look("/admin/mails", "lena@gmx.example", "Refused by the mail server", "code 550", "Given up for its age")
	b.look("/admin/mails?kind=waiting", "No mail waits.")
	b.look("/admin/mails?q=tomas", "tomas@gmx.example")
	b.look("/admin/find?q=maya", "maya.localhost:8443", "maya@example.com")
	b.look("/admin/find?q="+maya.ID[:20], "maya@example.com")
	b.look("/admin/find?q=example.com", "maya@example.com", "lena@example.com")
	b.look("/admin/find?q=", "Type how it begins.")
	b.look("/admin/clients", "No client begins with that.")
	b.look("/admin/audit", "Opened /admin", "Looked", "olga@porch.example", "maya@example.com")
	for path, status := range map[string]int{
		"/admin/accounts/nobody": 404, "/admin/computers/nobody": 404, "/admin/apps": 404, "/admin/accounts?q=%00": 400, "/admin/suspend?kind=app&id=x": 400,
	} {
		b.get(path).want(t, status)
	}
}

// Computers whose certificates are not renewed are on the first page, and listed by when they
// end, page by page.
func TestAdminCertificates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, _ := r.operates("olga@porch.example")
	b.look("/admin", "Nothing needs a look.")
	b.look("/admin/computers?kind=certificates", "Every certificate is renewed in time.")
	ends := func(name string, at time.Time) {
		e := programs.Got(r.svc.Computers.Ensure(t.Context(), name+"@example.net", name))(t)
		programs.Must(t, r.svc.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{CertificateEnds: at}))
	}
	now := time.Now().UTC().Truncate(time.Second)
	ends("home", now.Add(48*time.Hour))
	b.look("/admin", "The certificate of 1 computer is not renewed", "The first ends on", "/admin/computers?kind=certificates")
	ends("attic", now.Add(24*time.Hour))
	page := b.look("/admin/computers?kind=certificates", "home.localhost:8443", "home@example.net", now.Add(48*time.Hour).Format("15:04 UTC"), "Never connected").body
	if strings.Index(page, "attic.") > strings.Index(page, "home.") || strings.Contains(page, "maya.") {
		t.Errorf("not the soonest first: %s", page)
	}
	for i := range 60 {
		ends(fmt.Sprintf("c%d", i), now.Add(time.Duration(i)*time.Hour))
	}
	more := nextPage.FindStringSubmatch(b.look("/admin/computers?kind=certificates").body)
	if len(more) != 2 {
		t.Fatal("62 computers are on one page")
	}
	last := b.look(unescaped(more[1]), "c59.localhost:8443").body
	if strings.Contains(last, "attic.") || nextPage.MatchString(last) {
		t.Errorf("the last page: %s", last)
	}
	b.look("/admin", "The certificates of 62 computers are not renewed")
}

var nextPage = regexp.MustCompile(`href="([^"]+after=[^"]+)"`)

// A list goes on by key to its end, and so does what was searched for.
func TestAdminGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, _ := r.operates("olga@porch.example")
	programs.Must(t, r.svc.Overview.IndexAll(t.Context()))
	for i := range 120 {
		programs.Got(r.svc.Accounts.Ensure(t.Context(), fmt.Sprintf("guest%03d@porch.example", i)))(t)
	}
	seen := map[string]bool{}
	for path, pages := "/admin/accounts?q=guest", 0; path != ""; pages++ {
		if pages > 3 {
			t.Fatal("it never ends")
		}
		page := b.get(path).want(t, http.StatusOK).body
		for _, found := range regexp.MustCompile(`guest\d{3}@`).FindAllString(page, -1) {
			seen[found] = true
		}
		if path = ""; nextPage.MatchString(page) {
			path = unescaped(nextPage.FindStringSubmatch(page)[1])
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d of 120 were seen", len(seen))
	}
}

// Suspending says what it does, needs a reason, and is kept by who did it; resuming brings it
// back. An address and a domain are named first.
func TestAdminSuspends(t *testing.T) {
	t.Parallel()
	r, b := adminRig(t)
	form := b.adminForm()
	maya := programs.Got(r.svc.Accounts.ByEmail(t.Context(), "maya@example.com"))(t)
	olga := programs.Got(r.svc.Accounts.ByEmail(t.Context(), "olga@porch.example"))(t)
	client, _, err := r.svc.Clients.Add(t.Context(), "Pocket Notes", []string{"https://pocket.example/cb"})
	programs.Must(t, err)
	b.look("/admin/suspend", "What is to be suspended?")
	b.look("/admin/suspend?kind=domain&id=spam.example", "Suspend spam.example?", "or of one below it")
	b.look("/admin/suspend?kind=domain&id=example.com", "1 account is there.", "1 computer goes off the net")
	b.look("/admin/suspend?kind=address&id=eve@spam.example", "Suspend eve@spam.example?")
	b.look("/admin/suspend?kind=computer&id=maya", "Suspend maya.localhost:8443?", "1 person is cut off meanwhile.")
	b.look("/admin/suspend?kind=client&id="+client.ID, "Suspend Pocket Notes?")
	b.look("/admin/suspend?kind=account&id="+olga.ID, "This is your own account")
	b.look("/admin/suspend?kind=account&id="+maya.ID, "Suspend maya@example.com?", "1 computer goes off the net", "1 person is cut off meanwhile.", "Ended by the server’s operator, ask abuse@porch.example.")
	b.get("/admin/suspend?kind=account&id=nobody@example.com").want(t, http.StatusBadRequest)
	if a := b.post("/admin/suspend", "form", form, "kind", "account", "id", maya.ID, "reason", " ").want(t, http.StatusBadRequest); !strings.Contains(a.body, "Suspend maya@example.com?") {
		t.Error(a.body)
	}
	if to := b.post("/admin/suspend", "form", form, "kind", "account", "id", maya.ID, "reason", "Complaint 2211").to(t); to != "/admin/accounts/"+maya.ID {
		t.Errorf("led to %s", to)
	}
	b.look("/admin/accounts/"+maya.ID, "Suspended since", "Complaint 2211", "Resume…")
	b.look("/admin/suspensions", "maya@example.com", "Complaint 2211", "olga@porch.example")
	b.look("/admin/accounts", "Suspended since")
	rows := programs.Got(r.svc.Suspensions.List(t.Context()))(t)
	if len(rows) != 1 || rows[0].By != olga.ID || rows[0].Reason != "Complaint 2211" {
		t.Errorf("suspended: %+v", rows)
	}
	b.look("/admin/resume?kind=account&id="+maya.ID, "Resume maya@example.com?")
	b.post("/admin/resume", "form", form, "kind", "account", "id", maya.ID, "reason", "").to(t)
	if rows := programs.Got(r.svc.Suspensions.List(t.Context()))(t); len(rows) != 0 {
		t.Errorf("still suspended: %+v", rows)
	}
	b.post("/admin/suspend", "form", form, "kind", "domain", "id", "@spam.example", "reason", "Spam").to(t)
	b.look("/admin/suspensions", "spam.example", "Domain")
	b.look("/admin/suspensions?q=%40SPAM", "spam.example")
	b.look("/admin/suspensions?q=example", "Nothing begins with that.")
	b.look("/admin/audit", "Suspended", "Complaint 2211", "Resumed")
	var by []string
	programs.Must(t, audit.List(t.Context(), r.store, func(row audit.Row) error {
		if row.Kind == "suspended" || row.Kind == "resumed" {
			by = append(by, row.By)
		}
		return nil
	}))
	if len(by) != 3 || by[0] != olga.ID || by[1] != olga.ID || by[2] != olga.ID {
		t.Errorf("done by %v", by)
	}
}

// The audit log is searched by what happened and of whom, and taken along as JSON lines; the page
// says whether it is whole, as it was last verified.
func TestAdminAudit(t *testing.T) {
	t.Parallel()
	r, b := adminRig(t)
	maya := programs.Got(r.svc.Accounts.ByEmail(t.Context(), "maya@example.com"))(t)
	b.look("/admin/accounts/" + maya.ID)
	form := b.adminForm()
	b.look("/admin/audit", "Not verified since this node began.", "Its end is told nowhere else")
	if a := b.look("/admin/audit?kind=operator-looked&q=maya%40example.com", "Looked", "maya@example.com"); strings.Count(a.body, "<tr>") != 2 || !strings.Contains(a.body, `<option value="operator-looked" selected>`) {
		t.Errorf("it shows %s", a.body)
	}
	b.look("/admin/audit?kind=passkey-copied", "Nothing begins with that.")
	b.look("/admin/audit?q=nobody%40example.com", "Nothing begins with that.")
	export := b.get("/admin/audit/export?kind=operator-looked&q="+maya.ID).want(t, http.StatusOK)
	if lines := strings.Split(strings.TrimSpace(export.body), "\n"); len(lines) != 1 || export.Header.Get("Content-Type") != "application/jsonl" ||
		!strings.Contains(lines[0], `"kind":"operator-looked"`) || !strings.Contains(export.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("exported %v %s", export.Header, export.body)
	}
	if a := b.get("/admin/audit/export?kind=none").want(t, http.StatusOK); a.body != "" {
		t.Errorf("exported %s", a.body)
	}
	b.post("/admin/audit/verify", "form", form).to(t)
	b.look("/admin/audit", "each follows the one before.", "audit export")
	programs.Must(t, r.store.Update(t.Context(), func(tx kv.Tx) error {
		items, err := tx.Scan("audit/", "", 1)
		if err != nil {
			return err
		}
		return tx.Put(items[0].Key, []byte(strings.Replace(string(items[0].Value), "account-made", "signed-out", 1)), 0)
	}))
	b.post("/admin/audit/verify", "form", form).to(t)
	b.look("/admin/audit", "and it is not whole: alone: row 1 was changed")
}

// Tokens of programs are listed, and ended by who acts; none is made here.
func TestAdminTokensPage(t *testing.T) {
	t.Parallel()
	r, b := adminRig(t)
	form := b.adminForm()
	b.look("/admin/tokens", "There is no token.")
	token, secret, err := r.svc.AdminTokens.Add(t.Context(), "abuse desk", []control.TokenScope{control.ScopeRead, control.ScopeSuspend}, 0)
	programs.Must(t, err)
	b.look("/admin/tokens", "abuse desk", "read and suspend", "never", "/admin/tokens/"+token.ID)
	if a := b.look("/admin/tokens/"+token.ID, "End this token"); strings.Contains(a.body, secret[len(secret)-43:]) {
		t.Error("the page has its secret")
	}
	b.get("/admin/tokens/nobody").want(t, http.StatusNotFound)
	b.post("/admin/tokens/end", "form", "another", "id", token.ID).want(t, http.StatusBadRequest)
	programs.Got(r.svc.AdminTokens.Use(t.Context(), secret, control.ScopeRead))(t)
	if to := b.post("/admin/tokens/end", "form", form, "id", token.ID).to(t); to != "/admin/tokens" {
		t.Errorf("led to %s", to)
	}
	b.post("/admin/tokens/end", "form", form, "id", token.ID).to(t) // once more
	if _, err := r.svc.AdminTokens.Use(t.Context(), secret, control.ScopeRead); !control.IsRefusal(err, controlapi.CodeUnauthorized) {
		t.Errorf("it is taken still: %v", err)
	}
	b.look("/admin/audit?kind=token-removed", "Removed a token", "olga@porch.example")
}
