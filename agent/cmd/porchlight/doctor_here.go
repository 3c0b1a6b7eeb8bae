package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"time"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/ownersecret"
	"porchlight/agent/procinfo"
)

// checkAgent says whether an agent answers where commands look for it, and what
// kind; no kind when none does.
func checkAgent(ctx context.Context, where *location) (finding, agentapi.Mode) {
	ctx, cancel := context.WithTimeout(ctx, doctor.Within)
	defer cancel()
	var info agentapi.EngineInfo
	client, err := where.open()
	switch {
	case errors.Is(err, agentapi.ErrNotRunning):
		return notRunning(ctx, where), ""
	case err != nil: // a file that does not say where it is
		return doctor.Found("agent", wrong, inWords(err), "Quit Porchlight where it runs, and start it again: it writes the file anew."), ""
	}
	info, err = client.EngineInfo(ctx)
	switch code := agentapi.CodeOf(err); {
	case errors.Is(err, agentapi.ErrNotRunning):
		return notRunning(ctx, where), ""
	case errors.Is(err, context.DeadlineExceeded), code == agentapi.CodeUnavailable, code == agentapi.CodeUpstream:
		return notAnswering(where, err), ""
	case err != nil:
		return doctor.Found("agent", wrong, inWords(err), "Quit Porchlight, and start it again."), ""
	}
	f := doctor.Found("agent", fine, fmt.Sprintf("Version %s runs as process %d (%s).", info.EngineVersion, info.PID, info.Mode), "")
	if info.EngineVersion != agent.Version {
		f.State, f.Next = note, fmt.Sprintf("This command is version %s. Start Porchlight again after an update.", agent.Version)
	}
	return f, info.Mode
}

// notRunning is told of no agent; one that is started has to find its address free.
func notRunning(ctx context.Context, where *location) finding {
	const start = "Start it from your applications menu, or type: porchlight agent --local"
	address := where.given()
	if address == "" {
		address = agentapi.DefaultAddress
	}
	if conn, err := dial(ctx, address); err == nil {
		conn.Close()
		return doctor.Found("agent", wrong, fmt.Sprintf("Porchlight is not running here, and %s has its address, %s.", listenerAt(address), address), "Quit that program, or start Porchlight beside it with another --api.")
	}
	return doctor.Found("agent", wrong, "Porchlight is not running here.", start)
}

// notAnswering tells an agent that hangs from a program that has its address.
func notAnswering(where *location, err error) finding {
	address := where.given()
	if dir, failed := where.dataDir(); failed == nil {
		if running, failed := agentapi.ReadRunning(dir); failed == nil && (address == "" || address == running.API) {
			address = running.API
			if procinfo.Listening(portOf(address)).PID == running.PID && agentapi.CodeOf(err) != agentapi.CodeUpstream {
				return doctor.Found("agent", wrong, fmt.Sprintf("Porchlight runs as process %d and does not answer: it hangs, or was stopped.", running.PID), "End it and start it again: "+endCommands(running.PID))
			}
		}
	}
	if address == "" {
		address = agentapi.DefaultAddress
	}
	return doctor.Found("agent", wrong, fmt.Sprintf("What listens at %s does not answer like Porchlight: it is %s.", address, listenerAt(address)), "Quit that program, or start Porchlight beside it with another --api.")
}

// listenerAt names the program at an address of this computer, as well as it can.
func listenerAt(address string) string {
	l := procinfo.Listening(portOf(address))
	switch {
	case l.Program != "" && l.PID != 0:
		return fmt.Sprintf("%s (process %d)", l.Program, l.PID)
	case l.User != "":
		return "a program of " + l.User
	}
	return "another program"
}

func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}

func endCommands(pid int) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf("taskkill /PID %d. Where that does not end it: taskkill /F /PID %[1]d", pid)
	}
	return fmt.Sprintf("kill %d. Where that does not end it: kill -KILL %[1]d", pid)
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
}

// checkOwner says whether the commands that decide can prove whose they are.
func checkOwner(ctx context.Context, where *location, mode agentapi.Mode) (*agentapi.Client, agentapi.OwnerState, finding) {
	ctx, cancel := context.WithTimeout(ctx, proveWithin)
	defer cancel()
	client, err := where.owner(ctx)
	var state agentapi.OwnerState
	if err == nil {
		state, err = client.State(ctx)
	}
	if err != nil && where.theirs(ctx) != nil {
		return nil, state, doctor.Found("owner", wrong, inWords(err), "")
	}
	if err != nil {
		return nil, state, doctor.Found("owner", wrong, inWords(err), ownerNext(err, mode))
	}
	return client, state, doctor.Found("owner", fine, "You are the owner, and can decide.", "")
}

// ownerNext says how somebody who cannot prove to be the owner can again.
func ownerNext(err error, mode agentapi.Mode) string {
	switch {
	case errors.Is(err, ownersecret.ErrLocked):
		return "Unlock it in your desktop's password manager, or by signing in to the desktop with your password, and run this again."
	case errors.Is(err, ownersecret.ErrUnavailable) && mode == agentapi.ModeDesktop:
		return "Run this in a terminal of your desktop session, where the keychain is."
	case errors.Is(err, ownersecret.ErrExposed):
		return "Close the file to others as it says, and run this again."
	}
	return "Quit Porchlight and start it again as the user whose it is: it makes the secret anew where there is none."
}
