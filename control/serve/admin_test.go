package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"porchlight/control"
	"porchlight/test/programs"
)

// With --admin-address /admin is there, under the auth host's name and certificate, and leads to
// the auth host to sign in; nothing else is there, and the auth host has none.
func TestAdminAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := programs.Got(Open(t.Context(), Config{
		DataDir: dir, Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}, AdminAddress: "127.0.0.1:0", Metrics: "127.0.0.1:0",
	}))(t)
	programs.Run(t, n.Run)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(programs.Got(os.ReadFile(filepath.Join(dir, "ca", "root.pem")))(t))
	relay, _ := n.Addrs()
	get := func(addr, host, path string) (*http.Response, string) {
		t.Helper()
		conn := programs.Got(tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: "control.porch.test"}))(t)
		defer conn.Close()
		client := &http.Client{
			Transport:     &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		resp := programs.Got(client.Get("https://" + host + path))(t)
		defer resp.Body.Close()
		return resp, string(programs.Got(io.ReadAll(resp.Body))(t))
	}
	auth, admin := strings.TrimPrefix(n.AuthURL(), "https://"), strings.TrimPrefix(n.AdminURL(), "https://")
	if resp, _ := get(n.admins.Addr().String(), admin, "/admin"); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != n.AuthURL()+"/signin?return=%2Fadmin" {
		t.Errorf("/admin: %s to %s", resp.Status, resp.Header.Get("Location"))
	}
	for path, want := range map[string]int{"/signin": 404, "/account": 404, "/v1/people": 404, "/healthz": 404, "/admin/api/accounts": 401} {
		if resp, _ := get(n.admins.Addr().String(), admin, path); resp.StatusCode != want {
			t.Errorf("%s beside /admin: %s", path, resp.Status)
		}
	}
	if resp, _ := get(n.admins.Addr().String(), auth, "/admin"); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("under the auth host's port: %s", resp.Status)
	}
	if resp, _ := get(relay[0], auth, "/admin"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("at the auth host: %s", resp.Status)
	}
	if resp, _ := get(relay[0], auth, "/admin/api/accounts"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("its API at the auth host: %s", resp.Status)
	}
	if resp, body := get(relay[0], auth, "/signin?return=%2Fadmin"); !strings.Contains(resp.Header.Get("Content-Security-Policy"), n.AdminURL()) || !strings.Contains(body, `value="/admin"`) {
		t.Errorf("signing in: %v %s", resp.Header, body)
	}
	// What is asked there counts as at the auth host.
	_, metrics := n.Addrs()
	resp := programs.Got(http.Get("http://" + metrics + "/metrics"))(t)
	defer resp.Body.Close()
	told := string(programs.Got(io.ReadAll(resp.Body))(t))
	for _, want := range []string{`porchlight_http_requests_total{class="3xx",method="GET"} 1`, "porchlight_admin_refused_connections_total 0"} {
		if !strings.Contains(told, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// Weakness: one network holds all connections of --admin-address, or all together its files.
// Checked: who comes when its network, or all, have as many as they may is closed, and counted;
// who leaves makes room.
func TestAdminConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	var refused atomic.Int32
	door := &doorkeeper{Listener: l, most: 3, perSource: 2, refused: func() { refused.Add(1) }, by: map[netip.Prefix]int{}}
	in := make(chan net.Conn)
	go func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return
			}
			in <- conn
		}
	}()
	defer l.Close()
	from := func(source string) net.Conn {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
		return programs.Got(dialer.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
	}
	away := func(source string) {
		t.Helper()
		conn := from(source)
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s is answered", source)
		}
	}
	first, second := from("127.0.0.1"), from("127.0.0.1")
	defer first.Close()
	defer second.Close()
	entered := <-in
	<-in
	away("127.0.0.1")
	third := from("127.0.0.2")
	defer third.Close()
	<-in
	away("127.0.0.3")
	programs.Must(t, entered.Close())
	_ = entered.Close() // once more makes no more room
	again := from("127.0.0.3")
	defer again.Close()
	<-in
	away("127.0.0.2")
	if n := refused.Load(); n != 3 {
		t.Errorf("%d are counted", n)
	}
}
