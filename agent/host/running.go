package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/user"
	"path/filepath"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

// theirsWithin bounds the wait for another user's Porchlight to say that it is one.
const theirsWithin = 4 * time.Second

// Found is a Porchlight that runs already.
type Found struct {
	agentapi.EngineInfo
	API string // host:port of its loopback API
	// OwnerSocket is the path of its owner tier, where it serves the same data
	// directory; empty otherwise.
	OwnerSocket string
}

// String is the beginning of a sentence about it.
func (f *Found) String() string {
	return fmt.Sprintf("Porchlight already runs here (%s, pid %d)", f.Mode, f.PID)
}

// Find looks for a Porchlight that serves dataDir, or answers at api. It returns
// nil when there is none; one that speaks another protocol is an error with
// agentapi.CodeConflict.
func Find(ctx context.Context, dataDir, api string) (*Found, error) {
	running, err := agentapi.ReadRunning(dataDir)
	if err == nil {
		info, err := agentapi.New(running.API).Attach(ctx)
		switch {
		case err == nil && info.PID == running.PID:
			return &Found{EngineInfo: info, API: running.API, OwnerSocket: running.OwnerSocket}, nil
		case agentapi.CodeOf(err) == agentapi.CodeConflict:
			return nil, err
		}
		// Its word outlived it, or somebody else took its port.
	}
	if _, port, err := net.SplitHostPort(api); err != nil || port == "0" {
		return nil, nil
	}
	info, err := agentapi.New(api).Attach(ctx)
	switch {
	case err == nil:
		return &Found{EngineInfo: info, API: api}, nil
	case agentapi.CodeOf(err) == agentapi.CodeConflict, errors.Is(err, context.Canceled):
		return nil, err
	}
	return nil, nil // nothing there, or no Porchlight: the start will say what
}

// Theirs tells of a Porchlight at an address that another user of this computer runs; nil
// where there is none.
func Theirs(ctx context.Context, address string) error {
	me, err := user.Current()
	addr, bad := netip.ParseAddrPort(address)
	if err != nil || bad != nil {
		return nil
	}
	socket := procinfo.ListenerSocket(addr.Addr(), int(addr.Port()))
	if socket.UserID == me.Uid {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, theirsWithin)
	defer cancel()
	switch _, err := agentapi.New(address).Status(ctx); {
	case err != nil:
		return nil
	case socket.User == "":
		return agentapi.Errorf(agentapi.CodeForbidden, "Porchlight runs on this computer as another user, who decides here: ask them.")
	}
	return agentapi.Errorf(agentapi.CodeForbidden, "Porchlight runs on this computer as %s, who decides here: ask them.", socket.User)
}

// Connected says whether dataDir is that of a computer connected to a control
// plane. A file that cannot be read counts as yes: Start says what is wrong.
func Connected(dataDir string) bool {
	f, err := openConnection(filepath.Join(dataDir, connectionName))
	return err != nil || f.get().Current != nil
}
