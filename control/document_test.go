package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control/clientdoc"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// documentPlaces is how many clients that describe themselves are kept.
const documentPlaces = maxDocuments

const (
	editorHost     = "editor.example"
	editorID       = "https://editor.example/client.json"
	editorRedirect = "http://127.0.0.1/callback"
)

// editors answer for every address with a document of it, until a test says otherwise.
type editors struct {
	mu      sync.Mutex
	asked   []string
	name    string
	also    string // further members
	fresh   time.Duration
	problem error
	wait    chan struct{} // nil for at once
}

func newEditors() *editors { return &editors{name: "Editor", fresh: time.Hour} }

func (e *editors) fetch(_ context.Context, address string) ([]byte, time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, address)
	if e.wait != nil {
		<-e.wait
	}
	return fmt.Appendf(nil, `{"client_id":%q,"client_name":%q,"redirect_uris":["javascript:alert(1)",%q,"https://editor.example/done","https://elsewhere.example/x","cursor://x/cb"]%s}`,
		address, e.name, editorRedirect, e.also), e.fresh, e.problem
}

// asks says how often was asked since the last time.
func (e *editors) asks() int {
	n := len(e.asked)
	e.asked = nil
	return n
}

func newEditorBench(t *testing.T) (*bench, *editors) {
	e := newEditors()
	b := newBench(t, func(c *Config) { c.Fetch = e.fetch })
	programs.Must(t, b.Clients.Allow(t.Context(), editorHost))
	return b, e
}

func (b *bench) editor() registered {
	return registered{b, Credentials{ID: editorID}, "http://127.0.0.1:40123/callback"}
}

func TestHostsAreAllowedByTheirNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wantRefusal(t, b.Clients.Describe(t.Context(), anID(), editorID), controlapi.CodeInvalidClient)
	for _, host := range []string{"", "localhost", "control.localhost", "notes.maya.localhost", "https://claude.ai", "claude.ai:443", "*.ai", "Claude.ai", "127.0.0.1", "claude.ai/", ".ai"} {
		wantRefusal(t, b.Clients.Allow(t.Context(), "claude.ai", host), controlapi.CodeInvalid)
	}
	if hosts := ok[[]AllowedHost](t)(b.Clients.Hosts(t.Context())); len(hosts) != 0 {
		t.Errorf("allowed %+v", hosts)
	}
	programs.Must(t, b.Clients.Allow(t.Context(), "claude.ai", "vscode.dev"))
	programs.Must(t, b.Clients.Allow(t.Context(), "claude.ai"))
	if hosts := ok[[]AllowedHost](t)(b.Clients.Hosts(t.Context())); len(hosts) != 2 || hosts[0].Host != "claude.ai" || !hosts[0].AllowedAt.Equal(b.clock.Now()) {
		t.Errorf("allowed %+v", hosts)
	}
	for id, fine := range map[string]bool{
		"https://claude.ai/x": true, "https://claude.ai.evil.example/x": false, "https://a.claude.ai/x": false, "http://claude.ai/x": false, "https://claude.ai": false, "claude.ai": false, anID(): false,
	} {
		if err := b.Clients.MayDescribe(t.Context(), id); (err == nil) != fine || err != nil && !IsRefusal(err, controlapi.CodeInvalidClient) {
			t.Errorf("%s: %v", id, err)
		}
	}
	var many []string
	for n := range controlapi.MaxClientHosts {
		many = append(many, fmt.Sprintf("h%d.example", n))
	}
	wantRefusal(t, b.Clients.Allow(t.Context(), many...), controlapi.CodeInvalid)
	wantRefusal(t, b.Clients.Disallow(t.Context(), editorHost), controlapi.CodeNotFound)
}

// A client that describes itself does all that a public one does, under its address, also
// at another node of the store.
func TestClientThatDescribesItself(t *testing.T) {
	t.Parallel()
	b, _ := newEditorBench(t)
	owner := Account{ID: b.owner().AccountID}
	c := b.editor()
	_, err := c.code(owner, "maya")
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	programs.Must(t, b.node().Clients.Describe(t.Context(), owner.ID, editorID))

	shown := ok[Client](t)(b.Clients.For(t.Context(), editorID, c.redirect))
	if shown.Host != editorHost || shown.Name != "Editor" || !shown.Public || !slices.Equal(shown.RedirectURIs, []string{editorRedirect, "https://editor.example/done"}) {
		t.Errorf("it is %+v", shown)
	}
	for _, uri := range []string{"javascript:alert(1)", "https://elsewhere.example/x", "cursor://x/cb", "https://editor.example/", "http://127.0.0.1/other", "http://localhost/callback"} {
		_, err := b.Clients.For(t.Context(), editorID, uri)
		wantRefusal(t, err, controlapi.CodeInvalidRedirectURI)
	}
	tokens := c.granted(owner, "maya")
	tokens = ok[Tokens](t)(c.use(tokens.Refresh))
	grants := ok[[]AccountGrant](t)(b.Grants.OfAccount(t.Context(), owner.ID))
	if len(grants) != 1 || grants[0].ClientID != editorID || grants[0].ClientName != "Editor" {
		t.Errorf("granted %+v", grants)
	}
	programs.Must(t, b.Grants.Revoke(t.Context(), c.Credentials, tokens.Refresh))
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	told := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), b.owner().Computer.ID)).RevokedGrants
	if len(told) != 1 || told[0].ClientName != editorHost { // what it claims tells nobody who it was
		t.Errorf("that it ended is told as %+v", told)
	}

	_, err = b.Clients.Rotate(t.Context(), editorID)
	wantRefusal(t, err, controlapi.CodeInvalid)
	wantRefusal(t, b.Clients.Authenticate(t.Context(), Credentials{ID: editorID, Secret: aSecret()}), controlapi.CodeInvalidClient)
}

// A document of the same host with a longer address is another client, whose grants stay
// when the first is removed.
func TestDocumentsOfOneHostAreKeptApart(t *testing.T) {
	t.Parallel()
	b, _ := newEditorBench(t)
	owner := Account{ID: b.owner().AccountID}
	short, long := b.editor(), b.editor()
	long.ID = editorID + "/x"
	for _, c := range []registered{short, long} {
		programs.Must(t, b.Clients.Describe(t.Context(), owner.ID, c.ID))
	}
	code, tokens := ok[string](t)(long.code(owner, "maya")), long.granted(owner, "maya")
	_, err := short.exchange(code)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	_, err = short.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	programs.Must(t, b.Clients.Remove(t.Context(), short.ID))
	ok[Tokens](t)(long.use(tokens.Refresh))
	wantRefusal(t, b.Clients.Remove(t.Context(), short.ID), controlapi.CodeNotFound)
}

// Its own headers say how long a document counts; whoever cannot be asked then counts for
// seven days, and who has withdrawn it for none.
func TestDocumentsAreReadAgain(t *testing.T) {
	t.Parallel()
	b, e := newEditorBench(t)
	account := anID()
	describe := func() error { return b.Clients.Describe(t.Context(), account, editorID) }
	programs.Must(t, describe())
	b.clock.Add(time.Hour - time.Second)
	programs.Must(t, describe())
	if n := e.asks(); n != 1 {
		t.Errorf("asked %d times within the time", n)
	}
	b.clock.Add(time.Second)
	e.name = "Editor, renamed"
	programs.Must(t, describe())
	if c := ok[Client](t)(b.Clients.For(t.Context(), editorID, editorRedirect)); e.asks() != 1 || c.Name != e.name {
		t.Errorf("afterwards it is %+v", c)
	}

	e.problem = clientdoc.ErrAway
	b.clock.Add(time.Hour)
	programs.Must(t, describe())
	programs.Must(t, describe())
	if n := e.asks(); n != 1 {
		t.Errorf("a host that is away was asked %d times in a minute", n)
	}
	b.clock.Add(lastGood - time.Hour - time.Second)
	programs.Must(t, describe())
	b.clock.Add(time.Second)
	wantRefusal(t, describe(), controlapi.CodeInvalidClient)
	e.problem = nil
	b.clock.Add(askAgain)
	programs.Must(t, describe())

	e.problem = errors.New("status 404")
	b.clock.Add(time.Hour)
	wantRefusal(t, describe(), controlapi.CodeInvalidClient)
	e.problem = clientdoc.ErrAway // is no reason to believe what was withdrawn
	b.clock.Add(askAgain)
	wantRefusal(t, describe(), controlapi.CodeInvalidClient)
	e.problem = nil
	b.clock.Add(askAgain)
	programs.Must(t, describe())
}

// documents is how many are kept, and grantsOf how many grants a client is noted to have.
func (b *bench) documents() int { b.t.Helper(); return b.rows("client-document/") }

func (b *bench) grantsOf(clientID string) int { b.t.Helper(); return b.rows(keyClientGrants(clientID)) }

// Weakness: whoever is signed in has the host of a known client asked as often as they like,
// and takes every place where hosts are asked. Checked: all wait for one answer.
func TestOneAsksForADocument(t *testing.T) {
	t.Parallel()
	b, e := newEditorBench(t)
	programs.Must(t, b.Clients.Describe(t.Context(), anID(), editorID))
	b.clock.Add(time.Hour)
	e.asks()
	var wg sync.WaitGroup
	for range 10 { // all of whom saw that it is due
		wg.Go(func() {
			if c, err := b.Clients.readDocument(t.Context(), editorID); err != nil || c.ID != editorID {
				t.Error(c, err)
			}
		})
	}
	wg.Wait()
	ok[client](t)(b.Clients.readDocument(t.Context(), editorID)) // so did this one, who comes late
	if n := e.asks(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	b, e := newEditorBench(t)
	for what, also := range map[string]string{
		"a secret":            `,"client_secret":"x"`,
		"a secret shared":     `,"token_endpoint_auth_method":"client_secret_post"`,
		"large keys":          `,"token_endpoint_auth_method":"private_key_jwt","jwks":"` + strings.Repeat("x", maxKeySet) + `"`,
		"redirects elsewhere": `} `,
	} {
		e.also = also
		wantRefusal(t, b.Clients.Describe(t.Context(), anID(), editorID), controlapi.CodeInvalidClient)
		if n := b.documents(); n != 0 {
			t.Errorf("%s: %d rows", what, n)
		}
	}
	// A client with keys sends no id alone, and no secret.
	e.also = `,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}`
	programs.Must(t, b.Clients.Describe(t.Context(), anID(), editorID))
	for _, secret := range []string{"", aSecret()} {
		wantRefusal(t, b.Clients.Authenticate(t.Context(), Credentials{ID: editorID, Secret: secret}), controlapi.CodeInvalidClient)
	}
	_, err := b.Clients.Rotate(t.Context(), editorID)
	wantRefusal(t, err, controlapi.CodeInvalid)
	if !describable("https://editor.example/x", editorHost) || describable("https://editor.example.evil.example/x", editorHost) ||
		describable("https://editor.example:8443/x", editorHost) || describable("https://editor.example@evil.example/", editorHost) || describable("https://editor.example", editorHost) {
		t.Error("redirect URIs are of another host")
	}
}

// Five an hour each, of those that are new; known ones cost nothing.
func TestNewDocumentsArePaced(t *testing.T) {
	t.Parallel()
	b, e := newEditorBench(t)
	account, other := anID(), anID()
	describe := func(account string, n int) error {
		return b.Clients.Describe(t.Context(), account, fmt.Sprintf("%s/%d", editorID, n))
	}
	for n := range 5 {
		programs.Must(t, describe(account, n))
		b.clock.Add(time.Minute)
	}
	e.asks()
	wantRefusal(t, describe(account, 5), controlapi.CodeTooMany)
	wantRefusal(t, b.node().Clients.Describe(t.Context(), account, editorID), controlapi.CodeTooMany)
	if e.asks() != 0 {
		t.Error("a host was asked nevertheless")
	}
	programs.Must(t, describe(other, 5))
	programs.Must(t, describe(account, 5))
	b.clock.Add(time.Hour)
	e.problem = clientdoc.ErrAway
	for n := range 5 {
		wantRefusal(t, describe(account, 10+n), controlapi.CodeInvalidClient)
	}
	wantRefusal(t, describe(account, 16), controlapi.CodeTooMany)
}

// A thousand have a place: one more takes that of the one longest not read, but of none
// with a grant.
func TestPlacesOfDocuments(t *testing.T) {
	t.Parallel()
	b, _ := newEditorBench(t)
	owner := Account{ID: b.owner().AccountID}
	c := b.editor()
	programs.Must(t, b.Clients.Describe(t.Context(), owner.ID, c.ID))
	tokens := c.granted(owner, "maya")
	id := func(n int) string { return fmt.Sprintf("%s/%d", editorID, n) }
	rows := map[string]any{}
	for n := range documentPlaces - 1 {
		rows[keyClient(id(n))] = client{ID: id(n), RedirectURIs: []string{editorRedirect}, Document: &document{Host: editorHost, Read: b.clock.Now().Add(time.Duration(n+1) * time.Second)}}
	}
	b.keepAll(rows)
	b.clock.Add(time.Hour)
	for n := range 3 {
		programs.Must(t, b.Clients.Describe(t.Context(), anID(), id(documentPlaces-1+n)))
	}
	if n := b.documents(); n != documentPlaces {
		t.Errorf("%d have a place", n)
	}
	tokens = ok[Tokens](t)(c.use(tokens.Refresh))
	for n, there := range map[int]bool{2: false, 3: true, documentPlaces + 1: true} {
		if _, err := b.Clients.For(t.Context(), id(n), editorRedirect); (err == nil) != there {
			t.Errorf("the %dth: %v", n, err)
		}
	}
	// Without a grant it is the one longest not read.
	programs.Must(t, b.Grants.Revoke(t.Context(), c.Credentials, tokens.Refresh))
	programs.Must(t, b.Clients.Describe(t.Context(), anID(), id(documentPlaces+2)))
	if _, err := b.Clients.For(t.Context(), editorID, editorRedirect); !IsRefusal(err, controlapi.CodeInvalidClient) {
		t.Errorf("the one without a grant: %v", err)
	}
}

// When all places are of clients with grants there is none, and nobody loses theirs.
func TestNoPlaceForDocuments(t *testing.T) {
	t.Parallel()
	b, _ := newEditorBench(t)
	rows := map[string]any{}
	for n := range documentPlaces {
		c := client{ID: fmt.Sprintf("%s/%d", editorID, n), Document: &document{Host: editorHost}}
		rows[keyClient(c.ID)], rows[keyClientGrants(c.ID)+"g"] = c, struct{}{}
	}
	b.keepAll(rows)
	wantRefusal(t, b.Clients.Describe(t.Context(), anID(), editorID), controlapi.CodeInvalidClient)
	if n := b.documents(); n != documentPlaces {
		t.Errorf("%d have a place", n)
	}
}

// What ends with a host: new codes, codes and tokens that are out, at every node, and
// whatever is being fetched; what is of another host stays.
func TestDisallowedHost(t *testing.T) {
	t.Parallel()
	b, e := newEditorBench(t)
	programs.Must(t, b.Clients.Allow(t.Context(), "other.example"))
	owner := b.owner()
	account := Account{ID: owner.AccountID}
	c, other := b.editor(), b.editor()
	other.ID = "https://other.example/client.json"
	for _, c := range []registered{c, other} {
		programs.Must(t, b.Clients.Describe(t.Context(), account.ID, c.ID))
	}
	code, tokens, theirs := ok[string](t)(c.code(account, "maya")), c.granted(account, "maya"), other.granted(account, "maya")

	e.wait = make(chan struct{})
	fetched := make(chan error)
	go func() { fetched <- b.Clients.Describe(t.Context(), anID(), editorID+"/late") }()
	b.until("the host is asked", func() bool { return b.rows(keyBudget("documents", "")) == 2 })
	programs.Must(t, b.Clients.Disallow(t.Context(), editorHost))
	close(e.wait)
	wantRefusal(t, <-fetched, controlapi.CodeInvalidClient)

	_, err := c.code(account, "maya")
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	_, err = c.exchange(code)
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	ok[Tokens](t)(other.use(theirs.Refresh))
	if n := b.documents(); n != 1 {
		t.Errorf("%d are left", n)
	}
	if told := b.rows(keyRevokedGrants(owner.Computer.ID)); told != 1 {
		t.Errorf("the agent is told of %d grants", told)
	}
	programs.Must(t, b.Clients.Allow(t.Context(), editorHost)) // is no way back for what ended
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	programs.Must(t, b.Clients.Describe(t.Context(), account.ID, editorID))
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
}

// Weakness: a disallow that is cut off between the list and the rows leaves clients with
// grants. Checked: meanwhile they get no tokens, and the same again ends them.
func TestDisallowGoesOn(t *testing.T) {
	t.Parallel()
	b, _ := newEditorBench(t)
	owner := Account{ID: b.owner().AccountID}
	c := b.editor()
	programs.Must(t, b.Clients.Describe(t.Context(), owner.ID, c.ID))
	tokens := c.granted(owner, "maya")
	cut := func() {
		t.Helper()
		b.drop("client-hosts")
		_, err := c.use(tokens.Refresh)
		wantRefusal(t, err, controlapi.CodeInvalidClient)
	}
	cut()
	programs.Must(t, b.Clients.AllowOnly(t.Context(), []string{editorHost, "other.example"}))
	tokens = ok[Tokens](t)(c.use(tokens.Refresh))
	cut()
	programs.Must(t, b.Clients.AllowOnly(t.Context(), []string{"other.example"}))
	if n := b.documents() + b.grantsOf(c.ID); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	programs.Must(t, b.Clients.AllowOnly(t.Context(), []string{editorHost}))
	programs.Must(t, b.Clients.Describe(t.Context(), owner.ID, c.ID))
	tokens = c.granted(owner, "maya")
	cut()
	programs.Must(t, b.Clients.Disallow(t.Context(), editorHost))
	if n := b.documents() + b.grantsOf(c.ID); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	wantRefusal(t, b.Clients.Disallow(t.Context(), editorHost), controlapi.CodeNotFound)
}

// breaksAt is a store whose transactions that write fail from the nth on, where n is not 0.
type breaksAt struct {
	kv.Store
	n, writes int
}

func (s *breaksAt) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if s.writes++; s.n > 0 && s.writes >= s.n {
		return errBroken
	}
	return s.Store.Update(ctx, fn)
}

// Weakness: a disallow that is cut off within a client of many grants takes those that are
// left for none. Checked: the same again ends them, too.
func TestDisallowGoesOnWithinAClient(t *testing.T) {
	t.Parallel()
	e, store := newEditors(), &breaksAt{}
	b := newBench(t, func(c *Config) { c.Fetch, store.Store, c.Store = e.fetch, c.Store, store })
	programs.Must(t, b.Clients.Allow(t.Context(), editorHost))
	programs.Must(t, b.Clients.Describe(t.Context(), anID(), editorID))
	rows := map[string]any{}
	for n := range revokeAtOnce + 1 {
		rows[fmt.Sprintf("%sg%03d", keyClientGrants(editorID), n)] = struct{}{}
	}
	b.keepAll(rows)
	store.writes, store.n = 0, 3 // after the list, and the first of them
	if err := b.Clients.Disallow(t.Context(), editorHost); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	store.n = 0
	if n := b.grantsOf(editorID); n != 1 {
		t.Fatalf("%d grants are left in between", n)
	}
	programs.Must(t, b.Clients.Disallow(t.Context(), editorHost))
	if n := b.documents() + b.grantsOf(editorID); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
