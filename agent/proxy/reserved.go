package proxy

import "strings"

// reserved are the names that no visitor may send to an app, folded: see reservedName.
// A "*" at the end stands for whatever follows. Beside each is whose it is, and where
// they say so. Only proxies and servers send these; what pages of apps send as well is
// in sentByPages.
var reserved = patterns(
	"x-service-*", "x-forwarded-*", "forwarded", // ours, docs/interface.md X1; RFC 7239
	"x-porchlight-key",                      // an app password: see headerKey
	"x-engine-capability", "x-owner-secret", // what opens the local API on this computer, and no visitor has

	// Who is there, as other sign-in proxies hand it on.
	"remote-*", "x-remote-*", // CGI (RFC 3875), PHP; Authelia: authelia.com/integration/trusted-header-sso; Home Assistant's ingress
	"x-webauth-*",                       // grafana.com/docs: auth proxy
	"x-proxy-user", "x-authenticated-*", // Kong: developer.konghq.com/plugins/oauth2
	"x-auth-request-*",                            // oauth2-proxy.github.io/oauth2-proxy/configuration/integration
	"x-authentik-*",                               // docs.goauthentik.io: proxy provider
	"x-vouch-*",                                   // github.com/vouch/vouch-proxy
	"x-pomerium-*",                                // pomerium.com/docs: pass identity headers
	"x-goog-authenticated-user-*", "x-goog-iap-*", // cloud.google.com/iap/docs/identity-howto
	"x-appengine-*",                          // cloud.google.com/appengine/docs/standard/reference/request-headers
	"x-ms-client-principal*", "x-ms-token-*", // learn.microsoft.com/azure/app-service/configure-authentication-user-identities, -oauth-tokens
	"x-amzn-oidc-*",                // docs.aws.amazon.com/elasticloadbalancing: authenticate users
	"cf-access-*",                  // developers.cloudflare.com/cloudflare-one: validate JWTs
	"tailscale-*",                  // tailscale.com/kb/1312/serve
	"teleport-jwt-assertion",       // goteleport.com/docs: application access, JWT
	"ngrok-auth-*",                 // ngrok.com/docs/http/oauth
	"x-zrok-*", "x-ziti-identity*", // docs.zrok.io, openziti.io/docs
	"x-exedev-*", "x-exe-dev-*", // exe.dev/docs/login-with-exe
	"x-replit-user-*",                   // docs.replit.com: auth
	"x-sandstorm-*",                     // docs.sandstorm.io/en/latest/developing/auth
	"ynh-user*",                         // doc.yunohost.org: packaging, SSO
	"x-token-subject", "x-token-user-*", // caddy-security: docs.authcrunch.com
	"auth-user", "auth-mail", "auth-groups", // LemonLDAP::NG: lemonldap-ng.org/documentation, exported headers
	"oidc-*",               // mod_auth_openidc: github.com/OpenIDC/mod_auth_openidc, auth_openidc.conf
	"x-oidc-*", "x-okta-*", // plugins for Traefik, Envoy and nginx: github.com/sevensolutions/traefik-oidc-auth
	"mellon-*",                                                                    // github.com/latchset/mod_auth_mellon
	"shib-*", "eppn", "persistent-id", "targeted-id", "subject-id", "pairwise-id", // shibboleth.atlassian.net: AttributeAccess, attribute-map.xml
	"sm-*",                                                   // SiteMinder: techdocs.broadcom.com, default HTTP headers
	"iv-*",                                                   // WebSEAL: ibm.com/docs/en/sva, client identity in HTTP headers
	"oam-remote-user*",                                       // docs.oracle.com: Access Management
	"x-consumer-*", "x-credential-*", "x-anonymous-consumer", // Kong; apisix.apache.org/docs/apisix/plugins/key-auth
	"x-userinfo",                                                           // apisix.apache.org/docs/apisix/plugins/openid-connect
	"x-jwt-assertion",                                                      // WSO2: apim.docs.wso2.com, passing end user attributes to the backend
	"ssl-client-*", "x-ssl-client-*", "x-client-cert*", "x-arr-clientcert", // httpd.apache.org/docs/current/mod/mod_ssl.html, Azure App Service

	// Addresses and targets that a trusted proxy would vouch for.
	"x-real-ip", "x-client-ip", "x-cluster-client-ip", "client-ip", "true-client-ip", "cf-connecting-ip*",
	"x-original-url", "x-original-uri", "x-original-host", "x-original-method", "x-original-forwarded-for", "x-rewrite-url",
	"x-host", "x-http-host-override", "x-envoy-*", // envoyproxy.io/docs: HTTP header manipulation
	"x-scheme", "x-url-scheme", // ingress-nginx, nginx.tmpl; developer.mozilla.org: X-Forwarded-Proto
	"alt-used", // RFC 7838: no way here is an alternative one
	"proxy",    // CGI turns it into HTTP_PROXY: httpoxy.org
)

// sentByPages say who is there too, behind some proxies (Louketo, kong-oidc, nginx by
// hand), but pages of other apps send them to their own servers. They pass, but for an
// app that the owner set up to learn its visitor from one of them: to that app none does.
var sentByPages = patterns(
	"x-user", "x-user-id", "x-user-name", "x-user-email", "x-username", "x-email",
	"x-auth-user", "x-auth-userid", "x-auth-username", "x-auth-email", "x-auth-name", "x-auth-groups", "x-auth-roles", "x-auth-subject",
	"x-access-token", "x-id-token",
)

// pattern is a name, or the beginning of one.
type pattern struct {
	name string
	open bool
}

// names are patterns by a letter that tells most names apart.
type names [256][]pattern

func patterns(all ...string) (n names) {
	for _, name := range all {
		prefix, open := strings.CutSuffix(name, "*")
		n[letter(prefix)] = append(n[letter(prefix)], pattern{prefix, open})
	}
	return n
}

// letter is the first, or the one after "x-", by another number.
func letter(name string) byte {
	first := fold(name[0])
	if first == 'x' && len(name) > 2 {
		return fold(name[2]) | 0x80
	}
	return first
}

// has says whether a name is one of them, folded.
func (n *names) has(name string) bool {
	if name == "" {
		return false
	}
	for _, p := range n[letter(name)] {
		if len(name) < len(p.name) || !p.open && len(name) != len(p.name) {
			continue
		}
		if likeName(name[:len(p.name)], p.name) {
			return true
		}
	}
	return false
}

// reservedName says whether a header or trailer field belongs to us. Case is
// folded, and every byte that is neither letter nor digit reads as "-", because
// CGI, WSGI and their kin make one variable of X-Service-User, x_service_user
// and x.service.user.
func reservedName(name string) bool { return reserved.has(name) }

// identityName says whether an app that learns its visitor from the header own, empty
// for none, could learn one from name.
func identityName(name, own string) bool {
	return own != "" && (likeName(name, own) || sentByPages.has(own) && sentByPages.has(name))
}

// likeName compares two header names as reservedName does.
func likeName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if fold(a[i]) != fold(b[i]) {
			return false
		}
	}
	return true
}

func fold(b byte) byte {
	switch {
	case 'a' <= b && b <= 'z', '0' <= b && b <= '9':
		return b
	case 'A' <= b && b <= 'Z':
		return b | 0x20
	default:
		return '-'
	}
}
