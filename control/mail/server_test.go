package mail

import (
	"strings"
	"testing"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]server{
		"smtp://mail.example.net":                    {host: "mail.example.net", port: 587, startTLS: true},
		"smtp://u:p%40ss@mail.example.net:2525":      {host: "mail.example.net", port: 2525, startTLS: true, user: "u", password: "p@ss"},
		"smtps://u%40example.net:p@mail.example.net": {host: "mail.example.net", port: 465, implicit: true, user: "u@example.net", password: "p"},
		"smtp://127.0.0.1:25":                        {host: "127.0.0.1", port: 25},
		"smtp://localhost:25":                        {host: "localhost", port: 25},
		"smtp://[::1]:25/":                           {host: "::1", port: 25},
		"smtp://127.0.0.1:25?starttls=required":      {host: "127.0.0.1", port: 25, startTLS: true},
		"smtp://u:p@127.0.0.1:25":                    {host: "127.0.0.1", port: 25, startTLS: true, user: "u", password: "p"},
		"smtp://relay.lan.example:25?starttls=never": {host: "relay.lan.example", port: 25},
	} {
		if got, err := parseServer(raw, ""); err != nil || got != want {
			t.Errorf("%s is %+v, %v", raw, got, err)
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
	if want := (server{host: "mail.example.net", port: 587, startTLS: true, user: "u", password: "p@ss secret"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, raw := range []string{"smtp://mail.example.net", "smtp://u:p@mail.example.net", "smtp://u@mail.example.net?starttls=never"} {
		if got, err := parseServer(raw, "secret"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is %+v, %v", raw, got, err)
		}
	}
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
