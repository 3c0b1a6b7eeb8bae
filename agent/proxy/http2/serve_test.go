package http2_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
	"porchlight/test/programs"
)

// What the handler gets for the same frames is the same on both ways.
func TestRequests(t *testing.T) {
	t.Parallel()
	type request struct {
		Method, URI, Host, Proto, Remote, Body, Err string
		URL                                         any
		Length                                      int64
		Header, Trailer                             http.Header
		Major                                       int
	}
	cases := map[string]func(v *visitor){
		"plain":              func(v *visitor) { v.ask(1, "GET", "/a/b?c=d", true, "user-agent", "x", "accept", "*/*") },
		"crumbs":             func(v *visitor) { v.ask(1, "GET", "/", true, "cookie", "a=b", "x-y", "1", "cookie", "c=d", "x-y", "2") },
		"escaped":            func(v *visitor) { v.ask(1, "GET", "/%41/%2f?%41#f", true) },
		"odd path":           func(v *visitor) { v.ask(1, "GET", "//a;b!c/../*()'", true) },
		"only a question":    func(v *visitor) { v.ask(1, "GET", "/?", true) },
		"two questions":      func(v *visitor) { v.ask(1, "GET", "/??a=?", true) },
		"asterisk":           func(v *visitor) { v.ask(1, "OPTIONS", "*", true) },
		"absolute":           func(v *visitor) { v.ask(1, "GET", "http://x/y", true) },
		"no path":            func(v *visitor) { v.ask(1, "GET", "", true) },
		"not a path":         func(v *visitor) { v.ask(1, "GET", "/%zz", true) },
		"a space":            func(v *visitor) { v.ask(1, "GET", "/a b", true) },
		"UTF-8":              func(v *visitor) { v.ask(1, "GET", "/ü?ü", true, "x", "ü") },
		"host as well":       func(v *visitor) { v.ask(1, "GET", "/", true, "host", "other.example") },
		"empty values":       func(v *visitor) { v.ask(1, "GET", "/", true, "x-empty", "", "cookie", "") },
		"length, no body":    func(v *visitor) { v.ask(1, "POST", "/", true, "content-length", "5") },
		"length is none":     func(v *visitor) { v.ask(1, "POST", "/", false, "content-length", "five"); v.WriteData(1, true, nil) },
		"te":                 func(v *visitor) { v.ask(1, "GET", "/", true, "te", "trailers") },
		"te of another kind": func(v *visitor) { v.ask(1, "GET", "/", true, "te", "gzip") },
		"te twice":           func(v *visitor) { v.ask(1, "GET", "/", true, "te", "trailers", "te", "trailers") },
		"expect":             func(v *visitor) { v.ask(1, "POST", "/", false, "expect", "100-continue"); v.WriteData(1, true, nil) },
		"expect something":   func(v *visitor) { v.ask(1, "POST", "/", false, "expect", "more"); v.WriteData(1, true, nil) },
		"a user":             func(v *visitor) { v.ask(1, "GET", "/", true, ":authority", "x") },
		"body": func(v *visitor) {
			v.ask(1, "POST", "/", false, "content-length", "5")
			v.WriteData(1, true, []byte("hello"))
		},
		"body in pieces": func(v *visitor) {
			v.ask(1, "POST", "/", false)
			v.WriteDataPadded(1, false, []byte("hel"), make([]byte, 9))
			v.WriteData(1, false, []byte("lo"))
			v.WriteData(1, true, nil)
		},
		"too short": func(v *visitor) {
			v.ask(1, "POST", "/", false, "content-length", "9")
			v.WriteData(1, true, []byte("hello"))
		},
		"trailers": func(v *visitor) {
			v.ask(1, "POST", "/", false, "trailer", "x-a, X-B,content-length", "trailer", "x-c")
			v.WriteData(1, false, []byte("hello"))
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode("x-a", "1", "x-a", "2", "x-late", "3"), EndHeaders: true, EndStream: true})
		},
		"a bad trailer": func(v *visitor) {
			v.ask(1, "POST", "/", false, "trailer", "x-a")
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode("content-length", "1"), EndHeaders: true, EndStream: true})
		},
		"CONNECT": func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "CONNECT", ":authority", "a:1"), EndHeaders: true, EndStream: true})
		},
		"CONNECT to a path": func(v *visitor) { v.ask(1, "CONNECT", "/", true) },
		"another scheme": func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "GET", ":scheme", "ftp", ":authority", "a", ":path", "/"), EndHeaders: true, EndStream: true})
		},
		"no authority": func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "GET", ":scheme", "https", ":path", "/", "host", "h"), EndHeaders: true, EndStream: true})
		},
		"somebody@": func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "GET", ":scheme", "https", ":authority", "a@b", ":path", "/"), EndHeaders: true, EndStream: true})
		},
	}
	for _, field := range []string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"} {
		cases[field] = func(v *visitor) { v.ask(1, "GET", "/", true, field, "x") }
	}
	for name, send := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, saw [2]request
			var outcome [2]string
			for i, way := range both {
				var mu sync.Mutex
				v := meet(t, way, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					failed := ""
					if err != nil {
						failed = "it failed" // each in its own words
					}
					mu.Lock()
					defer mu.Unlock()
					got[i] = request{r.Method, r.RequestURI, r.Host, r.Proto, "", string(body), failed, *r.URL, r.ContentLength, r.Header.Clone(), r.Trailer, r.ProtoMajor}
				}))
				send(v)
				outcome[i] = v.outcome(1)
				mu.Lock()
				if !strings.HasPrefix(outcome[i], "reset") { // a handler may have begun, or not
					saw[i] = got[i]
				}
				mu.Unlock()
			}
			if !reflect.DeepEqual(saw[0], saw[1]) || outcome[0] != outcome[1] {
				t.Errorf("ours:       %s, %+v\nnet/http's: %s, %+v", outcome[0], saw[0], outcome[1], saw[1])
			}
		})
	}
}

// outcome is the status of an answer, after those that only announce it, or how it failed.
func (v *visitor) outcome(id uint32) (all string) {
	for f := range v.frames {
		switch f := f.(type) {
		case *headFrame:
			if f.StreamID == id {
				all += f.value(":status")
				if !strings.HasPrefix(f.value(":status"), "1") {
					return all
				}
				all += ", "
			}
		case *frames.RSTStreamFrame:
			if f.StreamID == id {
				return "reset: " + f.ErrCode.String()
			}
		case *frames.GoAwayFrame:
			return "goodbye: " + f.ErrCode.String()
		}
	}
	return "closed"
}

// The answers of a handler are the same on both ways, but for how they are cut into
// frames.
func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 30_000)
	for name, h := range map[string]http.HandlerFunc{
		"nothing":          func(http.ResponseWriter, *http.Request) {},
		"short":            func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"just gathered":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long[:4096]) },
		"just not":         func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long[:4097]) },
		"long":             func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) },
		"short, then long": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x"); io.WriteString(w, long) },
		"with a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "300000")
			io.WriteString(w, long)
		},
		"more than its length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			if _, err := io.WriteString(w, long); err == nil {
				panic("it was taken")
			}
		},
		"a length that is none": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "x")
			io.WriteString(w, "y")
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusSeeOther) },
		"no content": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				panic(err)
			}
		},
		"not modified": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(304)
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			io.WriteString(w, "b")
		},
		"of no type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		},
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "<html>")
		},
		"of no date": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil },
		"changed late": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("A", "1")
			w.WriteHeader(201)
			w.Header().Set("A", "2")
			w.WriteHeader(202)
		},
		"odd fields": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X y"] = []string{"a"}
			w.Header()["x-lower"] = []string{"a", "b\nc", "d"}
			w.Header()["Connection"] = []string{"x"}
			w.Header()["Transfer-Encoding"] = []string{"chunked"}
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.Header().Set("Content-Length", "1")
			w.WriteHeader(103)
			io.WriteString(w, "x")
		},
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "A, B, Content-Length")
			io.WriteString(w, "x")
			w.Header().Set("A", "1")
			w.Header().Set(http.TrailerPrefix+"C", "3")
		},
		"trailers alone": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0") },
		"trailers after a flush": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		},
		"promised trailers": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Trailer", "A") },
		"meant to fail":     func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long); panic(http.ErrAbortHandler) },
	} {
		for _, method := range []string{"GET", "HEAD"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				var got [2]string
				for i, way := range both {
					v := meet(t, way, h, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 1 << 20})
					v.WriteWindowUpdate(0, 1<<20)
					v.ask(1, method, "/", true)
					got[i] = v.everything(1)
				}
				if got[0] != got[1] {
					t.Errorf("ours:\n%.3000s\nnet/http's:\n%.3000s", got[0], got[1])
				}
			})
		}
	}
}

// everything is an answer as text, to the end of its stream.
func (v *visitor) everything(id uint32) string {
	var out strings.Builder
	body := 0
	say := func() {
		if body > 0 {
			fmt.Fprintf(&out, "%d bytes\n", body)
		}
		body = 0
	}
	for f := range v.frames {
		switch f := f.(type) {
		case *dataFrame:
			body += len(f.data)
		case *headFrame:
			say()
			lines := map[string][]string{}
			for _, field := range f.fields {
				if field.Name == "date" {
					field.Value = "now"
				}
				lines[field.Name] = append(lines[field.Name], field.Value)
			}
			fmt.Fprintln(&out, lines)
		case *frames.RSTStreamFrame:
			say()
			fmt.Fprintln(&out, f.ErrCode)
			return "reset: " + f.ErrCode.String() // how much came before is chance
		default:
			continue
		}
		if h := f.Header(); h.Flags.Has(frames.FlagDataEndStream) {
			say()
			return out.String() + "end"
		}
	}
	return out.String() + "closed"
}

// Many streams with bodies both ways at once, through net/http's own client.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	ours, theirs := programs.Connected(t)
	stop := serve(t, own, theirs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Read")
		n, err := io.Copy(w, r.Body) // each byte as it comes
		w.Header().Set("Read", fmt.Sprint(n, err))
	}))
	defer stop()
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if res, err := client.Get("http://app.example/"); err != nil { // all that follow find its connection
		t.Fatal(err)
	} else {
		res.Body.Close()
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			size := 1 + i*7919
			sent := make([]byte, size)
			rand.Read(sent)
			res, err := client.Post("http://app.example/", "x/y", bytes.NewReader(sent))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if err != nil || !bytes.Equal(got, sent) || res.Trailer.Get("Read") != fmt.Sprint(size, " <nil>") {
				t.Errorf("%d bytes: %d came back, %v, %v", size, len(got), err, res.Trailer)
			}
		})
	}
	wg.Wait()
}

// A request that is reset, or whose connection ends, has its context end; so has one
// that is answered.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	eachWay(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		child, cancel := context.WithCancel(r.Context())
		defer cancel()
		told := make(chan struct{})
		stop := context.AfterFunc(r.Context(), func() { close(told) })
		if r.URL.Path == "/now" {
			if !stop() || r.Context().Err() != nil {
				t.Error("it ended before")
			}
			return
		}
		w.WriteHeader(103)
		<-child.Done()
		<-told
		if r.Context().Err() == nil || context.Cause(child) != context.Canceled {
			t.Error(r.Context().Err())
		}
	}), func(t *testing.T, _ string, v *visitor) {
		v.ask(1, "GET", "/now", true)
		v.head(1)
		v.ask(3, "GET", "/reset", true)
		v.head(3)
		v.WriteRSTStream(3, frames.ErrCodeCancel)
		v.ask(5, "POST", "/gone", false)
		v.head(5)
		v.conn.Close()
	})
}

// Shutdown lets what is under way finish and takes no more; Close does not wait.
func TestShutdown(t *testing.T) {
	t.Parallel()
	ours, theirs := programs.Connected(t)
	defer ours.Close()
	begun, finish := make(chan struct{}), make(chan struct{})
	s := http2.New(http2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-finish
		io.WriteString(w, "whole")
	})})
	served := make(chan struct{})
	go func() { defer close(served); s.NewConn(t.Context(), theirs).Serve() }()
	v := visit(t, ours, false)
	v.ask(1, "GET", "/", true)
	<-begun
	shut := make(chan error, 1)
	go func() { shut <- s.Shutdown(t.Context()) }()
	if bye, ok := v.next(func(f frames.Frame) bool { _, is := f.(*frames.GoAwayFrame); return is }).(*frames.GoAwayFrame); !ok || bye.LastStreamID != 1 || bye.ErrCode != frames.ErrCodeNo {
		t.Errorf("%v", bye)
	}
	v.ask(3, "GET", "/", true) // too late: it belongs elsewhere
	close(finish)
	if body := v.body(1); body != "whole" {
		t.Errorf("%q", body)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
	<-served
	s.Close()

	ours, theirs = programs.Connected(t)
	defer ours.Close()
	s = http2.New(http2.Config{Handler: http.HandlerFunc(slow)})
	go s.NewConn(t.Context(), theirs).Serve()
	v = visit(t, ours, false)
	v.ask(1, "GET", "/", true)
	v.ask(3, "POST", "/", false)
	v.WritePing(false, [8]byte{})
	v.next(func(f frames.Frame) bool { _, is := f.(*frames.PingFrame); return is })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if s.Shutdown(ctx) == nil {
		t.Error("requests under way were given up")
	}
	s.Close()
	if _, ok := <-v.frames; ok {
		for range v.frames {
		}
	}
}

// FuzzFrames is whatever a visitor may send after its hello: nothing of ours breaks, and
// the body that a handler reads is never longer than the request says.
func FuzzFrames(f *testing.F) {
	var seed bytes.Buffer
	framer := frames.NewFramer(&seed, nil)
	v := &visitor{Framer: framer, t: f}
	v.encoder = newEncoder(v)
	v.AllowIllegalWrites = true
	add := func(write func()) { seed.Reset(); write(); f.Add(bytes.Clone(seed.Bytes())) }
	add(func() { v.ask(1, "GET", "/", true); v.ask(3, "HEAD", "/", true) })
	add(func() { v.ask(1, "POST", "/", false, "content-length", "5"); v.WriteData(1, true, []byte("hello")) })
	add(func() {
		v.ask(1, "POST", "/", false, "trailer", "a")
		v.WriteDataPadded(1, false, []byte("hello"), make([]byte, 3))
		v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode("a", "b"), EndHeaders: true, EndStream: true})
	})
	add(func() {
		v.WriteSettings(frames.Setting{ID: 4, Val: 1})
		v.ask(1, "GET", "/long", true)
		v.WriteWindowUpdate(1, 5)
		v.WriteRSTStream(1, 8)
	})
	add(func() {
		v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "GET")})
		v.WriteContinuation(1, true, v.encode(":path", "/", ":scheme", "https"))
	})
	add(func() {
		v.WritePing(false, [8]byte{})
		v.WritePriority(1, frames.PriorityParam{StreamDep: 1})
		v.WriteGoAway(0, 0, nil)
		v.WriteRawFrame(0xfa, 1, 1, nil)
	})
	f.Fuzz(func(t *testing.T, sent []byte) {
		theirs, ours := net.Pipe()
		stop := serve(t, own, address{theirs}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if r.ContentLength >= 0 && (int64(len(body)) > r.ContentLength || err == nil && int64(len(body)) < r.ContentLength) {
				t.Errorf("%d bytes of %d, %v", len(body), r.ContentLength, err)
			}
			if r.URL.Path == "/long" {
				w.Write(make([]byte, 100_000))
			}
			w.Write(body)
		}))
		read := make(chan struct{})
		go func() { defer close(read); io.Copy(io.Discard, ours) }()
		ours.SetDeadline(time.Now().Add(limits.HeaderTimeout))
		io.WriteString(ours, frames.ClientPreface)
		frames.NewFramer(ours, nil).WriteSettings()
		ours.Write(sent)
		ours.Close()
		<-read
		stop()
	})
}
