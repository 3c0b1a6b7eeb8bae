package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

// nodes starts two servers of one database.
func nodes(t *testing.T, database string, args ...string) (servers [2]*server, browsers [2]*http.Client, dirs [2]string) {
	t.Helper()
	for i, name := range []string{"one", "two"} {
		dirs[i] = t.TempDir()
		own := append([]string{"--postgres", database, "--node", name}, args...)
		servers[i] = start(t, dirs[i], own...)
		browsers[i] = servers[i].browser()
	}
	return servers, browsers, dirs
}

// submit posts a form as a page's does and returns where it leads.
func submit(t *testing.T, browser *http.Client, address string, pairs ...string) *url.URL {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	resp := programs.Got(browser.PostForm(address, form))(t)
	defer resp.Body.Close()
	body := programs.Got(io.ReadAll(resp.Body))(t)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %d\n%s", address, resp.StatusCode, body)
	}
	return programs.Got(resp.Location())(t)
}

// signIn signs a browser in by the link in the mail, which is read at another
// node than the one that was asked for it.
func signIn(t *testing.T, browser *http.Client, s *server, email, mailDir string) {
	t.Helper()
	submit(t, browser, s.AuthURL+"/signin", "email", email)
	var link string
	programs.Eventually(t, "a mail in the outbox", func() bool {
		for _, m := range okJSON[[]mail.Entry](t, "outbox", "--data", mailDir) {
			if m.To == email && len(m.Links) > 0 {
				link = m.Links[0]
			}
		}
		return link != ""
	})
	at := programs.Got(url.Parse(link))(t)
	submit(t, browser, s.AuthURL+"/signin/link", "token", at.Query().Get("token"))
}

// A code issued by one node is exchanged at the other, once; and when revoking
// has been answered by one, no refresh at the other succeeds: zero of a thousand.
func TestNodesAgreeOnCodesAndRevocation(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	servers, browsers, dirs := nodes(t, db, "--log-level", "warn")
	one, two := servers[0], servers[1]
	var c remote
	inDatabase(t, db, func(svc *control.Service) { c = register(t, svc) })
	ok(t, "account", "add", "anna@example.net", "--short", "anna", "--data", dirs[0])
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dirs[1]); len(list) != 1 {
		t.Errorf("the other node knows %+v", list)
	}
	_, key := fetch(t, browsers[0], one.AuthURL+"/auth/pubkey")
	if _, got := fetch(t, browsers[1], two.AuthURL+"/auth/pubkey"); got != key {
		t.Error("the nodes have two keys")
	}
	jar := programs.Got(cookiejar.New(nil))(t)
	browsers[0].Jar = jar
	signIn(t, browsers[0], one, "anna@example.net", dirs[1])
	authorize := one.AuthURL + controlapi.PathAuthorize + "?" + url.Values{
		"client_id": {c.ID}, "redirect_uri": {testRedirect}, "response_type": {"code"}, "state": {"s"},
		"code_challenge": {testChallenge()}, "code_challenge_method": {"S256"}, "scope": {"connect"},
	}.Encode()
	consent := func() string {
		t.Helper()
		to := submit(t, browsers[0], authorize, "decision", "allow", "computer", "anna")
		code := to.Query().Get("code")
		if code == "" {
			t.Fatalf("led to %s", to)
		}
		return code
	}
	exchange := func(node int, code string) tokenAnswer {
		t.Helper()
		a := programs.Got(c.post(t.Context(), browsers[node], servers[node].AuthURL,
			"grant_type", "authorization_code", "code", code, "redirect_uri", testRedirect, "code_verifier", testVerifier))(t)
		return a
	}
	spent := consent()
	if once := exchange(1, spent); once.status != http.StatusOK {
		t.Fatalf("the code of the other node: %+v", once)
	}
	// This ends the login, too: somebody else may have the code.
	if again := exchange(0, spent); again.Code != "invalid_grant" {
		t.Errorf("the code once more, where it was issued: %+v", again)
	}
	first := exchange(1, consent())
	if first.status != http.StatusOK || first.Refresh == "" || first.Access == "" {
		t.Fatalf("another code of the other node: %+v", first)
	}

	t.Log("revoked at one while the other refreshes")
	newest := first.Refresh // the goroutine's until it has ended
	var acks atomic.Int64
	var revoked atomic.Bool
	ended := make(chan error, 1)
	go func() {
		for {
			late := revoked.Load()
			a, err := c.refresh(t.Context(), browsers[1], two.AuthURL, newest)
			if err != nil || a.Code == "access_denied" {
				ended <- err
				return
			}
			if a.status != http.StatusOK || late {
				ended <- fmt.Errorf("a refresh begun after the revocation was answered (%v): %+v", late, a)
				return
			}
			newest = a.Refresh
			acks.Add(1)
		}
	}()
	programs.Eventually(t, "refreshes at the other node", func() bool { return acks.Load() > 50 || len(ended) > 0 })
	id, _, _ := strings.Cut(first.Refresh, ".")
	submit(t, browsers[0], one.AuthURL+"/account/grants/revoke", "grant", id)
	revoked.Store(true)
	programs.Must(t, <-ended)
	var asked atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for asked.Add(1) <= 1000 {
				a, err := c.refresh(t.Context(), browsers[1], two.AuthURL, newest)
				if err != nil || a.Code != "access_denied" {
					t.Errorf("after the revocation was answered: %+v, %v", a, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Stopping one of two nodes, in order or by kill -9, loses nothing that was
// acknowledged: the clients go on at the other.
func TestStoppingANodeLosesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *server){
		"SIGTERM": func(t *testing.T, s *server) { s.stop() },
		"SIGKILL": func(t *testing.T, s *server) {
			s.Kill()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Database(t)
			servers, browsers, _ := nodes(t, db, "--log-level", "warn")
			var c remote
			var chains []*chain
			inDatabase(t, db, func(svc *control.Service) { c = register(t, svc); chains = c.grant(t, svc, 16) })
			var gone atomic.Bool
			var acks [2]atomic.Int64
			var all atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan error, 1)
			turn := make([]int, len(chains))
			go func() {
				done <- hammer(ctx, c, chains, func(i int) (*http.Client, string) {
					node := turn[i] % 2 // only the chain's own goroutine counts
					turn[i]++
					if gone.Load() {
						node = 1
					}
					acks[node].Add(1)
					return browsers[node], servers[node].AuthURL
				}, &all)
			}()
			programs.Eventually(t, "refreshes at both", func() bool {
				return acks[0].Load() > 100 && acks[1].Load() > 100 || len(done) > 0
			})
			end(t, servers[0])
			gone.Store(true)
			before := all.Load()
			programs.Eventually(t, "refreshes at the one that is left", func() bool { return all.Load() > before+100 || len(done) > 0 })
			stop()
			programs.Must(t, <-done)
			lost := goOn(t, c, chains, browsers[1], servers[1].AuthURL)
			for _, k := range chains {
				if k.lost {
					lost++
				}
			}
			if name == "SIGTERM" && lost > 0 {
				t.Errorf("%d answers were lost though the node ended in order", lost)
			}
			servers[1].stop()
		})
	}
}

// A command that opens the database itself leaves word of each change in a row, by which the
// nodes see what nobody tells them.
func TestCommandsLeaveWordForNodes(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	args := []string{"--postgres", db, "--domain", "porch.test"}
	left := func() (version string) {
		t.Helper()
		store, err := kv.Open(t.Context(), db, kv.Options{})
		programs.Must(t, err)
		defer store.Close()
		err = store.View(t.Context(), func(tx kv.Tx) error {
			value, err := tx.Get("untold")
			version = string(value)
			return err
		})
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			t.Fatal(err)
		}
		return version
	}
	ok(t, append([]string{"account", "add", "anna@example.net", "--short", "anna"}, args...)...)
	before := left()
	ok(t, append([]string{"computer", "disconnect", "anna"}, args...)...)
	if after := left(); after == before {
		t.Errorf("the row says %q as before the computer was disconnected", after)
	}
}

// One node alone listens for visitors and for who asks how it is, and for nobody else: no
// news between nodes, which would be a port more, starts.
func TestOneNodeListensForNoOther(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this test reads /proc, which Linux has")
	}
	s := start(t, t.TempDir())
	want := []string{s.addr, strings.TrimPrefix(s.Metrics, "http://")}
	slices.Sort(want)
	if got := listensAt(t, s.PID()); !slices.Equal(got, want) {
		t.Errorf("it listens at %q, not at %q", got, want)
	}
}

// listensAt are the addresses at which a process takes TCP connections, in order. Other hosts than
// 127.0.0.1 are as the kernel writes them.
func listensAt(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	own := map[string]bool{} // sockets
	descriptors := programs.Got(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)))(t)
	for _, d := range descriptors {
		what, _ := os.Readlink(d) // one that was just closed is none
		own[what] = true
	}
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil && table == "tcp" {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !own["socket:["+f[9]+"]"] { // 0A: it listens
				continue
			}
			host, port, _ := strings.Cut(f[1], ":")
			n := programs.Got(strconv.ParseUint(port, 16, 16))(t)
			if host == "0100007F" {
				host = "127.0.0.1"
			}
			addresses = append(addresses, net.JoinHostPort(host, fmt.Sprint(n)))
		}
	}
	slices.Sort(addresses)
	return addresses
}
