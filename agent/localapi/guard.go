package localapi

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
)

// listenerKind is a listener as the guard sees it.
type listenerKind struct {
	owner bool     // the owner's socket
	hosts []string // what Host may be
}

// ownerKind is the owner's socket, which has no port to name.
var ownerKind = listenerKind{owner: true, hosts: []string{"localhost"}}

// openKind is the open tier's listener, unless other computers could reach it.
func openKind(addr net.Addr) (listenerKind, error) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return listenerKind{}, words.Errorf("the loopback API serves this computer alone and refuses to listen on %s", addr)
	}
	port := strconv.Itoa(tcp.Port)
	k := listenerKind{hosts: []string{net.JoinHostPort(tcp.IP.String(), port), "localhost:" + port}}
	if tcp.Port == 80 {
		k.hosts = append(k.hosts, tcp.IP.String(), "localhost")
	}
	return k, nil
}

// guard lets through what a program on this computer sent, and nothing that a
// web page can make a browser send: neither by a name that resolves to this
// computer, nor across origins, nor over a WebSocket. It comes before any
// routing, so that no route can be an exception.
func guard(from listenerKind, next http.Handler, fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(from, r); err != nil {
			fail(w, r, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, agentapi.MaxBody)
		next.ServeHTTP(w, r)
	})
}

func check(from listenerKind, r *http.Request) error {
	if !from.owner {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !peer.Addr().Unmap().IsLoopback() {
			return forbidden("Only programs on this computer may use this.")
		}
	}
	if !from.names(r) {
		return forbidden("This address belongs to Porchlight on this computer. Use http://%s.", from.hosts[0])
	}
	if _, there := r.Header["Origin"]; there {
		return forbidden("Web pages may not use this, only programs on this computer.")
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "none" {
			return forbidden("Web pages may not use this, only programs on this computer.")
		}
	}
	if websocket(r.Header["Upgrade"]) || r.Method == http.MethodConnect {
		return forbidden("This speaks plain HTTP/1.1 and nothing else.")
	}
	// The mux would redirect an address with empty or dot segments elsewhere.
	if p := r.URL.EscapedPath(); !strings.HasPrefix(p, "/") || p != cleaned(p) {
		return nothingHere()
	}
	if r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > agentapi.MaxBody {
		return tooLarge()
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, named := params["charset"]
	switch {
	case err != nil, kind != "application/json" && !mergePatch(r, kind), named && !strings.EqualFold(charset, "utf-8"):
		return agentapi.Errorf(agentapi.CodeMediaType, "The body must be JSON and say so: Content-Type: application/json.")
	case r.Header.Get("Content-Encoding") != "":
		return agentapi.Errorf(agentapi.CodeMediaType, "The body must not be compressed.")
	}
	return nil
}

// mergePatch is JSON too, by the name RFC 7396 gives it.
func mergePatch(r *http.Request, kind string) bool {
	return r.Method == http.MethodPatch && kind == "application/merge-patch+json"
}

// names says whether a request names this listener as its host, in any case (RFC 3986,
// section 3.2.2). HTTP/1.0 may name none; browsers speak 1.1, so no page is behind
// that.
func (k listenerKind) names(r *http.Request) bool {
	if r.Host == "" {
		return !r.ProtoAtLeast(1, 1)
	}
	return slices.Contains(k.hosts, strings.ToLower(r.Host))
}

// websocket says whether a request wants to become a WebSocket, which a page could
// open across origins. Any other upgrade is an offer that is not taken up (RFC
// 9110, section 7.8): HTTP libraries offer h2c by themselves.
func websocket(upgrade []string) bool {
	for _, value := range upgrade {
		for protocol := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
			if strings.EqualFold(name, "websocket") {
				return true
			}
		}
	}
	return false
}

// cleaned keeps a slash at the end, which path.Clean drops.
func cleaned(p string) string {
	c := path.Clean(p)
	if strings.HasSuffix(p, "/") && c != "/" {
		c += "/"
	}
	return c
}

// admit is where tiers are checked, and the only place.
func (a *API) admit(needs tier, from listenerKind, r *http.Request) error {
	switch needs {
	case tierOpen:
		return a.slow(r)
	case tierCapability:
		given := r.Header.Values(agentapi.HeaderCapability)
		if len(given) != 1 || !a.server.registry.Admits(given[0]) {
			return forbidden("Register first: POST /engine/register gives the capability for this, and a new one after every start of Porchlight.")
		}
		// A capability that another user got hold of is not theirs.
		return a.letIn(r, a.callerOf(r)) // what gives something is paced with what it gives
	case tierOwner, tierTake:
		if !from.owner {
			return forbidden("Only the owner may do this, in Porchlight's menu or with the porchlight command.")
		}
		if needs == tierTake && a.fromDesk(r) {
			return nil
		}
		return a.isOwner(r)
	}
	return forbidden("Nobody may do this.")
}

// fromDesk says whether the menu bar of this process asks, before it has the owner
// secret.
func (a *API) fromDesk(r *http.Request) bool {
	given := r.Header.Values(agentapi.HeaderOwnerSecret)
	return len(given) == 1 && len(a.server.cfg.DeskSecretHash) > 0 && ownersecret.Equal(a.server.cfg.DeskSecretHash, given[0])
}

// isOwner refuses whoever does not show the owner secret.
func (a *API) isOwner(r *http.Request) error {
	hash := a.server.ownerSecretHash()
	given := r.Header.Values(agentapi.HeaderOwnerSecret)
	switch {
	case a.fromDesk(r):
		return forbidden("Unlock your keychain first: it keeps the secret that makes you the owner.")
	case len(hash) == 0:
		return forbidden("Porchlight has no owner secret yet, so nobody can act as the owner. Is the keychain locked?")
	case len(given) != 1:
		return forbidden("Only the owner may do this: send the owner secret.")
	case !ownersecret.Equal(hash, given[0]):
		return forbidden("This is not the owner secret. It may have been made anew; start the program again.")
	}
	return nil
}

func forbidden(format string, args ...any) error {
	return agentapi.Errorf(agentapi.CodeForbidden, format, args...)
}

func tooLarge() error {
	return agentapi.Errorf(agentapi.CodeTooLarge, "The body is too large; %d KiB is the most.", agentapi.MaxBody>>10)
}

func nothingHere() error {
	return agentapi.Errorf(agentapi.CodeNotFound, "Porchlight has nothing at this address.")
}

// noRoute answers for a path that has no route of the request's method.
func noRoute(w http.ResponseWriter, routes []route) error {
	if len(routes) == 0 {
		return nothingHere()
	}
	var allow []string
	for _, rt := range routes {
		allow = append(allow, rt.method)
		if rt.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	return agentapi.Errorf(agentapi.CodeMethod, "This address takes %s.", strings.Join(allow, " or "))
}
