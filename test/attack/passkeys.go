//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/test/authenticator"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// passkeysTried is how often attackPasskeys tries something.
const passkeysTried = 141

const (
	ownersEmail   = "maya@example.net"
	strangerEmail = "eve@example.net"
)

// breaks is the test of an authenticator that runs in none: what fails there ends the part.
type breaks struct{ testing.TB }

func (breaks) Helper()          {}
func (breaks) Fatal(why ...any) { panic(fmt.Sprint(why...)) }

// keyed is a control plane with somebody's passkey and a stranger's.
type keyed struct {
	*plane
	host      string
	key, eves *authenticator.Passkey
	counts    *authenticator.Passkey // another of the owner's, which counts
}

// attackPasskeys answers the sign-in page with passkeys that are another's, made for
// elsewhere, used before or copied, guesses recovery codes, and comes by mail where that is off.
func attackPasskeys(ctx context.Context, s *stage, t *tally) (err error) {
	p, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	if p.roots, err = rig.Roots(rig.Authority(p.Data)); err != nil {
		return err
	}
	u, err := url.Parse(p.AuthURL)
	if err != nil {
		return err
	}
	defer func() {
		if why := recover(); why != nil {
			err = errors.Join(err, fmt.Errorf("%v", why))
		}
	}()
	k := &keyed{plane: p, host: u.Hostname()}
	owner, err := k.signedIn(ctx, ownersEmail)
	if err != nil {
		return err
	}
	eve, err := k.signedIn(ctx, strangerEmail)
	if err != nil {
		return err
	}
	if k.key, err = k.adds(ctx, owner, 0); err == nil {
		k.counts, err = k.adds(ctx, owner, 1)
	}
	if err == nil {
		k.eves, err = k.adds(ctx, eve, 0)
	}
	if err != nil {
		return err
	}
	if in, err := k.uses(ctx, visitor.New(p.roots), *k.key); err != nil || !in {
		return fmt.Errorf("the owner's own passkey signs nobody in: %w", err)
	}
	for _, attack := range []func(context.Context, *tally) error{k.elsewhere, k.anothers, k.again, k.copied, k.byMail} {
		if err := attack(ctx, t); err != nil {
			return err
		}
	}
	return k.withoutMail(ctx, owner, t)
}

// ask posts a form and returns the answer, whose redirect is not followed.
func (k *keyed) ask(ctx context.Context, v *visitor.Visitor, path string, fields ...string) (status int, body []byte, err error) {
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	method := http.MethodPost
	if len(fields) == 1 {
		method, form = http.MethodGet, nil
	}
	req, err := http.NewRequestWithContext(ctx, method, k.AuthURL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := v.Once(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, body, err
}

func (k *keyed) signedIn(ctx context.Context, email string) (*visitor.Visitor, error) {
	if err := k.Run(nil, "account", "add", email); err != nil {
		return nil, err
	}
	v := visitor.New(k.roots)
	page, err := v.SignIn(ctx, k.AuthURL+"/account", email, k.mails)
	return v, arrived(page, err)
}

func (k *keyed) adds(ctx context.Context, v *visitor.Visitor, count uint32) (*authenticator.Passkey, error) {
	key := authenticator.New(breaks{}, k.AuthURL, k.host)
	key.Count = count
	status, options, err := k.ask(ctx, v, "/account/passkeys/begin")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("a passkey is not begun: HTTP %d, %w", status, err)
	}
	status, _, err = k.ask(ctx, v, "/account/passkeys", "answer", string(key.Make(breaks{}, options)))
	if err == nil && status != http.StatusSeeOther {
		err = fmt.Errorf("a passkey is not added: HTTP %d", status)
	}
	return key, err
}

// in says whether a browser is signed in.
func (k *keyed) in(ctx context.Context, v *visitor.Visitor) (bool, error) {
	status, _, err := k.ask(ctx, v, "/account", "")
	return status == http.StatusOK, err
}

// uses answers with a passkey, which may be made wrong, and says whether that signed in.
func (k *keyed) uses(ctx context.Context, v *visitor.Visitor, key authenticator.Passkey) (bool, error) {
	status, options, err := k.ask(ctx, v, "/signin/passkey/begin")
	if err != nil || status != http.StatusOK {
		return false, fmt.Errorf("a sign-in is not begun: HTTP %d, %w", status, err)
	}
	return k.answers(ctx, v, string(key.Use(breaks{}, options)))
}

func (k *keyed) answers(ctx context.Context, v *visitor.Visitor, answer string) (bool, error) {
	if _, _, err := k.ask(ctx, v, "/signin/passkey", "answer", answer); err != nil {
		return false, err
	}
	return k.in(ctx, v)
}

// tries has a new browser use a passkey that must sign nobody in.
func (k *keyed) tries(ctx context.Context, t *tally, what string, key authenticator.Passkey) error {
	v := visitor.New(k.roots)
	defer v.Close()
	in, err := k.uses(ctx, v, key)
	if t.try(1); in {
		t.got("%s", what)
	}
	return err
}

// elsewhere uses the owner's passkey as another site, host or scheme would have it.
func (k *keyed) elsewhere(ctx context.Context, t *tally) error {
	for _, origin := range []string{
		"", "null", "https://" + k.host, strings.Replace(k.AuthURL, "https", "http", 1), strings.ToUpper(k.AuthURL), k.AuthURL + "/", k.AuthURL + ".evil.example",
		"https://evil.example", "https://localhost", "https://notes.maya.localhost", "https://evil." + strings.TrimPrefix(k.AuthURL, "https://"), k.AuthURL + "0",
	} {
		wrong := *k.key
		wrong.Origin = origin
		if err := k.tries(ctx, t, "the origin "+origin, wrong); err != nil {
			return err
		}
	}
	for _, rp := range []string{"", "localhost", "maya.localhost", "notes.maya.localhost", "evil." + k.host, strings.ToUpper(k.host), k.AuthURL, "evil.example"} {
		wrong := *k.key
		wrong.RPID = rp
		if err := k.tries(ctx, t, "the RP id "+rp, wrong); err != nil {
			return err
		}
	}
	unverified := *k.key
	unverified.Unverified = true
	return k.tries(ctx, t, "a touch without proof of who it is", unverified)
}

// anothers uses a stranger's key under the owner's names.
func (k *keyed) anothers(ctx context.Context, t *tally) error {
	asOwner, owners, unknown := *k.eves, *k.eves, *authenticator.New(breaks{}, k.AuthURL, k.host)
	asOwner.Handle = k.key.Handle
	owners.ID, owners.Handle = k.key.ID, k.key.Handle
	unknown.Handle = k.key.Handle
	asEve := *k.key
	asEve.Handle = k.eves.Handle
	for what, key := range map[string]authenticator.Passkey{
		"a stranger's passkey in the owner's name": asOwner, "the owner's id with a stranger's key": owners,
		"a passkey that nobody added": unknown, "the owner's passkey in a stranger's name": asEve,
	} {
		if err := k.tries(ctx, t, what, key); err != nil {
			return err
		}
	}
	return nil
}

// again sends an answer a second time: from the same browser, and from another with its cookies.
func (k *keyed) again(ctx context.Context, t *tally) error {
	u, err := url.Parse(k.AuthURL)
	if err != nil {
		return err
	}
	for range 4 {
		v, thief, without := visitor.New(k.roots), visitor.New(k.roots), visitor.New(k.roots)
		_, options, err := k.ask(ctx, v, "/signin/passkey/begin")
		if err != nil {
			return err
		}
		thief.SetCookies(u, v.Cookies(u))
		answer := string(k.key.Use(breaks{}, options))
		if in, err := k.answers(ctx, without, answer); err != nil || in {
			t.got("an answer without its browser's state: %v", err)
		}
		if in, err := k.answers(ctx, v, answer); err != nil || !in {
			return fmt.Errorf("the first answer signs nobody in: %w", err)
		}
		if in, err := k.answers(ctx, thief, answer); err != nil || in {
			t.got("an answer that was used: %v", err)
		}
		t.try(2)
	}
	return nil
}

// copied uses a passkey and then what it was before, and the original after that.
func (k *keyed) copied(ctx context.Context, t *tally) error {
	before := *k.counts
	v := visitor.New(k.roots)
	defer v.Close()
	k.counts.Count += 5
	if in, err := k.uses(ctx, v, *k.counts); err != nil || !in {
		return fmt.Errorf("a passkey that counts signs nobody in: %w", err)
	}
	if err := k.tries(ctx, t, "a copy whose count went back", before); err != nil {
		return err
	}
	k.counts.Count += 5
	return k.tries(ctx, t, "a passkey of which there is a copy", *k.counts)
}

var changesShown = regexp.MustCompile(`"(/account/passkeys/change\?passkey=[^"]+)"`)

// byMail has who reads the owner's mailbox do, by a link mailed just now, what only a passkey
// of the last ten minutes may.
func (k *keyed) byMail(ctx context.Context, t *tally) error {
	v, own := visitor.New(k.roots), visitor.New(k.roots)
	defer v.Close()
	defer own.Close()
	page, err := v.SignIn(ctx, k.AuthURL+"/account", ownersEmail, k.mails)
	if err := arrived(page, err); err != nil {
		return err
	}
	if in, err := k.uses(ctx, own, *k.key); err != nil || !in {
		return fmt.Errorf("the owner is not in: %w", err)
	}
	for _, path := range powers(page.Body) {
		if status, _, err := k.ask(ctx, own, path, ""); err != nil || status != http.StatusOK {
			return fmt.Errorf("%s refuses the owner's passkey: HTTP %d, %w", path, status, err)
		}
	}
	if err := k.triesPowers(ctx, t, "a mailed link", v, page.Body); err != nil {
		return err
	}
	if status, _, err := k.ask(ctx, own, powers(page.Body)[0], ""); err != nil || status != http.StatusOK {
		t.got("a mailed link took the owner's passkey or account: HTTP %d, %v", status, err)
	}
	return k.byOldOnes(ctx, t, own, page.Body)
}

// powers are the pages that an account asks a fresh passkey for, the first that of a passkey
// itself where there is one.
func powers(account string) (paths []string) {
	if change := changesShown.FindStringSubmatch(account); change != nil {
		paths = append(paths, change[1])
	}
	return append(paths, "/account/export", "/account/delete", "/account/passwords", "/device", "/account/passkeys/new")
}

// triesPowers asks for all of it with a session that must not have it.
func (k *keyed) triesPowers(ctx context.Context, t *tally, by string, v *visitor.Visitor, account string) error {
	acts := [][]string{{"/account/passkeys/begin"}, {"/account/mail", "decision", "off"}, {"/account/mail", "decision", "on"}, {"/account/delete", "decision", "delete"}}
	for _, path := range powers(account) {
		status, _, err := k.ask(ctx, v, path, "")
		if t.try(1); err != nil || status == http.StatusOK {
			t.got("%s by %s: HTTP %d, %v", path, by, status, err)
		}
		if u, err := url.Parse(path); err == nil && u.RawQuery != "" {
			acts = append(acts, []string{u.Path, "passkey", u.Query().Get("passkey"), "remove", "yes"})
		}
	}
	for _, act := range acts {
		status, body, err := k.ask(ctx, v, act[0], act[1:]...)
		if t.try(1); err != nil || status == http.StatusOK {
			t.got("%s by %s: HTTP %d, %.200s, %v", act[0], by, status, body, err)
		}
	}
	err := k.connects(ctx, v, "loft")
	if t.try(1); err == nil {
		t.got("%s connects a computer", by)
	}
	return ctx.Err()
}

// byOldOnes has sessions that a passkey proved eleven minutes ago, and that a provider opened
// which does not say when, do the same. The server's clock does not go ahead: its store says so.
func (k *keyed) byOldOnes(ctx context.Context, t *tally, own *visitor.Visitor, account string) error {
	other, err := k.signedIn(ctx, "nora@example.net") // who has no passkey
	if err != nil {
		return err
	}
	defer other.Close()
	for by, change := range map[string]func(row map[string]any){
		"a passkey of eleven minutes ago": func(row map[string]any) {
			for _, name := range []string{"createdAt", "proven"} {
				if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(row[name])); err == nil {
					row[name] = at.Add(-11 * time.Minute)
				}
			}
		},
		"a provider that does not say when": func(row map[string]any) { row["proof"] = "provider"; delete(row, "proven") },
	} {
		if err := k.changedSessions(ctx, change); err != nil {
			return err
		}
		for whose, v := range map[string]*visitor.Visitor{account: own, "": other} {
			if in, err := k.in(ctx, v); err != nil || !in {
				return fmt.Errorf("a session by %s is over: %w", by, err)
			}
			if err := k.triesPowers(ctx, t, by, v, whose); err != nil {
				return err
			}
		}
	}
	return nil
}

// changedSessions changes the rows of sessions while the server is down.
func (k *keyed) changedSessions(ctx context.Context, change func(map[string]any)) error {
	k.Stop()
	store, err := kv.Open(ctx, k.Data+"/control.db", kv.Options{})
	if err != nil {
		return err
	}
	err = store.Update(ctx, func(tx kv.Tx) error {
		items, err := tx.Scan("session/", "", 1000)
		if err != nil {
			return err
		}
		for _, it := range items {
			row, err := kv.ParseJSON[map[string]any](it.Value)
			if err != nil {
				return err
			}
			change(row)
			if err := kv.PutJSON(tx, it.Key, row, time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	again, err := k.s.startPlane(ctx, k.Data, "--listen", k.Listens[0])
	if err == nil {
		k.Node = again.Node
	}
	return err
}

var codesShown = regexp.MustCompile(`<code class="whole">([a-z2-7-]{19})</code>`)

// withoutMail turns the owner's sign-in by mail off, and comes by a link of before, and by
// codes that are guessed, used, and a stranger's.
func (k *keyed) withoutMail(ctx context.Context, owner *visitor.Visitor, t *tally) error {
	v := visitor.New(k.roots)
	if _, _, err := k.ask(ctx, v, "/signin", "email", ownersEmail); err != nil {
		return err
	}
	link, err := k.mails.Link(ctx, ownersEmail)
	if err != nil {
		return err
	}
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	if in, err := k.uses(ctx, owner, *k.key); err != nil || !in {
		return fmt.Errorf("the owner is not in: %w", err)
	}
	_, page, err := k.ask(ctx, owner, "/account/mail", "decision", "off")
	codes := codesShown.FindAllStringSubmatch(string(page), -1)
	if err != nil || len(codes) != 10 {
		return fmt.Errorf("mail is not off: %d codes, %w", len(codes), err)
	}
	comes := func(what, path string, fields ...string) error {
		guest := visitor.New(k.roots)
		defer guest.Close()
		if _, _, err := k.ask(ctx, guest, path, fields...); err != nil {
			return err
		}
		in, err := k.in(ctx, guest)
		if t.try(1); in {
			t.got("%s", what)
		}
		return err
	}
	if err := comes("a link mailed before", "/signin/link", "token", u.Query().Get("token")); err != nil {
		return err
	}
	right := codes[0][1]
	for n := range 48 {
		guess := []byte(right)
		guess[n%4] = "abcdefghijklmnopqrstuvwxyz234567"[(strings.IndexByte("abcdefghijklmnopqrstuvwxyz234567", guess[n%4])+1+n/4)%32]
		if err := comes("a guessed code", "/signin/recovery", "email", ownersEmail, "code", string(guess)); err != nil {
			return err
		}
	}
	// Ten wrong ones of a network are as many as it has.
	return comes("a code after too many tries", "/signin/recovery", "email", ownersEmail, "code", right)
}
