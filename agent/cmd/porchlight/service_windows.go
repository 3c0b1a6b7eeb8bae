package main

import (
	"context"
	"net/netip"
	"os"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

// serviceProgram is what the installer has start at login.
const serviceProgram = "porchlight-agent"

// stopService ends the agent that starts at login. It has no window to be closed by, and
// what it keeps survives a kill.
func stopService(_ context.Context, dir string) {
	running, err := agentapi.ReadRunning(dir)
	if err != nil {
		return
	}
	at, err := netip.ParseAddrPort(running.API)
	if err != nil {
		return
	}
	listens := procinfo.ListenerSocket(at.Addr(), int(at.Port())).Find()
	if listens.PID != running.PID || listens.Program != serviceProgram {
		return // somebody started another one, who can stop it
	}
	if p, err := os.FindProcess(running.PID); err == nil && p.Kill() == nil {
		_, _ = p.Wait()
	}
}

// disableService has nothing to do: what starts at login is a value that autostart removes.
func disableService(context.Context) {}
