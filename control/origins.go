package control

import (
	"net/url"
	"slices"

	"porchlight/control/kv"
)

// clientOrigins are the web origins of the clients that hold a grant for a
// computer: its agent lets pages of these, and of no others, use an access token
// from a browser. They are in order and each is there once.
func clientOrigins(tx kv.Tx, computerID string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	err := eachGrant(tx, keyComputerGrants(computerID), func(g grant) error {
		if seen[g.ClientID] {
			return nil
		}
		seen[g.ClientID] = true
		c, found, err := get[client](tx, keyClient(g.ClientID))
		if err != nil || !found {
			return err
		}
		for _, uri := range c.RedirectURIs {
			if origin := webOrigin(uri); origin != "" {
				out = append(out, origin)
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// webOrigin is a redirect URI's origin as a browser writes it (RFC 6454, section
// 6.2), without the port its scheme implies; empty for a private scheme, which
// has no pages.
func webOrigin(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	host := u.Host
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		host = u.Hostname()
	}
	return u.Scheme + "://" + host
}
