package agent

import (
	"net/netip"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/containers"
	"porchlight/agent/procinfo"
	"porchlight/agent/upstream"
)

// makeContainers comes before the engine, which asks which container listens.
func (a *Agent) makeContainers() error {
	a.containers = containers.New(containers.Config{
		Socket:  func() string { return a.settings.Get().Containers },
		Host:    a.hostOfContainers,
		Publish: a.publishContainer,
		Gone:    a.containerGone,
		Holder:  a.holder,
		Changes: a.changes,
		Log:     a.cfg.Log.With("part", "containers"),
	})
	return nil
}

// hostOfContainers is the root host as a label has it: a label cannot follow a port.
func (a *Agent) hostOfContainers() string {
	host, _, _ := strings.Cut(a.root().Host, ":")
	return host
}

// containerAt is which container takes connections where an app is; unnamed where it may be one
// that the engine does not name now.
func (a *Agent) containerAt(target upstream.Target, l *agentapi.Listener, fresh bool) (behind *agentapi.Container, unnamed bool) {
	if a.settings.Get().Containers == "" {
		return nil, false
	}
	behind = a.containers.Behind(netip.AddrPortFrom(target.IP(), uint16(target.Port)), procinfo.ListenerSocket(target.IP(), target.Port).Inode, l, fresh)
	return behind, behind == nil && l.Program == ""
}
