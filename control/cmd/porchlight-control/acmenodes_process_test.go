package main

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/control/certstore"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/internal/commandline"
	"porchlight/test/pebble"
	"porchlight/test/programs"
)

// acmeNodes are nodes of one database that have one certificate.
type acmeNodes struct {
	t         *testing.T
	database  string
	authority *pebble.Authority
	trust     string // file with the authority's own certificate
	key       string // file
	dirs      map[string]string
}

func (n *acmeNodes) args(name string) []string {
	if n.dirs[name] == "" {
		n.dirs[name] = n.t.TempDir()
	}
	return []string{
		"--postgres", n.database, "--node", name, "--peer-address", "127.0.0.1:0",
		"--tls", "acme", "--acme-directory", n.authority.Directory,
	}
}

// refused is what a node is told that ends at once.
func (n *acmeNodes) refused(name string) []string {
	args := append(n.args(name), serving...)
	return append([]string{"serve", "--data", n.dirs[name], "--listen", "127.0.0.1:0"}, args...)
}

func (n *acmeNodes) start(name string) *server {
	n.t.Helper()
	args := append(n.args(name), "--seal-key", n.key)
	return startWith(n.t, []string{"SSL_CERT_FILE=" + n.trust}, n.dirs[name], args...)
}

// serial is that of the certificate a node serves.
func (n *acmeNodes) serial(s *server) (serial string) {
	n.t.Helper()
	programs.Eventually(n.t, "a certificate", func() bool {
		conn, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "control.porch.test", RootCAs: n.authority.Roots})
		if err != nil {
			return false
		}
		defer conn.Close()
		serial = conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
		return true
	})
	return serial
}

// rows are all of the store's, as the database has them.
func (n *acmeNodes) rows() (all string) {
	n.t.Helper()
	store, err := kv.Open(n.t.Context(), "postgres:"+n.database, kv.Options{})
	programs.Must(n.t, err)
	defer store.Close()
	var b strings.Builder
	err = store.Dump(n.t.Context(), func(r kv.Record) error {
		b.WriteString(r.Key + " " + string(r.Value) + "\n")
		return nil
	})
	programs.Must(n.t, err)
	return b.String()
}

// secrets are the private keys in the store, in the forms in which they could be found
// elsewhere.
func (n *acmeNodes) secrets() (forms []string) {
	n.t.Helper()
	store := programs.Got(kv.Open(n.t.Context(), "postgres:"+n.database, kv.Options{}))(n.t)
	defer store.Close()
	keys := programs.Got(certstore.ReadKeys(n.key))(n.t)
	sealed := programs.Got(certstore.Open(n.t.Context(), certstore.Config{Store: store, Keys: keys, Dir: n.t.TempDir()}))(n.t)
	names := programs.Got(sealed.List(n.t.Context(), "", true))(n.t)
	for _, name := range names {
		value := programs.Got(sealed.Load(n.t.Context(), name))(n.t)
		block, _ := pem.Decode(value)
		if block == nil || !strings.Contains(block.Type, "PRIVATE KEY") {
			continue
		}
		lines := strings.Split(string(value), "\n")
		forms = append(forms, lines[1], string(block.Bytes), base64.StdEncoding.EncodeToString(value)[:60])
	}
	return append(forms, "PRIVATE KEY")
}

// in reads all files below a directory.
func in(t *testing.T, dir string) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	programs.Must(t, err)
	return all.String()
}

// Three nodes of one database have one certificate by one order, whichever node the
// authority comes to; it is renewed while one of them is down, which has it when it is
// back. Neither database, backup, log nor the nodes' directories hold a private key in
// clear. A node without the key, or with another one, does not start; the key can be
// replaced.
func TestACMEForSeveralNodes(t *testing.T) {
	t.Parallel()
	n := &acmeNodes{t: t, database: pgtest.Database(t), authority: pebble.Start(t), dirs: map[string]string{}}
	n.trust = filepath.Join(t.TempDir(), "pebble.pem")
	programs.Must(t, os.WriteFile(n.trust, n.authority.Own, 0o600))
	n.key = filepath.Join(t.TempDir(), "seal-key")
	if code, _, err := invoke(t, nil, append(n.refused("one"), "--public-port", "443")...); code != commandline.ExitUsage || !strings.Contains(err, "porchlight-control seal-key make FILE") {
		t.Errorf("without a key: exit %d, %s", code, err)
	}
	ok(t, "seal-key", "make", n.key)
	if info, err := os.Stat(n.key); err != nil || info.Mode() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	if code, _, err := invoke(t, nil, "seal-key", "make", n.key); code != commandline.ExitRefused || !strings.Contains(err, "exists already") {
		t.Errorf("made again: exit %d, %s", code, err)
	}

	// One begins to order, and the authority, which is not there yet, comes to two. The
	// certificate is due to be renewed from the start, so who waits must not order.
	n.authority.Live(30 * time.Minute)
	one := n.start("one")
	programs.Eventually(t, "an order begun", func() bool { return strings.Contains(n.rows(), "acme-lock/") })
	two, three := n.start("two"), n.start("three")
	for _, s := range []*server{two, three} {
		programs.Eventually(t, "a node that waits", func() bool { return strings.Contains(s.Stderr(), "waiting for it") })
	}
	_, text, _ := net.SplitHostPort(two.addr)
	port := programs.Got(strconv.Atoi(text))(t)
	n.authority.LookAt(port)
	first := n.serial(one)
	if n.serial(two) != first || n.serial(three) != first || n.authority.Orders() != 1 {
		t.Errorf("three nodes have certificates %s, %s and %s by %d orders", first, n.serial(two), n.serial(three), n.authority.Orders())
	}
	programs.Eventually(t, "readiness", func() bool {
		status, _ := fetch(t, probe(t), three.Metrics+"/readyz")
		return status == http.StatusOK
	})

	t.Log("renewed while three is down")
	three.stop()
	one.stop()
	n.authority.Live(0)
	logs := one.Stderr() + three.Stderr()
	one = n.start("one")
	var second string
	programs.Eventually(t, "another certificate", func() bool { second = n.serial(one); return second != first })
	plain := programs.Got(http.NewRequest("GET", "http://"+one.addr+"/signin", nil))(t)
	plain.Host = "control.porch.test"
	resp, err := (&http.Client{Transport: probe(t).Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(plain)
	programs.Must(t, err)
	resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusPermanentRedirect || to != one.AuthURL+"/signin" {
		t.Errorf("plain HTTP is answered %s, %s", resp.Status, to)
	}
	three = n.start("three")
	if got := n.serial(three); got != second || n.authority.Orders() != 2 {
		t.Errorf("three has %s, not %s, after %d orders", got, second, n.authority.Orders())
	}

	t.Log("the key is replaced")
	before := n.secrets()
	oldKey := programs.Got(os.ReadFile(n.key))(t)
	other := filepath.Join(t.TempDir(), "other")
	ok(t, "seal-key", "make", other)
	newKey := programs.Got(os.ReadFile(other))(t)
	wrong := append(n.refused("four"), "--seal-key", other)
	if code, _, err := invoke(t, nil, wrong...); code != commandline.ExitRefused || !strings.Contains(err, "is not the one of the other nodes") {
		t.Errorf("with another key: exit %d, %s", code, err)
	}
	programs.Must(t, os.WriteFile(n.key, append(bytes.Clone(newKey), oldKey...), 0o600))
	three.stop()
	logs += three.Stderr()
	three = n.start("three") // with both
	if got := n.serial(three); got != second {
		t.Errorf("with two keys it has %s", got)
	}
	programs.Must(t, os.WriteFile(n.key, newKey, 0o600))
	two.stop()
	logs += two.Stderr()
	two = n.start("two") // with the new one alone
	if got := n.serial(two); got != second || n.authority.Orders() != 2 {
		t.Errorf("with the new key it has %s, after %d orders", got, n.authority.Orders())
	}

	t.Log("nothing in clear")
	file := filepath.Join(t.TempDir(), "all.backup")
	ok(t, "backup", file, "--data", n.dirs["one"])
	for _, s := range []*server{one, two, three} {
		s.stop()
		logs += s.Stderr()
	}
	secrets := append(before, n.secrets()...)
	if len(secrets) < 2*(2*3+1) {
		t.Fatalf("the keys of account and certificate were not found: %d forms", len(secrets))
	}
	places := map[string]string{"the database": n.rows(), "a backup": unpacked(t, file), "the log": logs}
	delete(n.dirs, "four") // it never started
	for name, dir := range n.dirs {
		places["the directory of "+name] = in(t, dir)
	}
	for place, held := range places {
		for _, secret := range append(secrets, strings.TrimSpace(string(oldKey)), strings.TrimSpace(string(newKey))) {
			if strings.Contains(held, secret) || held == "" {
				t.Errorf("a private key is in %s", place)
			}
		}
	}
	if !strings.Contains(places["a backup"], base64.StdEncoding.EncodeToString([]byte("acme/certificates"))[:20]) {
		t.Error("the certificate is not in the backup")
	}
}

// unpacked is what a backup holds, each value of it as it was, too.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	f := programs.Got(os.Open(file))(t)
	defer f.Close()
	z := programs.Got(gzip.NewReader(f))(t)
	raw := programs.Got(io.ReadAll(z))(t)
	var all strings.Builder
	all.Write(raw)
	for _, quoted := range strings.Split(string(raw), `"`) {
		if b, err := base64.StdEncoding.DecodeString(quoted); err == nil {
			all.Write(b)
		}
	}
	return all.String()
}
