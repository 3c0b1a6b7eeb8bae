package local

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// serves has another app than the usual one behind the address.
func (h *house) serves(t *testing.T, srv *httptest.Server) {
	t.Cleanup(srv.Close)
	h.port = portOf(t, srv.Listener.Addr().String())
}

// ownersClient is a client of one protocol, signed in at notes by the owner's
// link, that keeps cookies and follows no redirect.
func (h *house) ownersClient(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	return h.ownersClientAt(t, "notes", http2)
}

func (h *house) ownersClientAt(t *testing.T, name string, http2 bool) *http.Client {
	t.Helper()
	link := programs.Got(h.owner.Open(t.Context(), name))(t)
	jar, _ := cookiejar.New(nil)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{
		DialContext:           controlapi.DialContext,
		Protocols:             protocols,
		DisableCompression:    true,
		ExpectContinueTimeout: 10 * time.Second,
		TLSClientConfig:       &tls.Config{RootCAs: h.roots()},
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp := programs.Got(client.Get(link.URL))(t)
	resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("the owner's link: %s", resp.Status)
	}
	return client
}

// cookieLine is how cookies go into a request.
func cookieLine(cookies []*http.Cookie) string {
	pairs := make([]string, len(cookies))
	for i, c := range cookies {
		pairs[i] = c.Name + "=" + c.Value
	}
	return strings.Join(pairs, "; ")
}

func send(t *testing.T, client *http.Client, method, address string, body io.Reader, header ...string) *http.Response {
	t.Helper()
	req := programs.Got(http.NewRequestWithContext(t.Context(), method, address, body))(t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// Each event arrives when the app writes it, through relay, tunnel and agent.
func TestTrafficEvents(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	next := make(chan struct{})
	h.serves(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next // not before the visitor has read it
		}
	})))
	address := h.publish(t)
	for _, http2 := range []bool{false, true} {
		resp := send(t, h.ownersClient(t, http2), http.MethodGet, address+"/events", nil)
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("http2=%v: %q, %v", http2, line, err)
			}
			lines.ReadString('\n')
			next <- struct{}{}
		}
	}
}

// A hundred streams of one HTTP/2 connection are open at once: the app answers
// none before it has all of them.
func TestTrafficHundredStreams(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	const streams = 100
	var arrived sync.WaitGroup
	arrived.Add(streams)
	h.serves(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			arrived.Done()
			arrived.Wait()
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})))
	address := h.publish(t)
	client := h.ownersClient(t, true)
	errs := make(chan error, streams)
	for i := range streams {
		go func() {
			want := strings.Repeat(fmt.Sprintf("%02d", i), 20_000)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/stream", strings.NewReader(want))
			if err != nil {
				errs <- err
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				errs <- err
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err == nil && (string(got) != want || resp.ProtoMajor != 2) {
				err = fmt.Errorf("stream %d: %s, %d bytes", i, resp.Proto, len(got))
			}
			errs <- err
		}()
	}
	for range streams {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// gRPC's shape over an app that speaks HTTP/2 without TLS: messages both ways
// while the request goes on, and the status in a trailer.
func TestTrafficTrailersLikeGRPC(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			http.Error(w, r.Proto, http.StatusHTTPVersionNotSupported)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.(http.Flusher).Flush()
		buf := make([]byte, 64)
		for {
			n, err := r.Body.Read(buf)
			w.Write(buf[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("Grpc-Status", "0")
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	h.serves(t, srv)
	address := h.publish(t)
	programs.Got(h.owner.ChangeOptions(t.Context(), "notes", map[string]any{"h2c": true}))(t)
	body, w := io.Pipe()
	resp := send(t, h.ownersClient(t, true), http.MethodPost, address+"/pkg.Service/Method", body, "Content-Type", "application/grpc", "Te", "trailers")
	buf := make([]byte, 16)
	for _, message := range []string{"first", "second"} {
		io.WriteString(w, message)
		if n, err := io.ReadAtLeast(resp.Body, buf, len(message)); err != nil || string(buf[:n]) != message {
			t.Fatalf("%q came back as %q, %v", message, buf[:n], err)
		}
	}
	w.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%q, trailers %v, %v", rest, resp.Trailer, err)
	}
}

// Expect: 100-continue goes the whole way: the visitor sends no body to an app
// that does not want it.
func TestTrafficExpectContinue(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	h.serves(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})))
	address := h.publish(t)
	client := h.ownersClient(t, false)
	resp := send(t, client, http.MethodPut, address+"/wanted", strings.NewReader("hello"), "Expect", "100-continue")
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello" {
		t.Errorf("%s: %q, %v", resp.Status, body, err)
	}
	sent := &watched{Reader: strings.NewReader("hello")}
	resp = send(t, client, http.MethodPut, address+"/refused", sent, "Expect", "100-continue")
	if resp.StatusCode != http.StatusRequestEntityTooLarge || sent.was() {
		t.Errorf("%s; body sent: %v", resp.Status, sent.was())
	}
}

// watched is a body that knows whether anybody read it.
type watched struct {
	io.Reader
	mu   sync.Mutex
	read bool
}

func (w *watched) Read(p []byte) (int, error) {
	w.mu.Lock()
	w.read = true
	w.mu.Unlock()
	return w.Reader.Read(p)
}

func (w *watched) was() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read
}
