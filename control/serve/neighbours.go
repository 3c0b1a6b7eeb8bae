package serve

import "porchlight/internal/samesite"

// warnOfNeighbours says at the start what computers of different people can do to
// each other by cookies, where the domain is on no list that keeps them apart.
func (n *Node) warnOfNeighbours() {
	const cure = "use a domain of the Public Suffix List for computers, as this program knows the list (docs/security.md: Cookies of neighbours)"
	switch samesite.Of(n.cfg.Domain, n.cfg.AuthHost) {
	case samesite.SignIn:
		n.cfg.Log.Warn("browsers take all computers and the sign-in page for one site: a page of anybody's computer can set cookies for all of them",
			"domain", n.cfg.Domain, "auth_host", n.cfg.AuthHost, "cure", cure+", or at least another domain for the auth host")
	case samesite.Computers:
		n.cfg.Log.Warn("browsers take all computers for one site: a page of one can set cookies for the others", "domain", n.cfg.Domain, "cure", cure)
	}
}
