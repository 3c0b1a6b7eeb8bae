package proxy

import (
	"net/http"
	"strings"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Discovery (RFC 9728): a program that knows nothing but an app's address learns who signs
// people in for it. The document names what DNS names anyway. So that nobody learns from it
// which apps there are, it is the same at a name that no app has, and the app is not reached.

// pathResource is of the document about a host, or, with a path behind it, about that
// path there (RFC 9728, section 3.1).
const pathResource = "/.well-known/oauth-protected-resource"

// maxResource is the longest path that is described, escaped, in bytes.
const maxResource = 1 << 10

// protectedResource is the document (RFC 9728, section 2).
type protectedResource struct {
	Resource      string   `json:"resource"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

// discovery answers whoever looks for the document without being signed in; nil for any
// other request. vhost and found are what find said of the host.
func (p *Proxy) discovery(r *http.Request, vhost *virtualHost, found *answer) *answer {
	path, is := strings.CutPrefix(r.URL.EscapedPath(), pathResource)
	if !is || path != "" && path[0] != '/' || !reads(r) {
		return nil
	}
	auth := strings.TrimRight(p.config.AuthURL(), "/")
	if vhost.origin == "" || auth == "" {
		return nil
	}
	if found == nil && !vhost.launcher() {
		if _, _, known, a := p.known(r, vhost); known && a == nil {
			return nil // to whoever is signed in it is a path of the app's
		}
	}
	if len(path) > maxResource {
		return refuse(http.StatusRequestURITooLong, words.Of("The path behind %s is too long.", pathResource))
	}
	return &answer{Status: http.StatusOK, json: protectedResource{
		Resource: vhost.origin + path, Servers: []string{auth},
		Scopes: []string{controlapi.TokenScope}, BearerMethods: []string{"header"},
	}}
}

// bearerChallenge says that an access token opens this, what was wrong with the one that
// came (RFC 6750, section 3; empty for nothing), and where the document about it is
// (RFC 9728, section 5.1).
func bearerChallenge(r *http.Request, vhost *virtualHost, wrong string) string {
	path := r.URL.EscapedPath()
	if path == "/" || len(path) > maxResource {
		path = ""
	}
	about := `resource_metadata="` + vhost.origin + pathResource + path + `"`
	if wrong != "" {
		about = `error="` + wrong + `", ` + about
	}
	return "Bearer " + about
}
