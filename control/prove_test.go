package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"porchlight/control/clientdoc"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// keyHost is where a client that signs keeps its keys.
type keyHost struct {
	mu    sync.Mutex
	asked int
	set   []byte
	err   error
}

func (h *keyHost) get(context.Context, string) ([]byte, time.Duration, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.set, time.Hour, h.err
}

// signer is a client that signs, by the key of ES256.
type signer struct {
	*bench
	host *keyHost
}

// signing has a client whose document says this.
func signing(t testing.TB, d document) signer {
	t.Helper()
	host := &keyHost{set: keySet(t, nil, "ES256")}
	s := signer{newBench(t, func(cfg *Config) { cfg.Fetch = host.get }), host}
	programs.Must(t, s.Clients.Allow(t.Context(), "assistant.example"))
	s.putSigner(d)
	return s
}

func (b *bench) putSigner(d document) {
	b.t.Helper()
	d.Host, d.Read, d.Asked, d.Until = "assistant.example", b.clock.Now(), b.clock.Now(), b.clock.Now().Add(time.Hour)
	b.keep(keyClient(signingClient), client{ID: signingClient, Name: "Assistant", RedirectURIs: []string{appRedirect}, Document: &d})
}

// untilKeysAreRead lets the time go by after which keys are fetched again.
func (b *bench) untilKeysAreRead() { b.clock.Add(keysAskedEvery) }

// isUnknownKey says whether a signature was refused for its key alone.
func isUnknownKey(err error) bool { return errors.Is(err, errUnknownKey) }

// signedBy are credentials signed by the key of an algorithm.
func (b *bench) signedBy(alg string) Credentials {
	b.t.Helper()
	return Credentials{ID: signingClient, Assertion: signed(b.t, alg, nil, claimsAt(b.clock.Now()))}
}

func (s signer) authenticate(c Credentials) error { return s.Clients.Authenticate(s.t.Context(), c) }

// A client that signs is known by its assertions and by nothing else, and nobody else by
// one.
func TestClientsThatSign(t *testing.T) {
	t.Parallel()
	s := signing(t, document{JWKS: keySet(t, nil, "ES256")})
	confidential := s.registered()
	public := ok[Client](t)(s.Clients.AddPublic(t.Context(), "Pocket Editor", []string{"cursor://anysphere/cb"}))
	good := s.signedBy("ES256")
	programs.Must(t, s.authenticate(good))
	programs.Must(t, s.authenticate(Credentials{Assertion: s.signedBy("ES256").Assertion})) // it says whose it is
	as := func(id string) Credentials {
		claims := claimsAt(s.clock.Now())
		claims["iss"], claims["sub"] = id, id
		return Credentials{ID: id, Assertion: signed(t, "ES256", nil, claims)}
	}
	for what, cred := range map[string]Credentials{
		"the id alone":                     {ID: signingClient},
		"a secret":                         {ID: signingClient, Secret: aSecret()},
		"an empty assertion":               {ID: signingClient},
		"a used one":                       good,
		"another's key":                    s.signedBy("EdDSA"),
		"no assertion":                     {ID: signingClient, Assertion: "x"},
		"of a client with a secret":        as(confidential.ID),
		"of a public client":               as(public.ID),
		"of nobody":                        as("https://other.example/client.json"),
		"another's, under one's own id":    {ID: public.ID, Assertion: s.signedBy("ES256").Assertion},
		"one's own, under an id with more": {ID: signingClient + "/", Assertion: s.signedBy("ES256").Assertion},
	} {
		wantRefusal(t, s.authenticate(cred), controlapi.CodeInvalidClient)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	if n := s.rows("assertion/"); n != 2 {
		t.Errorf("%d assertions are remembered: strangers make the store write", n)
	}
}

// Keys that are kept elsewhere are fetched once while they are fresh, a new one is looked
// for, and no more than once in five minutes, whoever asks.
func TestKeysElsewhere(t *testing.T) {
	t.Parallel()
	s := signing(t, document{JWKSURI: "https://assistant.example/keys"})
	asked := func(want int) {
		t.Helper()
		if s.host.asked != want {
			t.Errorf("asked %d times, not %d", s.host.asked, want)
		}
	}
	var wg sync.WaitGroup
	for range 10 {
		c := s.signedBy("ES256")
		wg.Go(func() {
			if err := s.authenticate(c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	asked(1)
	for range 5 { // a stranger, or a key that came a moment ago
		if err := s.authenticate(s.signedBy("EdDSA")); !isUnknownKey(err) {
			t.Error(err)
		}
	}
	asked(1)
	s.untilKeysAreRead()
	s.host.set = keySet(t, nil, "ES256", "EdDSA")
	programs.Must(t, s.authenticate(s.signedBy("ES256")))
	asked(1)
	programs.Must(t, s.authenticate(s.signedBy("EdDSA")))
	asked(2)
	other := s.node()
	programs.Must(t, other.Clients.Authenticate(t.Context(), s.signedBy("EdDSA")))
	asked(2)
	s.clock.Add(time.Hour)
	s.host.set = keySet(t, nil, "EdDSA") // the other was taken back
	if err := s.authenticate(s.signedBy("ES256")); !isUnknownKey(err) {
		t.Error(err)
	}
	asked(3)
	s.putSigner(document{JWKSURI: "https://assistant.example/moved"})
	programs.Must(t, s.authenticate(s.signedBy("EdDSA")))
	asked(4)
}

// While the host of the keys is away the last ones count, for seven days; one that answers
// with something else has no keys any more.
func TestKeysAway(t *testing.T) {
	t.Parallel()
	s := signing(t, document{JWKSURI: "https://assistant.example/keys"})
	s.host.err = fmt.Errorf("%w: no answer", clientdoc.ErrAway)
	wantRefusal(t, s.authenticate(s.signedBy("ES256")), controlapi.CodeUnavailable)
	s.untilKeysAreRead()
	s.host.err = nil
	programs.Must(t, s.authenticate(s.signedBy("ES256")))
	s.host.err = clientdoc.ErrAway
	for range 6 {
		s.clock.Add(24 * time.Hour)
		programs.Must(t, s.authenticate(s.signedBy("ES256")))
	}
	s.clock.Add(24 * time.Hour)
	wantRefusal(t, s.authenticate(s.signedBy("ES256")), controlapi.CodeUnavailable)
	s.untilKeysAreRead()
	s.host.err = nil
	programs.Must(t, s.authenticate(s.signedBy("ES256")))
	s.clock.Add(time.Hour)
	s.host.err = errors.New("its address answers with status 404")
	wantRefusal(t, s.authenticate(s.signedBy("ES256")), controlapi.CodeUnavailable)
	for _, set := range []string{`{"keys":7}`, `no JSON`} {
		s.untilKeysAreRead()
		s.host.set, s.host.err = []byte(set), nil
		wantRefusal(t, s.authenticate(s.signedBy("ES256")), controlapi.CodeUnavailable)
	}
}

// Keys that are in the document itself are by the same rules: a new one is looked for once in
// five minutes, one that was taken back ends with the document's time, and a document that
// was withdrawn has none.
func TestKeysInTheDocument(t *testing.T) {
	t.Parallel()
	b, e := newEditorBench(t)
	publish := func(algs ...string) {
		e.also = `,"token_endpoint_auth_method":"private_key_jwt","jwks":` + string(keySet(t, nil, algs...))
	}
	by := func(alg string) error {
		claims := claimsAt(b.clock.Now())
		claims["iss"], claims["sub"] = editorID, editorID
		return b.Clients.Authenticate(t.Context(), Credentials{Assertion: signed(t, alg, nil, claims)})
	}
	asked := func(want int) {
		t.Helper()
		if n := e.asks(); n != want {
			t.Errorf("asked %d times, not %d", n, want)
		}
	}
	publish("ES256")
	programs.Must(t, b.Clients.Describe(t.Context(), anID(), editorID))
	asked(1)
	publish("ES256", "EdDSA")
	for range 3 {
		if err := by("EdDSA"); !isUnknownKey(err) {
			t.Error(err)
		}
	}
	asked(0)
	b.untilKeysAreRead()
	programs.Must(t, by("ES256"))
	asked(0)
	programs.Must(t, by("EdDSA"))
	asked(1)
	publish("EdDSA")
	b.clock.Add(time.Hour)
	if err := by("ES256"); !isUnknownKey(err) {
		t.Errorf("one that was taken back: %v", err)
	}
	asked(1)

	e.problem = clientdoc.ErrAway
	b.clock.Add(lastGood - time.Second)
	programs.Must(t, by("EdDSA"))
	programs.Must(t, by("EdDSA"))
	asked(1)
	b.clock.Add(time.Second)
	wantRefusal(t, by("EdDSA"), controlapi.CodeUnavailable)
	b.untilKeysAreRead()
	e.problem = nil
	programs.Must(t, by("EdDSA"))
	b.clock.Add(time.Hour)
	e.problem = errors.New("its address answers with status 404")
	wantRefusal(t, by("EdDSA"), controlapi.CodeUnavailable)
	b.untilKeysAreRead()
	e.problem, e.also = nil, ""
	wantRefusal(t, by("EdDSA"), controlapi.CodeInvalidClient)
	asked(3)
	programs.Must(t, b.Clients.Authenticate(t.Context(), Credentials{ID: editorID})) // it is public now
}

// A client that signs very often waits; taking its access away does not.
func TestAssertionsArePaced(t *testing.T) {
	t.Parallel()
	s := signing(t, document{JWKS: keySet(t, nil, "ES256")})
	for range bucketAssertions.Size {
		s.Clients.provers.paces.Take(s.clock.Now(), signingClient)
	}
	err := s.authenticate(s.signedBy("ES256"))
	wantRefusal(t, err, controlapi.CodeUnavailable)
	if refusal, _ := errors.AsType[*controlapi.Error](err); refusal == nil || refusal.RetryAfter <= 0 {
		t.Errorf("%+v", refusal)
	}
	for range 3 { // a stranger's tries are not counted
		wantRefusal(t, s.authenticate(s.signedBy("EdDSA")), controlapi.CodeInvalidClient)
	}
	programs.Must(t, s.Grants.Revoke(t.Context(), s.signedBy("ES256"), "unknown"))
	s.clock.Add(bucketAssertions.Refill)
	programs.Must(t, s.authenticate(s.signedBy("ES256")))
}
