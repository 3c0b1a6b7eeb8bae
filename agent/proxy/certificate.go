package proxy

import (
	"crypto/x509"
	"net/http"

	"porchlight/agent/access"
	"porchlight/agent/proxy/gate"
)

// Certificates of devices: asked for at the names of apps that have any, and looked at where
// a request says in no other way who asks. Browsers send them by themselves, with whatever
// any page causes, and no cookie's SameSite keeps them away. So what another origin causes is
// refused, and not only what changes something.

// asksCertificate says whose certificates visitors of a name are asked for; nil for none.
func (p *Proxy) asksCertificate(serverName string) *x509.CertPool {
	name, ok := labelOf(serverName, p.config.Root())
	if !ok || name == "" {
		return nil
	}
	app, live := p.lookup(name)
	if !live || app.TCP {
		return nil
	}
	return p.config.DeviceAuthority(app.ID)
}

// byCertificate finds out who asks by the certificate of the connection. One that is worth
// nothing here is as if there were none.
func (p *Proxy) byCertificate(r *http.Request, vhost *virtualHost) (id access.Identity, present bool, a *answer) {
	digest := gate.ConnOf(r).Certificate()
	if digest == nil {
		return access.Identity{}, false, nil
	}
	id, ok := p.config.Access.Device(*digest, vhost.app.ID)
	switch {
	case !ok:
		return access.Identity{}, false, nil
	case elsewhere(r, vhost.origin):
		return access.Identity{}, true, foreign()
	}
	return id, true, nil
}
