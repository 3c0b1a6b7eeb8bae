package dnsupdate

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"porchlight/test/nameserver"
	"porchlight/test/programs"
)

// mostTogether is how many updates run at once.
const mostTogether = atOnce

const (
	challenge = "gfj9Xq6dT8ofbZNc9kE8dEAbLqPLLBWi7hqNzqJ5MqQ"
	name      = "_acme-challenge.maya.porch.example"
	aKey      = "key \"porchlight\" {\n\talgorithm hmac-sha256;\n\tsecret \"%s\";\n};\n"
	secret    = "c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0"
)

// A real server takes values, others in their place, and none; it refuses another key, another
// secret, and what the key may not change, and each is told in a sentence.
func TestBIND(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	programs.Must(t, os.WriteFile(file, fmt.Appendf(nil, aKey, secret), 0o600))
	address := nameserver.BIND(t, "porch.example", fmt.Sprintf(aKey, secret))
	key := programs.Got(ReadKey(file))(t)
	updater := New(Config{Server: address, Zone: "porch.example", Key: key})
	there := func() (values []string) {
		a := programs.Got(dns.Exchange(new(dns.Msg).SetQuestion(name+".", dns.TypeTXT), address))(t)
		for _, rr := range a.Answer {
			values = append(values, strings.Join(rr.(*dns.TXT).Txt, ""))
		}
		slices.Sort(values)
		return values
	}
	for _, values := range [][]string{{challenge}, {challenge, challenge[1:] + "x"}, {challenge[1:] + "x"}, nil, nil} {
		programs.Must(t, updater.Set(t.Context(), name, values))
		want := slices.Sorted(slices.Values(values))
		if got := there(); !slices.Equal(got, want) {
			t.Errorf("the DNS says %q, want %q", got, want)
		}
	}
	for what, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"another secret":   {func(c *Config) { c.Key.secret = strings.ToUpper(secret) }, "--dns-update-key"},
		"an unknown key":   {func(c *Config) { c.Key.Name = "nobody." }, "--dns-update-key"},
		"another zone":     {func(c *Config) { c.Zone = "elsewhere.example" }, "--dns-zone"},
		"nobody there":     {func(c *Config) { c.Server = programs.FreeAddress(t) }, "does not answer"},
		"outside its part": {func(c *Config) {}, "allow it that"},
	} {
		cfg := Config{Server: address, Zone: "porch.example", Key: key}
		c.change(&cfg)
		at := map[bool]string{true: "porch.example", false: name}[what == "outside its part"]
		err := New(cfg).Set(t.Context(), at, []string{challenge})
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := there(); len(got) != 0 {
		t.Errorf("refused, and there: %q", got)
	}
}

// Weakness: the library takes an answer that nobody signed, and anybody on the way can say that a
// change was made. Checked: such a word of success is an error (RFC 8945, section 5.3).
func TestUnsignedAnswer(t *testing.T) {
	t.Parallel()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := &dns.Server{Listener: l, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetReply(q)) // who asked says how it went
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	u := New(Config{Server: l.Addr().String(), Zone: "porch.example", Key: Key{"k.", dns.HmacSHA256, secret}})
	if err := u.Set(t.Context(), name, []string{challenge}); err == nil || !strings.Contains(err.Error(), "--dns-update-key") {
		t.Errorf("a word that nobody signed: %v", err)
	}
	l.Close()
	<-ended
}

// A server that says nothing keeps a few waiting for some seconds, and no more at once.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	u := New(Config{Server: l.Addr().String(), Zone: "porch.example", Key: Key{"k.", dns.HmacSHA256, secret}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, mostTogether)
	for range mostTogether {
		go func() { ended <- u.Set(ctx, name, nil) }()
	}
	for range mostTogether {
		conn := programs.Got(l.Accept())(t)
		defer conn.Close()
	}
	late, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := u.Set(late, name, nil); err == nil || !strings.Contains(err.Error(), "too much at once") {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for range mostTogether {
		if err := <-ended; err == nil {
			t.Error("a server that says nothing took it")
		}
	}
}

func TestReadKey(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		text string
		mode os.FileMode
		good bool
	}{
		"as tsig-keygen writes it": {fmt.Sprintf(aKey, secret), 0o600, true},
		"for a group":              {fmt.Sprintf(aKey, secret), 0o640, true},
		"without quotes":           {"key porchlight { algorithm hmac-sha512; secret " + secret + "; };", 0o600, true},
		"for everybody":            {fmt.Sprintf(aKey, secret), 0o644, false},
		"a short secret":           {fmt.Sprintf(aKey, "c2hvcnQ="), 0o600, false},
		"an old algorithm":         {strings.Replace(fmt.Sprintf(aKey, secret), "sha256", "md5", 1), 0o600, false},
		"two keys":                 {fmt.Sprintf(aKey+aKey, secret, secret), 0o600, false},
		"nothing":                  {"", 0o600, false},
		"much":                     {fmt.Sprintf(aKey, secret) + strings.Repeat("\n", maxFile), 0o600, false},
	} {
		file := filepath.Join(t.TempDir(), "key")
		programs.Must(t, os.WriteFile(file, []byte(c.text), c.mode), os.Chmod(file, c.mode))
		key, err := ReadKey(file)
		if good := err == nil && key.Name == "porchlight." && key.secret == secret; good != c.good {
			t.Errorf("%s: %+v, %v", what, key.Name, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the secret is told: %v", what, err)
		}
	}
}
