package nodes

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/test/nameserver"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// Each of three nodes answers DNS with the addresses of all. One that is about to end is in no
// answer any more while it still takes visitors, one that dies is not a lease later, and both
// are told by the two others and by one alone; a resolver that remembers what it heard knows it
// within the time that it may. What a computer's certificate needs is answered
// by all of them from the moment that it is set.
func TestDNSFollowsNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	nodes := map[string]*rig.Node{}
	for i, name := range []string{"one", "two", "three"} {
		nodes[name] = start(t, name, database, t.TempDir(), "--dns", "127.0.0.1:0", "--dns-zone", "porch.test",
			"--public-address", fmt.Sprintf("192.0.2.%d", i+1), "--drain-wait", "10m")
	}
	resolver := ""
	if nameserver.Program("unbound") != "" {
		resolver = nameserver.Unbound(t, map[string][]string{"porch.test": {nodes["one"].DNS, nodes["two"].DNS, nodes["three"].DNS}}, "")
	} else {
		t.Log("there is no unbound here to ask: build/setup.sh test installs it")
	}
	told := func(at string) string {
		server := resolver
		if n, is := nodes[at]; is {
			server = n.DNS
		}
		a, err := dns.Exchange(new(dns.Msg).SetQuestion("notes.anna.porch.test.", dns.TypeA), server)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, rr := range a.Answer {
			if rr.Header().Ttl > 30 {
				t.Errorf("%s may keep it for %d seconds", at, rr.Header().Ttl)
			}
			all = append(all, rr.(*dns.A).A.String())
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	comes := func(at, want string) {
		t.Helper()
		programs.Eventually(t, at+" answers "+want, func() bool { return told(at) == want })
	}
	for name := range nodes {
		comes(name, "192.0.2.1 192.0.2.2 192.0.2.3")
	}
	resolved := func(want string) {
		t.Helper()
		if resolver != "" {
			comes("the resolver", want)
		}
	}
	resolved("192.0.2.1 192.0.2.2 192.0.2.3")
	challengesAreThere(t, database, nodes)
	nodes["two"].Signal(syscall.SIGTERM)
	comes("one", "192.0.2.1 192.0.2.3")
	comes("three", "192.0.2.1 192.0.2.3")
	comes("two", "192.0.2.1 192.0.2.3")
	conn := programs.Got(net.Dial("tcp", nodes["two"].Listens[0]))(t) // it still takes visitors
	conn.Close()
	nodes["three"].Kill()
	comes("one", "192.0.2.1")
	resolved("192.0.2.1")
	nodes["two"].Kill()
	nodes["one"].Signal(syscall.SIGTERM)
	comes("one", "192.0.2.1") // the best there is
	nodes["one"].Kill()
}

func challengesAreThere(t *testing.T, database string, nodes map[string]*rig.Node) {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), database, kv.Options{}))(t)
	defer store.Close()
	svc := programs.Got(control.New(control.Config{
		Store: store, Naming: control.Naming{Domain: "porch.test", AuthHost: "control.porch.test"}, Mail: mail.NewOutbox(store, nil),
		SharedStore: true, Challenges: true,
	}))(t)
	anna := programs.Got(svc.Computers.Ensure(t.Context(), "anna@porch.test", "anna"))(t)
	account := controlapi.Challenges{Authority: "ca.example", Account: "https://ca.example/acct/1"}
	for range 5 {
		account.Values = []string{control.NewChallenge()}
		programs.Must(t, svc.Challenges.Put(t.Context(), anna.Computer.ID, account))
		for name, node := range nodes {
			for kind, want := range map[uint16]string{dns.TypeTXT: account.Values[0], dns.TypeCAA: account.Account} {
				q := new(dns.Msg).SetQuestion(map[uint16]string{dns.TypeTXT: "_acme-challenge.", dns.TypeCAA: ""}[kind]+"anna.porch.test.", kind).SetEdns0(1232, false)
				a := programs.Got(dns.Exchange(q, node.DNS))(t)
				if len(a.Answer) != 1 || !strings.Contains(a.Answer[0].String(), want) {
					t.Errorf("%s answers %s", name, a)
				}
			}
		}
	}
}
