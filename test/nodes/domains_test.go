package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
	"porchlight/test/resolver"
	"porchlight/test/rig"
)

// An own domain that is proven at one node leads to the computer by each of them, wherever
// that is connected; removed, or another computer's, at one node, by none.
func TestOwnDomainsAtNodes(t *testing.T) {
	t.Parallel()
	const name = "notes.anna.test"
	var flags []string
	var resolvers []*resolver.Resolver
	for range 2 {
		r := programs.Got(resolver.New())(t)
		t.Cleanup(r.Close)
		resolvers, flags = append(resolvers, r), append(flags, "--resolver", r.Addr())
	}
	database := pgtest.Database(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	one, two := start(t, "one", database, dirs[0], flags...), start(t, "two", database, dirs[1], flags...)
	nodes := []*rig.Node{one, two}
	roots := programs.Got(rig.Roots(rig.Authority(dirs[0]), rig.Authority(dirs[1])))(t)
	speaks := func(short string, at *rig.Node) *controlapi.Client {
		var made struct{ Credential string }
		programs.Must(t, one.Run(&made, "account", "add", short+"@example.net", "--short", short))
		startComputer(t, made.Credential, roots).use(controlapi.Relay{Address: at.Listens[0], ServerName: "control.porch.test"})
		c := clientOf(at, roots, made.Credential)
		t.Cleanup(c.HTTP.CloseIdleConnections)
		programs.Must(t, c.PutApps(t.Context(), controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes"}}}))
		return c
	}
	anna, bert := speaks("anna", one), speaks("bert", two)
	leads := func(d controlapi.Domain) {
		for _, r := range resolvers {
			r.Put(fmt.Sprintf("%s. 60 IN TXT %q", d.Records[0].Name, d.Records[0].Value), fmt.Sprintf("%s. 60 IN CNAME %s.", name, d.Records[1].Value))
		}
	}
	everywhere := func(when string, there bool) {
		t.Helper()
		for i, n := range nodes {
			programs.Eventually(t, fmt.Sprintf("%s: at node %d, %s leads to a computer: %v", when, i+1, name, there), func() bool { return reaches(n, name) == there })
		}
	}
	add := controlapi.AddDomain{Name: name, AppID: "app1"}
	d := programs.Got(anna.AddDomain(t.Context(), add))(t)
	everywhere("claimed", false)
	leads(d)
	if d = programs.Got(anna.LookAtDomain(t.Context(), name))(t); d.State != controlapi.DomainProven {
		t.Fatalf("it is %+v", d)
	}
	everywhere("proven", true)

	// It leads to another computer of ours, connected elsewhere.
	for _, r := range resolvers {
		r.Put(name + ". 60 IN CNAME notes.bert.porch.test.")
	}
	next := programs.Got(bert.AddDomain(t.Context(), add))(t)
	everywhere("another's, who has not proven it", false)
	leads(next)
	if next = programs.Got(bert.LookAtDomain(t.Context(), name))(t); next.State != controlapi.DomainProven {
		t.Fatalf("it is %+v", next)
	}
	everywhere("another's", true)
	programs.Must(t, bert.RemoveDomain(t.Context(), name))
	everywhere("removed", false)
}

// clientOf speaks to a node as a computer does.
func clientOf(n *rig.Node, roots *x509.CertPool, credential string) *controlapi.Client {
	transport := controlapi.NewTransport(roots)
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, n.Listens[0])
	}
	return &controlapi.Client{BaseURL: "https://control.porch.test", Credential: credential, HTTP: &http.Client{Transport: transport}}
}

// reaches says whether a node brings somebody with this server name to a computer: it turns
// others away itself.
func reaches(n *rig.Node, name string) bool {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: programs.Patience}, "tcp", n.Listens[0], &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err == nil {
		conn.Close()
		return true
	}
	return !strings.Contains(err.Error(), "unrecognized name")
}
