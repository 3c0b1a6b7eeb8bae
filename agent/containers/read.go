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
	"porchlight/agent/procinfo"
	"porchlight/internal/words"
)

// container is one that runs, as its engine describes it; all of it is valid.
type container struct {
	agentapi.Container
	id      string
	created int64
	ports   []int            // of this computer, that lead to it
	places  []netip.AddrPort // where it publishes them
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
	// Compose counts what it makes of a service. Its labels may be an image's own, and the
	// container's name may not.
	project, service := row.Labels["com.docker.compose.project"], row.Labels["com.docker.compose.service"]
	if of, counted := strings.CutPrefix(one.Name, project); counted && service != "" && countedBy(of, service) {
		one.Name = project + "/" + service
	}
	if !aPlace.MatchString(one.Image) {
		one.Image = "image"
	}
	if len(one.Image) > maxImage {
		one.Image = one.Image[:maxImage] + "…"
	}
	for _, port := range row.Ports {
		if port.Type != "tcp" || port.PublicPort < 1 || port.PublicPort > 65535 {
			continue
		}
		at := slices.DeleteFunc(places(port.IP, uint16(port.PublicPort)), func(at netip.AddrPort) bool {
			return reaches(at, loopback[0]) == 0 && reaches(at, loopback[1]) == 0
		})
		if len(at) > 0 {
			one.ports, one.places = append(one.ports, port.PublicPort), append(one.places, at...)
		}
	}
	slices.Sort(one.ports)
	one.ports = slices.Compact(one.ports)
	return one, true
}

// countedBy says whether compose has a name end so for a container of a service: -web-1, or
// _web_1 where it is older.
func countedBy(end, service string) bool {
	number, ok := strings.CutPrefix(end, "-"+service+"-")
	if !ok {
		number, ok = strings.CutPrefix(end, "_"+service+"_")
	}
	_, err := strconv.ParseUint(number, 10, 16)
	return ok && err == nil
}

// loopback are the addresses of this computer at which apps are.
var loopback = [...]netip.Addr{procinfo.IPv4, procinfo.IPv6}

// places are where a port is published. An engine that names no address means all.
func places(address string, port uint16) []netip.AddrPort {
	if address == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), port), netip.AddrPortFrom(netip.IPv6Unspecified(), port)}
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	return []netip.AddrPort{netip.AddrPortFrom(ip, port)}
}

// reaches says how exactly what is published at a place takes connections to an address, as
// the kernel tells between sockets; 0 is not at all.
func reaches(at netip.AddrPort, address netip.Addr) int {
	return procinfo.Bound{At: at}.Reaches(address)
}

// index finds containers by where connections to them arrive, and by id. A place that two of
// them have alike is neither's.
func index(all []container) (byPlace map[netip.AddrPort]agentapi.Container, byID map[string]agentapi.Container) {
	byPlace, byID = map[netip.AddrPort]agentapi.Container{}, map[string]agentapi.Container{}
	best := map[netip.AddrPort]int{}
	for _, one := range all {
		byID[one.id] = one.Container
		for _, published := range one.places {
			for _, address := range loopback {
				at, rank := netip.AddrPortFrom(address, published.Port()), reaches(published, address)
				switch {
				case rank > best[at]:
					best[at], byPlace[at] = rank, one.Container
				case rank == best[at] && rank > 0 && byPlace[at] != one.Container:
					byPlace[at] = agentapi.Container{}
				}
			}
		}
	}
	return byPlace, byID
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

// claims reads what a container asks for; why says what is wrong with that, and is zero for
// one that asks for nothing.
//
// An engine lists the labels of an image among those of its containers, and does not tell them
// apart. So a name counts where it is the whole address: whoever made an image cannot know
// this computer's, and whoever writes it means this computer.
func (one container) claims(host string) (asks claim, ok bool, why words.Sentence) {
	given, there := one.labels[nameLabel]
	if !there {
		return asks, false, why
	}
	name, whole := strings.CutSuffix(given, "."+host)
	if host == "" || !whole {
		return asks, false, words.Of("Its label %[1]s counts as the whole address alone, like %[2]s: a shorter one may have come with its image.", nameLabel, "notes."+cmp.Or(host, "HOST"))
	}
	asks = claim{one, agentapi.PublishRequest{Name: name, Label: cmp.Or(one.labels[labelLabel], name)}}
	switch port, named := one.labels[portLabel]; {
	case named:
		asks.LocalPort, _ = strconv.Atoi(port)
		if !slices.Contains(one.ports, asks.LocalPort) {
			return asks, false, words.Of("Its label %s is no port of this computer that it publishes.", portLabel)
		}
	case len(one.ports) == 0:
		return asks, false, words.Of("It publishes no port on this computer.")
	case len(one.ports) > 1:
		return asks, false, words.Of("It publishes several ports on this computer, so its label %s has to name one.", portLabel)
	default:
		asks.LocalPort = one.ports[0]
	}
	return asks, true, why
}
