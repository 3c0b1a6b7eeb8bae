package containers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
)

// container is one that runs, as its engine describes it; all of it is valid.
type container struct {
	agentapi.Container
	id      string
	created int64
	ports   []int // of this computer, that lead to it
	labels  map[string]string
}

// described is a container as engines write it.
type described struct {
	ID      string `json:"Id"`
	Names   []string
	Image   string
	ImageID string
	Created int64
	Labels  map[string]string
	Ports   []struct {
		IP         string
		PublicPort int
		Type       string
	}
}

var (
	aName  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
	anID   = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)
	aPlace = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*$`)
)

const maxImage = 60 // characters that are shown of an image's name

// read makes an engine's answer into containers, the oldest first. One that is described in
// another way than engines do is left out: nobody could be shown what it is.
func read(socket string, body []byte) ([]container, error) {
	var rows []described
	if err := json.Unmarshal(body, &rows); err != nil {
		return nil, fmt.Errorf("read its list of containers: %w", err)
	}
	all := make([]container, 0, len(rows))
	for _, row := range rows {
		if one, ok := row.read(socket); ok {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b container) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id))
	})
	return all, nil
}

func (row described) read(socket string) (one container, ok bool) {
	if len(row.Names) == 0 || !anID.MatchString(row.ID) || !anID.MatchString(row.ImageID) {
		return one, false
	}
	one = container{id: row.ID, created: row.Created, labels: row.Labels}
	one.Engine, one.ImageID = socket, strings.TrimPrefix(row.ImageID, "sha256:")
	one.Name, one.Image = strings.TrimPrefix(row.Names[0], "/"), row.Image
	if !aName.MatchString(one.Name) {
		return one, false
	}
	// Compose names what it makes anew each time. An image that says so of itself has a name
	// of its own choice, and its own id beside it.
	project, service := row.Labels["com.docker.compose.project"], row.Labels["com.docker.compose.service"]
	if aName.MatchString(project) && aName.MatchString(service) {
		one.Name = project + "/" + service
	}
	if !aPlace.MatchString(one.Image) {
		one.Image = "image " + one.ImageID[:12]
	}
	if len(one.Image) > maxImage {
		one.Image = one.Image[:maxImage] + "…"
	}
	for _, port := range row.Ports {
		if port.Type == "tcp" && port.PublicPort > 0 && port.PublicPort <= 65535 && here(port.IP) {
			one.ports = append(one.ports, port.PublicPort)
		}
	}
	slices.Sort(one.ports)
	one.ports = slices.Compact(one.ports)
	return one, true
}

// here says whether a port that is published at an address is one of 127.0.0.1 or [::1].
func here(address string) bool {
	ip, err := netip.ParseAddr(address)
	return address == "" || err == nil && (ip.IsUnspecified() || ip.String() == "127.0.0.1" || ip == netip.IPv6Loopback())
}

// index finds containers by port and by id. A port that two of them publish, at addresses of
// different kinds, is neither's.
func index(all []container) (byPort map[int]agentapi.Container, byID map[string]agentapi.Container) {
	byPort, byID = map[int]agentapi.Container{}, map[string]agentapi.Container{}
	twice := map[int]bool{}
	for _, one := range all {
		byID[one.id] = one.Container
		for _, port := range one.ports {
			_, taken := byPort[port]
			twice[port] = twice[port] || taken
			byPort[port] = one.Container
		}
	}
	for port := range twice {
		if twice[port] {
			delete(byPort, port)
		}
	}
	return byPort, byID
}

// claim is what a container asks for by its labels.
type claim struct {
	container
	agentapi.PublishRequest
}

// The labels by which a container asks.
const (
	nameLabel  = "porchlight.name"
	labelLabel = "porchlight.label"
	portLabel  = "porchlight.port"
)

// claims reads what a container asks for; why says what is wrong with that, and is empty for
// one that asks for nothing.
//
// An engine lists the labels of an image among those of its containers, and does not tell them
// apart. So a name counts where it is the whole address: whoever made an image cannot know
// this computer's, and whoever writes it means this computer.
func (one container) claims(host string) (asks claim, ok bool, why string) {
	given, there := one.labels[nameLabel]
	if !there {
		return asks, false, ""
	}
	name, whole := strings.CutSuffix(given, "."+host)
	if host == "" || !whole {
		return asks, false, fmt.Sprintf("its label %s counts as the whole address alone, like notes.%s: a shorter one may have come with its image", nameLabel, cmp.Or(host, "HOST"))
	}
	asks = claim{one, agentapi.PublishRequest{Name: name, Label: cmp.Or(one.labels[labelLabel], name)}}
	switch port, named := one.labels[portLabel]; {
	case named:
		asks.LocalPort, _ = strconv.Atoi(port)
		if !slices.Contains(one.ports, asks.LocalPort) {
			return asks, false, fmt.Sprintf("its label %s is no port of this computer that it publishes", portLabel)
		}
	case len(one.ports) != 1:
		return asks, false, fmt.Sprintf("it publishes %d ports on this computer, so %s has to name one", len(one.ports), portLabel)
	default:
		asks.LocalPort = one.ports[0]
	}
	return asks, true, ""
}
