package proxy

import (
	"net"
	"strings"

	"porchlight/agent/engine"
)

// ourPath begins the paths of every host that are ours and not the app's.
const ourPath = "/.porchlight/"

// samePort says whether a Host names the port that everything is published at,
// 443 when there is none. Another port is another origin to a browser, and not
// one anything is served at.
func samePort(host, root string) bool { return portOf(host) == portOf(root) }

func portOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && host[i+1:] != "" {
		return host[i+1:]
	}
	return "443"
}

// withoutPort cuts a port off a root host.
func withoutPort(host string) string {
	name, _, _ := strings.Cut(host, ":")
	return strings.ToLower(name)
}

// isOurs says whether a decoded path is ours on every host.
func isOurs(path string) bool {
	return strings.HasPrefix(path, ourPath) || path == strings.TrimSuffix(ourPath, "/")
}

// Paths of ours on every app's host.
const (
	pathOpen    = ourPath + "open"
	pathMe      = ourPath + "me"
	pathApps    = ourPath + "apps"
	pathSignOut = ourPath + "sign-out"
	pathKeys    = ourPath + "jwks.json"
	pathStyle   = ourPath + "style.css"
	pathIcon    = ourPath + "icon.svg"

	// Of the launcher alone, which can be installed.
	pathManifest = ourPath + "manifest.webmanifest"
	pathScript   = ourPath + "launcher.js"
	pathTimes    = ourPath + "times.js"

	pathIcon192 = ourPath + "icon-192.png"
	pathIcon512 = ourPath + "icon-512.png"
	pathFull192 = ourPath + "icon-full-192.png"
	pathTouch   = ourPath + "icon-touch.png"
)

// virtualHost is what a host name stands for: an app, or the launcher (app is zero).
type virtualHost struct {
	app    engine.App
	root   engine.Root
	host   string // without port
	origin string // https://host[:port]
	own    string // the own domain that host is; empty for one of the computer's
}

func (vhost virtualHost) launcher() bool { return vhost.app.ID == "" }

// shown is the host as people read it: with the port, unless it is 443.
func (vhost virtualHost) shown() string { return strings.TrimPrefix(vhost.origin, "https://") }

// labelOf cuts the root host off a host name: "" is the root host itself. ok is
// false for names that are not directly under it.
func labelOf(host string, root engine.Root) (name string, ok bool) {
	rootHost := withoutPort(root.Host)
	if rootHost == "" {
		return "", false
	}
	if host == rootHost {
		return "", true
	}
	name, ok = strings.CutSuffix(host, rootHost)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, ".")
	return name, ok && name != "" && !strings.Contains(name, ".")
}

// findOwn says what stands at an own domain: one app, live or not, and nothing else.
func (p *Proxy) findOwn(host string, root engine.Root) (virtualHost, *answer) {
	d, found := p.config.Access.OwnDomain(host)
	if !found || p.config.ByID == nil {
		return virtualHost{}, p.unpublished(host)
	}
	app, found := p.config.ByID(d.AppID)
	if !found || !app.Live {
		return virtualHost{}, p.unpublished(host)
	}
	return virtualHost{app: app, root: root, host: host, own: host, origin: "https://" + p.shown(host)}, nil
}

// lookup finds a live app.
func (p *Proxy) lookup(name string) (engine.App, bool) {
	app, ok := p.config.Apps.Lookup(name)
	return app, ok && app.Live && app.ID != ""
}

// originOf an app's host; of the root host for an empty name.
func originOf(name string, root engine.Root) string {
	if name == "" {
		return "https://" + root.Host
	}
	return "https://" + name + "." + root.Host
}

// shown is a host of this computer as people read it: with the port, unless it is 443.
func (p *Proxy) shown(host string) string {
	if _, port, err := net.SplitHostPort(p.config.Root().Host); err == nil {
		return net.JoinHostPort(host, port)
	}
	return host
}

// port is the one of the public address.
func (vhost *virtualHost) port() string { return portOf(strings.TrimPrefix(vhost.origin, "https://")) }
