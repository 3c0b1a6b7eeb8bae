// Command app is an app of Windows for the test of this directory: it asks Porchlight for an
// address as any program may, by HTTP, says in a line what it is answered, and tells
// visitors who they are.
//
// usage: app NAME
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const porchlight = "http://127.0.0.1:8765"

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go ask(name, l.Addr().(*net.TCPAddr).Port)
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s is %s of %s", r.Header.Get("X-Service-Email"), r.Header.Get("X-Service-Role"), r.Header.Get("X-Service-App"))
	}))
}

// ask asks, and then how it stands, until that has changed.
func ask(name string, port int) {
	body, _ := json.Marshal(map[string]any{"name": name, "label": "Notes", "localPort": port}) // of these it cannot fail
	resp, err := http.Post(porchlight+"/publish", "application/json", bytes.NewReader(body))
	for said := ""; ; resp, err = http.Get(porchlight + "/publish/" + name) {
		now := fmt.Sprint(err)
		if err == nil {
			raw, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what is missing is not JSON
			resp.Body.Close()
			now = string(bytes.TrimSpace(raw))
		}
		if now != said {
			fmt.Println("answered:", now)
			said = now
		}
		time.Sleep(200 * time.Millisecond)
	}
}
