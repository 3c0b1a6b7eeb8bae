// Command record has a given version of Porchlight write a data directory with
// something of everything in it, for the tests that open it with later versions:
// apps in every state with options, people in every state, sessions, a client
// and its grant, settings, activity.
//
// usage: record PROGRAMS DIRECTORY [connected]
//
// PROGRAMS is where that version's programs are. The data directory becomes
// DIRECTORY/data, and DIRECTORY/kept.json says what a visitor, a client and the owner
// hold of it. That computer is on its own, or connected to a control plane on PostgreSQL,
// whose data directory is DIRECTORY/control and whose database is in
// DIRECTORY/database.sql.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/upgrade"
	"porchlight/test/visitor"
)

func main() {
	connected := len(os.Args) == 4 && os.Args[3] == "connected"
	if len(os.Args) != 3 && !connected {
		fmt.Fprintln(os.Stderr, "usage: record PROGRAMS DIRECTORY [connected]")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := record(ctx, os.Args[1], os.Args[2], connected); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

type recorder struct {
	rig.Rig
	agent     *rig.Computer
	plane     *rig.Node // for the operator's commands
	rootFiles []string
	kept      upgrade.Kept
	browsers  []*visitor.Visitor
	mails     *rig.Mails
}

func record(ctx context.Context, bin, dir string, connected bool) error {
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer app.Close()
	go http.Serve(app, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	r := &recorder{Rig: rig.Rig{Bin: bin, Env: rig.Environ(filepath.Join(dir, "config")), Begin: programs.Start}}
	args := []string{"--local"}
	var s *server
	if connected {
		if s, err = r.serve(ctx, dir); err != nil {
			return err
		}
		defer s.database.Close()
		defer s.Kill()
		args = []string{"--control", s.AuthURL, "--ca", rig.Authority(s.Data)}
	}
	if r.agent, err = r.Computer(ctx, filepath.Join(dir, "data"), args...); err != nil {
		return err
	}
	defer r.agent.Kill()
	if connected {
		err = r.connect(ctx, s)
	} else {
		r.plane, r.mails, r.rootFiles = r.agent.Node(), r.agent.Outbox(), []string{rig.Authority(r.agent.Data)}
	}
	if err == nil {
		err = r.story(ctx, app.Addr().(*net.TCPAddr).Port)
	}
	for _, b := range r.browsers {
		b.Close()
	}
	if code := r.agent.Stop(); err != nil || code != 0 {
		return errors.Join(err, fmt.Errorf("the agent ended with %d: %s", code, r.agent.Stderr()))
	}
	if connected {
		if err := s.dump(filepath.Join(dir, "database.sql")); err != nil {
			return err
		}
	}
	r.kept.WrittenAt = time.Now().UTC()
	raw, err := json.MarshalIndent(r.kept, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "kept.json"), append(raw, '\n'), 0o600)
}

// story is what happens before the directory is kept.
func (r *recorder) story(ctx context.Context, port int) error {
	if err := r.apps(ctx, port); err != nil {
		return err
	}
	if err := r.agent.Run(&r.kept.Account, "account"); err != nil {
		return err
	}
	if err := r.visits(ctx); err != nil {
		return err
	}
	if err := r.client(ctx); err != nil {
		return err
	}
	if err := r.agent.Run(&r.kept.Password, "passwords", "add", "notes", "--name", "laptop"); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"people", "remove", "dan@example.com"},
		{"pause", "photos"},
		{"unpublish", "wiki"},
		{"settings", "--fail-static-hours", "12", "--quiet", "access,changed"},
	} {
		if err := r.agent.Run(nil, command...); err != nil {
			return err
		}
	}
	return errors.Join(
		r.agent.Run(&r.kept.Apps, "apps"),
		r.agent.Run(&r.kept.People, "people"),
		r.agent.Run(&r.kept.Grants, "grants"),
		r.agent.Run(&r.kept.Activity, "activity"),
		r.agent.Run(&r.kept.Settings, "settings"),
		r.agent.Run(&r.kept.Options, "options", "notes"),
	)
}

func (r *recorder) apps(ctx context.Context, port int) error {
	for _, app := range []struct {
		name, label string
		approve     bool
	}{{"notes", "Notes", true}, {"photos", "Photos of Maya", true}, {"wiki", "Wiki", true}, {"todo", "To do", false}, {"nope", "Nope", false}} {
		if err := r.agent.Run(nil, "publish", app.name, "--label", app.label, "--port", strconv.Itoa(port)); err != nil {
			return err
		}
		if app.approve {
			if err := r.agent.Run(nil, "approve", app.name); err != nil {
				return err
			}
		}
	}
	for _, command := range [][]string{
		{"deny", "nope"},
		{"options", "notes", "--forwarded", "--identity-header", "X-Remote-User", "--identity-value", "id"},
		{"people", "invite", "ben@example.com", "--app", "Notes", "--app", "Wiki"},
		{"people", "invite", "carla@example.com", "--app", "Notes"},
		{"people", "invite", "dan@example.com", "--app", "Photos of Maya"},
		{"people", "invite", "eva@example.com", "--app", "Notes", "--until", "2036-01-31T18:00:00Z"},
	} {
		if err := r.agent.Run(nil, command...); err != nil {
			return err
		}
	}
	return nil
}

// visits has ben accept and the owner open notes; what their browsers hold is kept.
func (r *recorder) visits(ctx context.Context) error {
	ben, err := r.browser()
	if err != nil {
		return err
	}
	link, err := r.mails.Link(ctx, "ben@example.com")
	if err != nil {
		return err
	}
	if err := ben.Accept(ctx, link); err != nil {
		return err
	}
	if r.kept.Ben, err = r.cookies(ctx, ben, "https://notes."+r.kept.Account.Host+"/"); err != nil {
		return err
	}
	owner, err := r.browser()
	if err != nil {
		return err
	}
	out, err := r.agent.Output("open", "notes", "--print")
	if err != nil {
		return err
	}
	r.kept.Owner, err = r.cookies(ctx, owner, strings.TrimSpace(out))
	return err
}

// cookies opens an address, which has to end at the app, and returns what the
// browser holds for it.
func (r *recorder) cookies(ctx context.Context, b *visitor.Visitor, address string) (map[string]string, error) {
	page, err := b.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	if page.Status != http.StatusOK || !strings.HasPrefix(page.Body, "hello ") {
		return nil, fmt.Errorf("%s answered HTTP %d: %.200s", page.URL, page.Status, page.Body)
	}
	held := map[string]string{}
	for _, c := range b.Cookies(page.URL) {
		held[c.Name] = c.Value
	}
	return held, nil
}

// client has a remote client let in by ben and keeps its tokens.
func (r *recorder) client(ctx context.Context) error {
	if err := r.plane.Run(&r.kept.Client, "client", "add", "--name", "Pocket Notes", "--redirect-uri", upgrade.Redirect); err != nil {
		return err
	}
	pool, err := rig.Roots(r.rootFiles...)
	if err != nil {
		return err
	}
	b, err := r.browser()
	if err != nil {
		return err
	}
	config := upgrade.OAuth(r.kept)
	verifier := oauth2.GenerateVerifier()
	page, err := b.SignIn(ctx, config.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), "ben@example.com", r.mails)
	if err != nil {
		return err
	}
	_, err = b.Submit(ctx, page, "computer", map[string]string{"decision": "allow"})
	var to *url.Error // the client's own address, which nobody serves
	if !errors.As(err, &to) {
		return fmt.Errorf("consent ended with %v", err)
	}
	back, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, upgrade.Client(pool)), back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		return err
	}
	r.kept.RefreshToken = token.RefreshToken
	return nil
}

func (r *recorder) browser() (*visitor.Visitor, error) {
	roots, err := rig.Roots(r.rootFiles...)
	if err != nil {
		return nil, err
	}
	b := visitor.New(roots)
	r.browsers = append(r.browsers, b)
	return b, nil
}
