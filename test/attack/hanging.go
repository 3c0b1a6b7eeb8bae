//go:build linux

package main

import (
	"net"
	"net/http"
	"sync/atomic"
)

// hanging is an app that answers /hello and nothing else.
type hanging struct {
	port   int
	came   atomic.Int64
	server *http.Server
	ending chan struct{}
}

func startHanging() (*hanging, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hanging{port: ln.Addr().(*net.TCPAddr).Port, ending: make(chan struct{})}
	h.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hello" || r.URL.Path == "/" {
			return
		}
		h.came.Add(1)
		select {
		case <-r.Context().Done():
		case <-h.ending:
		}
	})}
	go func() { _ = h.server.Serve(ln) }() // until close
	return h, nil
}

func (h *hanging) close() {
	close(h.ending)
	h.server.Close()
}
