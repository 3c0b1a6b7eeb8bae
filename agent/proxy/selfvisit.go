package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"porchlight/internal/words"
)

// This computer's own visits, by which its owner learns whether an address works: out
// into the network, and back in by relay and tunnel like anybody's. A visit carries a
// number that is worth something once and for as long as it is under way, and no
// credential. That the answer is ours, and that nobody in between could read it, show the
// keys of the connection: both of its ends are here, and derive the same (RFC 9266).

// pathVisit answers a visit of ours. Anybody else finds nothing there.
const pathVisit = ourPath + "visit"

// headerVisit carries the number.
const headerVisit = "Porchlight-Visit"

// exporter names the keys of a connection for this use (RFC 5705), which say nothing
// about its others.
const exporter = "EXPORTER-porchlight-own-visit"

// maxOwnVisits is how many may be under way.
const maxOwnVisits = 8

// errElsewhere is of a visit that another program answered, or had in its hands.
var errElsewhere = errors.New("the visit came out elsewhere")

// ownVisits are those under way.
type ownVisits struct {
	mu   sync.Mutex
	came map[string][]byte // number → keys of the connection it came by, nil until then
}

// begin makes a number.
func (o *ownVisits) begin() (number string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.came) >= maxOwnVisits {
		return "", false
	}
	if o.came == nil {
		o.came = map[string][]byte{}
	}
	number = rand.Text()
	o.came[number] = nil
	return number, true
}

// arrived notes a visit; false for what is none of ours, or came before.
func (o *ownVisits) arrived(number string, keys []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, ours := o.came[number]; !ours || before != nil {
		return false
	}
	o.came[number] = keys
	return true
}

// end forgets a number, and returns the keys it came with.
func (o *ownVisits) end(number string) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := o.came[number]
	delete(o.came, number)
	return keys
}

// visited answers a visit of ours.
func (p *Proxy) visited(r *http.Request) *answer {
	if r.Method != http.MethodGet || len(r.Header[headerVisit]) != 1 {
		return nothingHere()
	}
	keys, err := keysOf(r.TLS)
	if err != nil || !p.own.arrived(r.Header.Get(headerVisit), keys) {
		return nothingHere()
	}
	return &answer{Status: http.StatusNoContent, close: true}
}

// Visit goes to an app's address, or to the launcher's for an empty name, by a transport
// of the caller's, and returns how long the answer took. It is bounded by ctx alone. What
// this computer itself finds wrong is a *words.Failure for its owner.
func (p *Proxy) Visit(ctx context.Context, name string, transport http.RoundTripper) (time.Duration, error) {
	number, ok := p.own.begin()
	if !ok {
		return 0, words.Errorf("Too much is being tried at once. Try again in a moment.")
	}
	took, mine, err := p.visit(ctx, name, number, transport)
	if theirs := p.own.end(number); err == nil && subtle.ConstantTimeCompare(mine, theirs) != 1 {
		err = errElsewhere
	}
	if errors.Is(err, errElsewhere) {
		host := strings.TrimPrefix(originOf(name, p.config.Root()), "https://")
		err = words.Errorf("What answers at %s is not this computer, or somebody in between reads along: a program that looks into encrypted connections, for one.", host)
	}
	return took, err
}

// visit returns the keys of the connection it was answered by.
func (p *Proxy) visit(ctx context.Context, name, number string, transport http.RoundTripper) (took time.Duration, keys []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, originOf(name, p.config.Root())+pathVisit, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot visit: %w", err)
	}
	req.Header.Set(headerVisit, number)
	began := time.Now()
	resp, err := transport.RoundTrip(req) // no redirect is followed
	if err != nil {
		return 0, nil, err
	}
	took = time.Since(began)
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return took, nil, errElsewhere
	}
	keys, err = keysOf(resp.TLS)
	return took, keys, err
}

// keysOf a connection, the same at both of its ends.
func keysOf(state *tls.ConnectionState) ([]byte, error) {
	if state == nil {
		return nil, errElsewhere
	}
	return state.ExportKeyingMaterial(exporter, nil, 32)
}
