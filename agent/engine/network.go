package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// Some programs take connections of the whole network. Whoever knows their port comes
// to them past Porchlight, and is asked for nothing; so their owner is told.

// network is what was seen of it last.
type network struct {
	at   time.Time // when
	took time.Duration
	of   *shown // for which apps
	open map[int]bool
}

// networkShare is how many times longer than a look at the network the next one is
// waited for, while no app changes: some systems take long to show their sockets.
const networkShare = 50

// openInNetwork are the ports that other computers can open.
func (a *Apps) openInNetwork() map[int]bool {
	now := a.shown.Load()
	if a.cfg.Network == nil || len(now.byLabel) == 0 {
		return nil
	}
	a.looking.Lock()
	defer a.looking.Unlock()
	n := &a.network
	if now == n.of && time.Since(n.at) < max(portsEvery, networkShare*n.took) {
		return n.open
	}
	began := time.Now()
	n.open, n.of, n.at = a.cfg.Network(), now, time.Now()
	n.took = n.at.Sub(began)
	return n.open
}

// inNetwork is what the owner is told of a port that other computers can open.
func inNetwork(port int, program string) agentapi.InNetwork {
	number := strconv.Itoa(port) // which no language groups by thousands
	said := words.Text{words.Of("Other computers in your network can open port %s directly, without signing in.", number), keepHere(number, program)}
	return agentapi.InNetwork{Network: true, NetworkDetail: said.String(), NetworkWords: said}
}

// keepHere says how a program is started for this computer alone, where its name tells.
func keepHere(port, program string) words.Sentence {
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(strings.ToLower(program), name) })
	}
	switch {
	case is("python"):
		return words.Of("To keep it to this computer, type: python3 -m http.server %[1]s --bind 127.0.0.1 (Flask and uvicorn: --host 127.0.0.1; Django: runserver 127.0.0.1:%[1]s)", port)
	case is("node", "bun", "deno"):
		return words.Of("To keep it to this computer, start it with --host 127.0.0.1 (Vite), -H 127.0.0.1 (Next), or in your own code: listen(%s, '127.0.0.1')", port)
	case is("php"):
		return words.Of("To keep it to this computer, type: php -S 127.0.0.1:%s", port)
	case is("ruby", "puma"):
		return words.Of("To keep it to this computer, type: rails server -b 127.0.0.1 -p %s", port)
	case is(agentapi.ContainerShown, "docker", "com.docker", "podman", "rootlessport", "conmon", "pasta", "slirp4netns"):
		return words.Of("To keep it to this computer, give its container the port so: -p 127.0.0.1:%s:PORT", port)
	}
	return words.Of("To keep it to this computer, have its program listen on 127.0.0.1 alone: its settings call that host, bind or listen.")
}
