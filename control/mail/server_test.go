package mail

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{ // host, port, how it is encrypted, user and password
		"smtp://mail.example.net":                    "mail.example.net 587 starttls  ",
		"smtp://u:p%40ss@mail.example.net:2525":      "mail.example.net 2525 starttls u p@ss",
		"smtps://u%40example.net:p@mail.example.net": "mail.example.net 465 implicit u@example.net p",
		"smtp://127.0.0.1:25":                        "127.0.0.1 25 plain  ",
		"smtp://localhost:25":                        "localhost 25 plain  ",
		"smtp://[::1]:25/":                           "::1 25 plain  ",
		"smtp://127.0.0.1:25?starttls=required":      "127.0.0.1 25 starttls  ",
		"smtp://u:p@127.0.0.1:25":                    "127.0.0.1 25 starttls u p",
		"smtp://relay.lan.example:25?starttls=never": "relay.lan.example 25 plain  ",
	} {
		if got, err := parseServer(raw, ""); err != nil || spelled(got) != want {
			t.Errorf("%s is %s, %v", raw, spelled(got), err)
		}
	}
	for _, raw := range []string{
		"", "mail.example.net:587", "http://mail.example.net", "smtp://", "smtp://:587", "smtp://u:secret@", "smtp://mail.example.net:0",
		"smtp://mail.example.net:99999", "smtp://mail.example.net/path", "smtp://mail.example.net#x", "smtp:opaque",
		"smtp://u@mail.example.net", "smtp://u:secret@mail.example.net?starttls=never", "smtp://u:secret@127.0.0.1?starttls=never",
		"smtps://mail.example.net?starttls=never", "smtp://mail.example.net?tls=no", "smtp://mail.example.net?starttls=maybe",
		"smtp://u:secret%zz@mail.example.net", "smtp://u:secret@mail.example.net:port",
	} {
		if got, err := parseServer(raw, ""); err == nil {
			t.Errorf("%s is %+v", raw, got)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error holds the password: %v", raw, err)
		}
	}
}

func TestParseServerWithAPasswordBeside(t *testing.T) {
	t.Parallel()
	got, err := parseServer("smtp://u@mail.example.net", "p@ss secret")
	if want := "mail.example.net 587 starttls u p@ss secret"; err != nil || spelled(got) != want {
		t.Errorf("%s, %v", spelled(got), err)
	}
	for _, raw := range []string{"smtp://mail.example.net", "smtp://u:p@mail.example.net", "smtp://u@mail.example.net?starttls=never"} {
		if got, err := parseServer(raw, "secret"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is %+v, %v", raw, got, err)
		}
	}
}

func spelled(s server) string {
	how := map[[2]bool]string{{true, false}: "starttls", {false, true}: "implicit", {}: "plain"}[[2]bool{s.startTLS, s.implicit}]
	return fmt.Sprint(s.host, " ", s.port, " ", how, " ", s.user, " ", s.password)
}

func FuzzParseServer(f *testing.F) {
	f.Add("smtp://user:password@host:587?starttls=required", "")
	f.Add("smtp://user@host", "password")
	f.Add("smtps://[::1]:465/", "")
	f.Fuzz(func(t *testing.T, raw, password string) {
		s, err := parseServer(raw, password)
		if err != nil {
			return
		}
		if s.host == "" || s.port < 1 || s.port > 65535 || s.user != "" && !s.implicit && !s.startTLS {
			t.Fatalf("%q is %+v", raw, s)
		}
	})
}
