//go:build !linux && !darwin

package upstream

import (
	"context"
	"net"

	"porchlight/agent/agentapi"
)

// dialSocket: on this system nobody tells whose a socket is.
func dialSocket(context.Context, string) (net.Conn, agentapi.Listener, error) {
	return nil, agentapi.Listener{}, SocketError("Apps cannot be reached at unix sockets on this system. Have the app listen on a port.")
}

// SocketOwner names nobody here.
func SocketOwner(string) agentapi.Listener { return agentapi.Listener{} }
