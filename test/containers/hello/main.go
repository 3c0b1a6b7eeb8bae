// Command hello is an app for a container: it greets who is there, at port 8080 or at the unix
// socket that it is told.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	network, address := "tcp", ":8080"
	if len(os.Args) > 1 {
		network, address = "unix", os.Args[1]
		_ = os.Remove(address) // of a run before
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
