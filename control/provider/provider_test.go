package provider_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/control/controlapi"
	"porchlight/control/provider"
	"porchlight/internal/words"
	"porchlight/test/issuer"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that moves when a test says so.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) Add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

type rig struct {
	t     *testing.T
	i     *issuer.Issuer
	p     *provider.Provider
	clock *clock
}

func newRig(t *testing.T, change ...func(*provider.Config)) *rig {
	t.Helper()
	r := &rig{t: t, i: issuer.Start(), clock: &clock{now: time.Now()}}
	t.Cleanup(r.i.Close)
	r.i.Now = r.clock.Now
	cfg := r.i.Config("club", "Porch Club", "club.example")
	for _, f := range change {
		f(&cfg)
	}
	r.p = provider.New(cfg, r.clock.Now, nil)
	return r
}

var begun = provider.Begun{
	RedirectURI: "https://control.example/back", State: strings.Repeat("s", 43), Nonce: strings.Repeat("n", 43), Verifier: strings.Repeat("v", 43),
}

// signIn is one of maya's.
func (r *rig) signIn(ctx context.Context, between ...func()) error {
	r.t.Helper()
	address, err := r.p.Begin(ctx, begun, 0)
	if err != nil {
		return err
	}
	back := programs.Got(url.Parse(r.i.SignIn(address, map[string]any{"sub": "1", "email": "maya@club.example"})))(r.t)
	for _, do := range between {
		do()
	}
	claims, err := r.p.Finish(ctx, begun, back.Query())
	if err == nil && (claims.Subject != "1" || claims.Email != "maya@club.example") {
		r.t.Errorf("it is %+v", claims)
	}
	return err
}

func (r *rig) says(what string, err error, sentence, german string) {
	r.t.Helper()
	refusal, ok := err.(*controlapi.Error)
	if !ok || !strings.Contains(refusal.Error(), sentence) || !strings.Contains(words.German.Tell(refusal.Sentence()), german) {
		r.t.Errorf("%s: %v", what, err)
	}
}

// A provider that is down keeps nobody from starting; it is asked again when somebody wants
// it, and not more often than every ten seconds; and what it said once counts on.
func TestProviderIsDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.i.Away(true)
	for range 3 {
		r.says("down", r.signIn(t.Context()), "Porch Club does not answer just now", "Porch Club antwortet gerade nicht")
	}
	r.says("the button", r.p.Away(), "Porch Club does not answer just now", "antwortet gerade nicht")
	if n := r.i.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("it was asked %d times at once", n)
	}
	r.i.Away(false)
	r.clock.Add(10 * time.Second)
	programs.Must(t, r.signIn(t.Context()))
	if err := r.p.Away(); err != nil {
		t.Errorf("the button says %v", err)
	}
	r.says("down in between", r.signIn(t.Context(), func() { r.i.Away(true) }), "Porch Club does not answer just now", "antwortet gerade nicht")
	if err := r.p.Away(); err != nil {
		t.Errorf("the button says %v", err)
	}
}

// Run finds a provider that comes up later, and ends with its context.
func TestProviderIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := programs.Run(t, func(ctx context.Context) error { _ = r.p.Run(ctx); return nil })
	programs.Eventually(t, "what it says of itself is read", func() bool { return r.i.Asked("/.well-known/openid-configuration") == 1 })
	stop()
	programs.Must(t, r.signIn(t.Context()))
	if n := r.i.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestProviderIsSlow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.says("slow", r.signIn(t.Context(), func() { r.i.Hang(true) }), "Porch Club took longer than ten seconds", "länger als zehn Sekunden")
	r.i.Hang(false)
}

// Weakness: whoever waits for a provider that hangs waits on after they have gone. Checked: who
// goes away while another asks it is gone at once.
func TestProviderIsWaitedForNoLonger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.i.Hang(true)
	asks, stop := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- r.signIn(asks) }()
	programs.Eventually(t, "it is asked", func() bool { return r.i.Asked("/.well-known/openid-configuration") == 1 })
	gone, leave := context.WithCancel(t.Context())
	leave()
	r.says("gone", r.signIn(gone), "Porch Club does not answer", "antwortet gerade nicht")
	select {
	case err := <-first:
		t.Error("who asks was ended, too:", err)
	default:
	}
	stop()
	<-first
	r.i.Hang(false)
	programs.Must(t, r.signIn(t.Context()))
}

// New keys are fetched when a token names one; a key that is not shown is none; and who
// makes keys up has them fetched every five seconds, no more.
func TestProviderChangesItsKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	programs.Must(t, r.signIn(t.Context()))
	r.i.Rotate(true)
	r.clock.Add(5 * time.Second)
	programs.Must(t, r.signIn(t.Context()))
	r.i.Rotate(false)
	before := r.i.Asked("/keys")
	for range 5 {
		r.says("a key that is not shown", r.signIn(t.Context()), "signed with a key that it does not show", "Schlüssel unterschrieben, den es nicht zeigt")
		if _, err := r.p.SignedOut(t.Context(), r.i.Logout(map[string]any{"sub": "1"})); err == nil {
			t.Error("a logout token of it is taken")
		}
	}
	if n := r.i.Asked("/keys") - before; n > 1 {
		t.Errorf("its keys were fetched %d times", n)
	}
}

// Weakness: a token signed by nobody, or by what everybody knows, is taken. Checked: neither is.
func TestUnsignedTokensAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.i.Change("token", func(answer map[string]any) {
		parts := strings.Split(answer["id_token"].(string), ".")
		answer["id_token"] = "eyJhbGciOiJub25lIn0." + parts[1] + "."
	})
	r.says("alg none", r.signIn(t.Context()), "signed with a key that it does not show", "Schlüssel unterschrieben, den es nicht zeigt")
	r.i.Change("token", func(answer map[string]any) { delete(answer, "id_token") })
	r.says("no token", r.signIn(t.Context()), "was not for this sign-in", "gehört nicht zu dieser Anmeldung")
}

// Weakness: what a provider names leads into the server's own network, or what it sends has
// no end. Checked: without "private" nothing there is asked; nothing but https:// is, but on
// this machine; it leads nowhere else; and much is too much.
func TestProviderIsAskedCarefully(t *testing.T) {
	t.Parallel()
	public := newRig(t, func(c *provider.Config) { c.Private = false })
	if err := public.signIn(t.Context()); err == nil || public.i.Asked("/.well-known/openid-configuration") > 0 {
		t.Errorf("a provider of this machine was asked: %v", err)
	}
	for what, change := range map[string]func(map[string]any){
		"another issuer":     func(d map[string]any) { d["issuer"] = "https://elsewhere.example" },
		"tokens without TLS": func(d map[string]any) { d["token_endpoint"] = "http://192.0.2.1/token" },
		"keys without TLS":   func(d map[string]any) { d["jwks_uri"] = "http://192.0.2.1/keys" },
		"people without TLS": func(d map[string]any) { d["authorization_endpoint"] = "http://192.0.2.1/" },
		"no address":         func(d map[string]any) { delete(d, "token_endpoint") },
		"a script":           func(d map[string]any) { d["authorization_endpoint"] = "javascript:alert(1)" },
		"without end":        func(d map[string]any) { d["more"] = strings.Repeat("x", 300<<10) },
	} {
		r := newRig(t)
		r.i.Change("discovery", change)
		r.says(what, r.signIn(t.Context()), "does not answer", "antwortet gerade nicht")
	}
	r := newRig(t)
	r.i.Change("discovery", func(d map[string]any) { d["token_endpoint"] = r.i.URL + "/away" })
	r.i.Lead("/away", r.i.URL+"/token")
	r.says("an answer that leads elsewhere", r.signIn(t.Context()), "was not for this sign-in", "gehört nicht zu dieser Anmeldung")
}

// TestReadFile: what cannot work is refused with what to change.
func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		programs.Must(t, os.WriteFile(path, []byte(content), 0o600))
		programs.Must(t, os.Chmod(path, mode))
		return path
	}
	write("secret", "s e+c/ret\n", 0o600)
	write("open", "secret\n", 0o604)
	write("empty", "\n", 0o600)
	const good = `{"name":"club","issuer":"https://id.example","clientId":"porchlight","clientSecretFile":"secret","label":"Porch Club","domains":["club.example","BÜCHER.example"]}`
	c := programs.Got(provider.ReadFile(write("good.json", good, 0o644)))(t)
	if c.Secret != "s e+c/ret" || !c.SpeaksFor("x@xn--bcher-kva.example") || c.SpeaksFor("x@a.club.example") || c.SpeaksFor("club.example@x.example") {
		t.Errorf("%+v", c)
	}
	for change, want := range map[string]string{
		`"club" "Club"`:                             "is no name",
		`"name" "nom"`:                              "not the JSON of a provider",
		`https://id.example http://id.example`:      "is no issuer",
		`https://id.example https://id.example?x=1`: "is no issuer",
		`https://id.example http://127.0.0.1:9`:     "is no issuer",
		`"porchlight" ""`:                           "clientId is missing",
		`"secret" ""`:                               "clientSecretFile is missing",
		`"secret" "open"`:                           "chmod 600",
		`"secret" "empty"`:                          "does not hold a client secret",
		`"secret" "nowhere"`:                        "cannot read the client secret",
		`Porch\ Club ` + strings.Repeat("x", 41):    "label is what",
		`"club.example" "localhost"`:                "is no domain",
		`}  }{}`:                                    "more than one provider",
	} {
		from, to, _ := strings.Cut(strings.ReplaceAll(change, `\ `, "\x00"), " ")
		bad := strings.Replace(good, strings.ReplaceAll(from, "\x00", " "), strings.TrimSpace(to), 1)
		_, err := provider.ReadFile(write("bad.json", bad, 0o644))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "(--oidc)") || strings.Contains(err.Error(), "ret\"") {
			t.Errorf("%s: %v", change, err)
		}
	}
	if _, err := provider.ReadFile(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there")
	}
}
