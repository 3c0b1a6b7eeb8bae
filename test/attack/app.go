//go:build linux

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
)

// roleVariable has this program be the app in Go instead.
const roleVariable = "PORCHLIGHT_ATTACK_APP"

// seen is a request as an app understood it, which it writes down before it
// answers "seen TARGET".
type seen struct {
	Method   string      `json:"method"`
	Target   string      `json:"target"`
	Fields   [][2]string `json:"fields"`
	Trailers [][2]string `json:"trailers"`
	Body     string      `json:"body"` // hexadecimal
}

// playApp is the app in Go; its log is the first argument.
func playApp() {
	log, err := os.OpenFile(os.Args[1], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr().(*net.TCPAddr).Port)
	err = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // half a request
		}
		line, err := json.Marshal(seen{r.Method, r.RequestURI, pairs(r.Header, "Host", r.Host), pairs(r.Trailer), hex.EncodeToString(body)})
		if err != nil {
			panic(err)
		}
		if _, err := log.Write(append(line, '\n')); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "seen %s\n", r.RequestURI)
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func pairs(h http.Header, more ...string) [][2]string {
	out := [][2]string{}
	for pair := range slices.Chunk(more, 2) {
		out = append(out, [2]string{pair[0], pair[1]})
	}
	for name, values := range h {
		for _, value := range values {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}
