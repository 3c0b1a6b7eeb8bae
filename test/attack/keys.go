//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"porchlight/agent/agentapi"
)

// keyLines are ways to write the field of an app password that stands alone.
var keyLines = []string{
	"X-Porchlight-Key: VALUE\r\n", "x-porchlight-key:VALUE\r\n", "X-PORCHLIGHT-KEY: \t VALUE \r\n",
	"X_Porchlight_Key: VALUE\r\n", "x.porchlight.key: VALUE\r\n", "X-Porchlight_Key: VALUE\r\n", "X~PORCHLIGHT!key: VALUE\r\n",
	"X-Porchlight-Key : VALUE\r\n", "X-Porchlight-Key:\r\n VALUE\r\n", " X-Porchlight-Key: VALUE\r\n", "X-Porchlight-Key\x00: VALUE\r\n",
	"X-Porchlight-Key: VALUE\r\nX_Porchlight_Key: VALUE\r\n", "Connection: X-Porchlight-Key\r\nX-Porchlight-Key: VALUE\r\n",
	"X-Porchlight-Key: \r\nX-Porchlight-Key: VALUE\r\n",
	"Transfer-Encoding: chunked\r\nTrailer: X-Porchlight-Key\r\n\r\n0\r\nX-Porchlight-Key: VALUE\r\nX_porchlight_key: VALUE\r\nIgnored: x\r\n",
}

// keysOf are what somebody makes of an app password.
func keysOf(address, password string) map[string]string {
	return map[string]string{
		"as it is": password, "of another case": strings.ToUpper(password[:6]) + password[6:], "cut": password[:len(password)-1], "longer": password + "a",
		"with NUL": password + "\x00", "quoted": `"` + password + `"`, "twice": password + ", " + password, "twice, by ;": password + ";" + password,
		"as a token": "Bearer " + password, "as Basic": "Basic " + base64.StdEncoding.EncodeToString([]byte(address+":"+password)),
		"in base64": base64.StdEncoding.EncodeToString([]byte(password)), "with the name": address + ":" + password, "escaped": url.QueryEscape(address) + "%3A" + password,
		"the prefix": "plp_", "of 40 KiB": "plp_" + strings.Repeat("a", 40<<10),
	}
}

// attackKeys shows apps the app password of another one in the field of its own, in every
// spelling, alone and beside the session of a member, and then uses it where it is good from
// other origins and beside somebody else: nobody is let in, and no app sees it.
func attackKeys(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	mine, others := on.backends[0], on.backends[1:]
	made, err := on.owner.MakePassword(ctx, agentapi.PasswordRequest{App: mine.name, Name: "attacked"})
	if err != nil {
		return err
	}
	ask := func(b *backend, line, fields string) (answer, error) {
		got, err := on.exchange(ctx, b.host, line+" HTTP/1.1\r\nHost: "+b.host+"\r\nConnection: close\r\n"+fields+"\r\n")
		if err != nil || len(got) == 0 {
			return answer{}, err
		}
		return got[0], nil
	}
	good := "X-Porchlight-Key: " + made.Password + "\r\n"
	if got, err := ask(mine, "GET /hello", good); err != nil || got.status != 200 {
		return fmt.Errorf("the honest key gets %d, %v", got.status, err)
	}
	all := keysOf(on.account.Email, made.Password)
	fmt.Printf("   keys %d × lines %d × alone, beside a session, at others' and its own = %d\n", len(all), len(keyLines), 3*len(all)*len(keyLines))
	tried := 0
	for what, value := range all {
		for _, line := range keyLines {
			tried++
			b, fields := others[tried%len(others)], strings.ReplaceAll(line, "VALUE", value)
			for _, beside := range []struct {
				to     *backend
				cookie string
			}{{b, ""}, {b, "Cookie: " + b.cookie + "\r\n"}, {mine, ""}} {
				if s.quick && (tried+len(beside.cookie))%2 == 0 {
					continue
				}
				got, err := ask(beside.to, "POST /hello", beside.cookie+fields)
				if err != nil {
					return err
				}
				t.try(1)
				honest := beside.to == mine && value == made.Password && strings.HasPrefix(strings.ToLower(strings.TrimPrefix(line, "Connection: X-Porchlight-Key\r\n")), "x-porchlight-key:") // one line of it, and of none that is like it
				if beside.cookie == "" && got.status == 200 && !honest {
					t.got("%s, in %.40q opens %s", what, line, beside.to.name)
				}
			}
		}
	}
	if err := on.abuseKey(t, mine, good, ask); err != nil {
		return err
	}
	if _, err := on.owner.RevokePassword(ctx, made.ID); err != nil {
		return err
	}
	if got, err := ask(mine, "GET /hello", good); err != nil || got.status == 200 {
		t.got("after it was revoked it gets %d, %v", got.status, err)
	}
	t.try(1)
	return on.looksForKey(made.Password, t)
}

// abuseKey has others than its owner's program use a good key.
func (on *ground) abuseKey(t *tally, mine *backend, good string, ask func(b *backend, line, fields string) (answer, error)) error {
	refused := map[string]string{
		"beside a member's session": "Cookie: " + mine.cookie + "\r\n", "twice": good, "twice, once wrong": "X-Porchlight-Key: plp_x\r\n", "twice, once empty": "X-Porchlight-Key:\r\n",
	}
	for _, origin := range []string{"https://evil.test", "null", "http://" + mine.host, "https://" + on.backends[1].host, "https://" + mine.host + ".evil.test", ""} {
		for _, site := range []string{"", "cross-site", "same-site", "none", "same-origin", "else"} {
			if origin == "" && (site == "" || site == "none" || site == "same-origin") {
				continue
			}
			fields := ""
			if origin != "" {
				fields = "Origin: " + origin + "\r\n"
			}
			if site != "" {
				fields += "Sec-Fetch-Site: " + site + "\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
			}
			refused["of "+origin+" "+site] = fields
		}
	}
	for what, fields := range refused {
		for _, method := range []string{"GET", "PUT", "POST", "OPTIONS", "PROPFIND"} {
			got, err := ask(mine, method+" /hello", good+fields)
			if err != nil {
				return err
			}
			t.try(1)
			if got.status < 400 {
				t.got("%s, %s gets %d", method, what, got.status)
			}
			got, err = ask(mine, "OPTIONS /hello", "Origin: https://evil.test\r\nAccess-Control-Request-Method: "+method+"\r\nAccess-Control-Request-Headers: a, x-porchlight-key\r\n"+fields)
			if err != nil {
				return err
			}
			t.try(1)
			if allowed := strings.Join(got.header["Access-Control-Allow-Headers"], ","); strings.Contains(strings.ToLower(allowed), "porchlight") || strings.Contains(allowed, "*") {
				t.got("a preflight, %s, allows %q", what, allowed)
			}
		}
	}
	_, password, _ := strings.Cut(strings.TrimSpace(good), " ")
	for _, target := range []string{"/hello?X-Porchlight-Key=", "/hello?key=", "/hello;X-Porchlight-Key=", "/"} {
		got, err := ask(mine, "GET "+target+password, "")
		if err != nil {
			return err
		}
		t.try(1)
		if got.status == 200 {
			t.got("in %s it opens the app", target)
		}
	}
	return nil
}

// looksForKey looks through what every app was sent.
func (on *ground) looksForKey(password string, t *tally) error {
	for _, b := range on.backends {
		b.tap.close()
		for _, w := range b.tap.messages() {
			for _, field := range append(w.fields, w.trailers...) {
				name, value, _ := strings.Cut(field, ":")
				if folded(name) == "x-porchlight-key" || strings.Contains(value, password[:16]) {
					t.got("%s was sent %.40q", b.name, field)
				}
			}
		}
	}
	return nil
}
