//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"porchlight/agent/agentapi"
)

// basicShapes are ways to write a Basic field so that some program reads it.
var basicShapes = []string{
	"Authorization: Basic VALUE\r\n", "authorization: basic VALUE\r\n", "Authorization: BASIC   VALUE\r\n", "Authorization: Basic\tVALUE\r\n",
	"Authorization: Basic VALUE\r\nAuthorization: Basic VALUE\r\n", "Authorization: Basic eDp5\r\nAuthorization: Basic VALUE\r\n",
	"Authorization: Bearer x\r\nAuthorization: Basic VALUE\r\n", "Authorization: Basic VALUE \r\n",
}

// otherFields are fields that some program reads a password from, too.
var otherFields = []string{
	"Proxy-Authorization: Basic VALUE\r\n", "X-Authorization: Basic VALUE\r\n", "Authorization: Bearer PASSWORD\r\n", "Authorization: PASSWORD\r\n",
	"Authorization: Digest VALUE\r\n", "Cookie: authorization=Basic VALUE\r\n", "X-Service-User: PASSWORD\r\n", "Authorization : Basic VALUE\r\n",
}

// ofBase64 are ways to write base64 so that some reader takes it.
var ofBase64 = map[string]func([]byte) string{
	"as it is":             base64.StdEncoding.EncodeToString,
	"unpadded":             base64.RawStdEncoding.EncodeToString,
	"of the other kind":    base64.URLEncoding.EncodeToString,
	"with dots between":    func(b []byte) string { s := base64.StdEncoding.EncodeToString(b); return s[:8] + "..." + s[8:] },
	"with more at the end": func(b []byte) string { return base64.StdEncoding.EncodeToString(append(b, "=="...)) },
}

// logins are user names and passwords that open nothing at the other apps: those of the
// owner for one app, and what somebody makes of them.
func logins(address, password string) map[string]string {
	return map[string]string{
		"another app's":           address + ":" + password,
		"another person's":        memberEmail + ":" + password,
		"of nobody":               ":" + password,
		"of another case":         address + ":" + strings.ToUpper(password[:5]) + password[5:],
		"cut":                     address + ":" + password[:len(password)-1],
		"longer":                  address + ":" + password + "a",
		"with NUL":                address + ":" + password + "\x00",
		"the prefix":              address + ":plp_",
		"of 40 KiB":               address + ":plp_" + strings.Repeat("a", 40<<10),
		"a name of 40 KiB":        strings.Repeat("a", 40<<10) + ":" + password,
		"as the user name":        password + ":",
		"as both":                 password + ":" + password,
		"without a colon":         password,
		"two addresses":           memberEmail + "," + address + ":" + password,
		"an address in brackets":  "<" + address + ">:" + password,
		"an address with newline": address + "\n:" + password,
	}
}

// attackPasswords shows apps the app password of another one, and what can be made of
// it, first to be let in by it, then beside the session of a member: no app may see it.
func attackPasswords(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	mine, others := on.backends[0], on.backends[1:]
	made, err := on.owner.MakePassword(ctx, agentapi.PasswordRequest{App: mine.name, Name: "attacked"})
	if err != nil {
		return err
	}
	show := func(b *backend, fields string) (int, error) {
		got, err := on.exchange(ctx, b.host, "GET /hello HTTP/1.1\r\nHost: "+b.host+"\r\n"+fields+"Connection: close\r\n\r\n")
		if err != nil || len(got) == 0 {
			return 0, err
		}
		return got[0].status, nil
	}
	good := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(on.account.Email+":"+made.Password)) + "\r\n"
	if status, err := show(mine, good); err != nil || status != 200 {
		return fmt.Errorf("the honest password gets %d, %v", status, err)
	}
	all := logins(on.account.Email, made.Password)
	shapes := append(append([]string{}, basicShapes...), otherFields...)
	fmt.Printf("   logins %d × encodings %d × shapes %d × alone, beside a session = %d\n", len(all), len(ofBase64), len(shapes), 2*len(all)*len(ofBase64)*len(shapes))
	i, tried := 0, 0
	for what, login := range all {
		for how, encode := range ofBase64 {
			for _, shape := range shapes {
				if i++; s.quick && i%9 != 0 {
					continue
				}
				fields := strings.NewReplacer("VALUE", encode([]byte(login)), "PASSWORD", made.Password).Replace(shape)
				tried++
				b := others[tried%len(others)]
				for _, cookie := range []string{"", "Cookie: " + b.cookie + "\r\n"} {
					status, err := show(b, cookie+fields)
					if err != nil {
						return err
					}
					t.try(1)
					if cookie == "" && status == 200 {
						t.got("%s, %s, in %.30q opens %s", what, how, shape, b.name)
					}
				}
			}
		}
	}
	if _, err := on.owner.RevokePassword(ctx, made.ID); err != nil {
		return err
	}
	if status, err := show(mine, good); err != nil || status == 200 {
		t.got("after it was revoked it gets %d, %v", status, err)
	}
	t.try(1)
	return on.looksForPassword(made.Password, t)
}

// looksForPassword looks through what every app was sent.
func (on *ground) looksForPassword(password string, t *tally) error {
	for _, b := range on.backends {
		b.tap.close()
		for _, w := range b.tap.messages() {
			for _, field := range w.fields {
				name, value, _ := strings.Cut(field, ":")
				if strings.EqualFold(name, "Authorization") && holdsPassword(value, password) {
					t.got("%s was sent an app password as%.20q", b.name, value)
				}
			}
		}
	}
	return nil
}

// holdsPassword reads a Basic value as a careless app might. What a visitor writes
// elsewhere is theirs to give away.
func holdsPassword(value, password string) bool {
	words := strings.Fields(value)
	if len(words) < 2 || !strings.EqualFold(words[0], "basic") {
		return false
	}
	word := strings.NewReplacer("-", "+", "_", "/", ".", "", "=", "").Replace(strings.Join(words[1:], ""))
	raw, _ := base64.RawStdEncoding.DecodeString(word) // what can be read of it
	return strings.Contains(string(raw), password[:16])
}
