package local

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// street is a house with a member, bob, who may open notes, and an app that
// records every byte it is sent. Attacks take the real way: relay, tunnel, TLS
// in the agent, proxy.
type street struct {
	*house
	app     *wiretap
	address string // https://notes.<root host>
	host    string // of address, with its port
	bob     *visitor.Visitor
	bobID   string
	cookie  string // bob's, as it goes into a request
}

func startStreet(t *testing.T) *street {
	t.Helper()
	s := &street{house: startHouse(t), app: newWiretap(t)}
	s.port = s.app.port
	s.address = s.publish(t)
	s.host = strings.TrimPrefix(s.address, "https://")
	s.bobID = s.joined(t, bobEmail, "Notes").AccountID
	s.bob = s.browser(t)
	page, err := s.bob.SignIn(t.Context(), s.address, bobEmail, s.mails)
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("bob signs in: %+v, %v", page, err)
	}
	s.cookie = cookieLine(s.bob.Cookies(&url.URL{Scheme: "https", Host: s.host, Path: "/"}))
	s.app.forget()
	return s
}

// raw sends bytes over a TLS connection for a host and returns all that comes
// back. "HOST" and "COOKIE" in the bytes stand for the app's host and bob's
// session.
func (s *street) raw(t *testing.T, host, request string) string {
	t.Helper()
	conn := programs.Got(controlapi.DialContext(t.Context(), "tcp", host))(t)
	name, _, _ := net.SplitHostPort(host)
	c := tls.Client(conn, &tls.Config{RootCAs: s.roots(), ServerName: name})
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, strings.NewReplacer("HOST", s.host, "COOKIE", s.cookie).Replace(request)) // may fail: refused already
	answer, err := io.ReadAll(c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Errorf("%.80q: the connection stays open", request)
	}
	return string(answer)
}

// ask is raw for one request of bob's, at the app's host, on a connection of its
// own; head is everything between the request line and Host.
func (s *street) ask(t *testing.T, line, head string) (status, answer string) {
	t.Helper()
	answer = s.raw(t, s.host, line+" HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nConnection: close\r\n"+head+"\r\n")
	return statusOf(answer), answer
}

func statusOf(answer string) string { return strings.Fields(answer + " - -")[1] }

// wiretap is an app that keeps the bytes of every connection, takes one request
// on each, and gives the same answer to all.
type wiretap struct {
	port int

	mu     sync.Mutex
	got    []*bytes.Buffer
	peers  []string // addresses the connections came from
	answer string   // header lines
}

func newWiretap(t *testing.T) *wiretap {
	t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	w := &wiretap{port: portOf(t, ln.Addr().String())}
	programs.ServeConns(t, ln, w.serve)
	return w
}

func (w *wiretap) serve(c net.Conn) {
	c.SetDeadline(time.Now().Add(20 * time.Second))
	buf := new(bytes.Buffer)
	w.mu.Lock()
	w.got = append(w.got, buf)
	w.peers = append(w.peers, c.RemoteAddr().String())
	answer := w.answer
	w.mu.Unlock()
	req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, lockedWriter{&w.mu, buf})))
	if err != nil {
		return
	}
	io.Copy(io.Discard, req.Body)
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n%s\r\nok", answer)
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// requests are the bytes of each connection so far that carried any.
func (w *wiretap) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, b := range w.got {
		if b.Len() > 0 {
			out = append(out, b.String())
		}
	}
	return out
}

func (w *wiretap) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got, w.peers = nil, nil
}

func (w *wiretap) answerWith(headers string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = headers
}

// only is the one request the app has been sent since forget.
func (s *street) only(t *testing.T) string {
	t.Helper()
	got := s.app.requests()
	s.app.forget()
	if len(got) != 1 {
		t.Fatalf("the app was sent %d requests: %q", len(got), got)
	}
	return got[0]
}

// untouched checks that the app was sent nothing.
func (s *street) untouched(t *testing.T) {
	t.Helper()
	if got := s.app.requests(); len(got) > 0 {
		t.Errorf("the app was sent %q", got)
		s.app.forget()
	}
}

// identity checks that exactly the five headers are in a request, once each, and
// say that it is bob's.
func (s *street) identity(t *testing.T, request string) {
	t.Helper()
	head, _, _ := strings.Cut(request, "\r\n\r\n")
	var got []string
	for line := range strings.SplitSeq(head, "\r\n") {
		folded := strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(line))
		if strings.HasPrefix(folded, "x-service-") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	want := []string{
		"X-Service-App: Notes", "X-Service-Email: " + bobEmail, "X-Service-Name: " + s.account().Name,
		"X-Service-Role: member", "X-Service-User: " + s.bobID,
	}
	if !slices.Equal(got, want) {
		t.Errorf("identity headers\n got %q\nwant %q", got, want)
	}
}

// state is what the owner sees.
func (s *street) state(t *testing.T) agentapi.OwnerState {
	t.Helper()
	return programs.Got(s.owner.State(t.Context()))(t)
}
