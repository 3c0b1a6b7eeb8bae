// Package nameserver runs Debian's DNS servers for tests: BIND, which takes changes by a key
// (RFC 2136), unbound, which asks others and remembers, and dig, which looks. A test that
// needs one is skipped where it is not installed: build/setup.sh test does that.
package nameserver

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"porchlight/test/programs"
)

// Program is where one is, also where Debian keeps it and other people's PATH does not lead;
// empty for nowhere.
func Program(name string) string {
	for _, at := range []string{name, "/usr/sbin/" + name} {
		if program, err := exec.LookPath(at); err == nil {
			return program
		}
	}
	return ""
}

func found(t testing.TB, name string) (program string) {
	t.Helper()
	if program = Program(name); program == "" {
		t.Skip("there is no " + name + " here: build/setup.sh test installs it")
	}
	return program
}

// BIND begins to answer for a zone, in which the key "porchlight" may change records TXT; key is
// the whole of it, as tsig-keygen writes it.
func BIND(t testing.TB, zone, key string) (address string) {
	t.Helper()
	program, dir := found(t, "named"), t.TempDir()
	write := func(file, text string) {
		programs.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	write("key", key)
	write("zone", "$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 127.0.0.1\n")
	for range 5 { // another process of ours may take the port once it is given back
		port, giveBack, err := programs.Port()
		programs.Must(t, err)
		giveBack()
		write("named.conf", fmt.Sprintf(`
options { directory %[1]q; pid-file none; session-keyfile none; managed-keys-directory %[1]q; listen-on port %[2]d { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; empty-zones-enable no; };
controls {};
include "%[1]s/key";
zone %[3]q { type primary; file "%[1]s/zone"; update-policy { grant porchlight wildcard *.%[3]s TXT; }; };
`, dir, port, zone))
		p := programs.Begin(t, exec.Command(program, "-g", "-n", "1", "-c", filepath.Join(dir, "named.conf")))
		if said, err := p.Logs(t.Context(), `(address in use|all zones loaded)`); err == nil && said[1] == "all zones loaded" {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("BIND does not begin")
	return ""
}

// Unbound begins to answer what it asks the servers of zones (host:port each), and nothing else.
// anchor is the key that one of them is signed by, empty for none.
func Unbound(t testing.TB, zones map[string][]string, anchor string) (address string) {
	t.Helper()
	program := found(t, "unbound")
	// It takes the port of both protocols; at 127.0.0.1 the one of UDP stands for the port being ours.
	port := strconv.Itoa(programs.FreePort(t))
	address = "127.0.0.2:" + port
	conf := fmt.Sprintf(`server:
  interface: 127.0.0.2
  port: %s
  chroot: ""
  username: ""
  pidfile: ""
  directory: ""
  use-syslog: no
  do-not-query-localhost: no
  do-ip6: no
`, port)
	if anchor == "" {
		conf += "  module-config: \"iterator\"\n"
	} else {
		conf += fmt.Sprintf("  module-config: \"validator iterator\"\n  trust-anchor: %q\n", anchor)
	}
	stubs, above := "", map[string]bool{}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		top := zone[strings.LastIndexByte(zone, '.')+1:]
		if !above[top] {
			above[top] = true
			conf += fmt.Sprintf("  local-zone: \"%s.\" nodefault\n", top)
		}
		stubs += fmt.Sprintf("stub-zone:\n  name: \"%s.\"\n", zone)
		for _, server := range zones[zone] {
			stubs += "  stub-addr: " + strings.Replace(server, ":", "@", 1) + "\n"
		}
	}
	file := filepath.Join(t.TempDir(), "unbound.conf")
	programs.Must(t, os.WriteFile(file, []byte(conf+"remote-control:\n  control-enable: no\n"+stubs), 0o600))
	programs.Begin(t, exec.Command(program, "-d", "-c", file))
	programs.Eventually(t, "unbound answers", func() bool {
		itself := new(dns.Msg).SetQuestion("version.bind.", dns.TypeTXT)
		itself.Question[0].Qclass = dns.ClassCHAOS
		_, err := dns.Exchange(itself, address)
		return err == nil
	})
	return address
}

// Dig is what dig finds at a server, a line each, without their order.
func Dig(t testing.TB, server string, ask ...string) (lines []string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(server)
	out := programs.Got(programs.Output(exec.Command(found(t, "dig"), append([]string{"@" + host, "-p", port, "+short"}, ask...)...)))(t)
	lines = strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	slices.SortFunc(lines, cmp.Compare)
	return lines
}
