//go:build !linux

package relay

import (
	"context"
	"net"
	"time"
)

// Listen opens a TCP listener for Serve on addr ("host:port").
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3,
	}}
	return config.Listen(ctx, "tcp", addr)
}

// tuner returns what is to be done to each connection accepted from l: nothing.
func tuner(net.Listener) func(net.Conn) { return func(net.Conn) {} }
