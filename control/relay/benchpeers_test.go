package relay_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/test/programs"
)

// playRelay is the relay's process: it prints its address and ends with its input.
func playRelay() {
	dir := os.Getenv(dirEnv)
	certificate := must(tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")))
	r := must(relay.New(relay.Config{
		AuthHost: benchAuth, TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}, Handler: http.NotFoundHandler(),
		Authenticate: func(context.Context, string) (controlapi.Computer, error) {
			return controlapi.Computer{ID: "bench", Host: benchHost}, nil
		},
		Limits: relay.Limits{Visitors: 4096, VisitorsPerComputer: 4096}, // all visit one computer
	}))
	l := must(relay.Listen(context.Background(), "127.0.0.1:0"))
	fmt.Println(l.Addr())
	go endWithInput()
	_ = r.Serve(context.Background(), l)
}

// playAgent is the agent's process with the app, which haproxy reaches directly.
func playAgent() {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(filepath.Join(os.Getenv(dirEnv), "cert.pem"))))
	t := must(tunnel.New(tunnel.Config{
		Relays: func() []controlapi.Relay {
			return []controlapi.Relay{{Address: os.Getenv(relayEnv), ServerName: benchAuth}}
		},
		Credential: func() string { return "bench" }, RootCAs: pool,
	}))
	direct := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = t.Run(context.Background()) }()
	for !t.Connected() {
		changes := t.Changes()
		if !t.Connected() {
			<-changes
		}
	}
	fmt.Println(direct.Addr())
	for _, l := range []net.Listener{t.Listener(), direct} {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go app(conn)
			}
		}()
	}
	endWithInput()
}

func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// app reads a ClientHello and answers one byte; then each message's first byte
// says what is wanted: 'b' and eight digits that many MiB, else its echo.
func app(conn net.Conn) {
	defer conn.Close()
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, conn, int64(head[3])<<8|int64(head[4])); err != nil {
		return
	}
	if _, err := conn.Write([]byte{'.'}); err != nil {
		return
	}
	var buf [256]byte
	var bulk []byte
	for {
		n, err := conn.Read(buf[:])
		if err != nil {
			return
		}
		if buf[0] == 'b' {
			mib, _ := strconv.Atoi(string(buf[1:n]))
			if bulk == nil {
				bulk = make([]byte, 1<<20)
			}
			for range mib {
				if _, err := conn.Write(bulk); err != nil {
					return
				}
			}
		} else if _, err := conn.Write(buf[:n]); err != nil {
			return
		}
	}
}

// peer is something that leads visitors to the app.
type peer struct {
	name, addr string
	pid        int
}

// stage starts relay, agent and, where it is installed, haproxy.
func stage(b *testing.B) []peer {
	b.Helper()
	dir := b.TempDir()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{benchAuth}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	play := func(role string, env ...string) (string, int) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir), env...)
		must(cmd.StdinPipe()) // it ends with its input, so also when we are killed
		p := programs.Begin(b, cmd)
		return must(p.Says(b.Context(), `(\S+)\n`))[1], p.PID()
	}
	relayAddr, relayPID := play("relay")
	direct, _ := play("agent", relayEnv+"="+relayAddr)
	peers := []peer{{"relay", relayAddr, relayPID}}
	if h, ok := haproxy(b, dir, direct); ok {
		peers = append(peers, h)
	}
	return append(peers, peer{name: "direct", addr: direct})
}

// haproxy starts haproxy routing by server name straight to the app, set up as
// well as it can be: always splicing, and through pipes as large as Go's. With
// splice-auto and its own pipe size it takes two to four times the processor time.
func haproxy(b *testing.B, dir, app string) (peer, bool) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			b.Log("haproxy is not installed (apt-get install haproxy): no comparison")
			return peer{}, false
		}
	}
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	addr := free.Addr().String()
	_ = free.Close()
	config := fmt.Sprintf(`global
  maxconn 4000
  nbthread 2
  maxpipes 4000
  tune.pipesize 1048576
defaults
  mode tcp
  option splice-request
  option splice-response
  timeout connect 5s
  timeout client 10m
  timeout server 10m
frontend visitors
  bind %s
  tcp-request inspect-delay 5s
  tcp-request content accept if { req_ssl_hello_type 1 }
  use_backend app if { req_ssl_sni -m end %s }
backend app
  server app %s
`, addr, benchHost, app)
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	p := programs.Begin(b, exec.Command(program, "-db", "-f", file))
	programs.Eventually(b, "haproxy answers", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return peer{"haproxy", addr, p.PID()}, true
}

var benchHello = sync.OnceValue(func() []byte {
	client, server := net.Pipe()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: "notes." + benchHost}).Handshake() }()
	defer client.Close()
	buf := make([]byte, 16<<10)
	n, _ := server.Read(buf)
	for n < 5 || n < 5+int(buf[3])<<8+int(buf[4]) {
		m, err := server.Read(buf[n:])
		if err != nil {
			panic(err)
		}
		n += m
	}
	return buf[:n]
})

// enter visits the app. source spreads visitors over loopback addresses, each of
// which has ports of its own.
func (p peer) enter(source int) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+source%200))}, KeepAlive: -1}
	conn, err := dialer.Dial("tcp", p.addr)
	if err != nil {
		return nil, err
	}
	var dot [1]byte
	if _, err = conn.Write(benchHello()); err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err = io.ReadFull(conn, dot[:])
		_ = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// cpu is the processor time the peer has used, in seconds.
func (p peer) cpu() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // ticks of a hundredth of a second
}

// resident is the peer's memory in bytes.
func (p peer) resident() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(b))[1], 64)
	return pages * float64(os.Getpagesize())
}
