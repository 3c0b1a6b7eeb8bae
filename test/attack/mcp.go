//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/test/programs"
)

// hostile is a computer with a coding agent on it that wants what it did not ask for.
type hostile struct {
	*computer
	s      *stage
	t      *tally
	secret string
	notes  int // port of the apps of others
	mine   int // of a program of the same user
	theirs int // of another user's
	before []agentapi.OwnerApp
}

// attackMCP has porchlight mcp led by that agent: it wants to put apps of others elsewhere
// or take them off, to have at an address what no browser should open, to ring as it likes,
// to be taken for somebody else, and to read what is the owner's.
func attackMCP(ctx context.Context, s *stage, t *tally) error {
	if os.Getuid() != 0 {
		t.skip("only root can run a program as another user")
		return nil
	}
	h, err := s.startHostile(ctx, t)
	if err != nil {
		return err
	}
	for _, tries := range []func(context.Context) error{
		h.takesNames, h.takesPorts, h.takesLabels, h.callsItself, h.ringsAgain, h.speaksRaw, h.racesItself, h.floods,
	} {
		if err := tries(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startHostile has apps of others in every state: notes is on, off stopped, paused is,
// waits does, and earlier is on since a coding agent's run before.
func (s *stage) startHostile(ctx context.Context, t *tally) (h *hostile, err error) {
	h = &hostile{s: s, t: t}
	c, b, err := s.startWithNotes(ctx)
	if err != nil {
		return nil, err
	}
	h.computer, h.notes = c, b.tap.port()
	if h.secret, err = ownersecret.File(c.Data).Get(ctx); err != nil {
		return nil, err
	}
	if h.mine, err = listens(0); err != nil {
		return nil, err
	}
	for _, port := range noWebApps {
		_, _ = listens(port) // another program may have it, which is as good
	}
	nobody, err := s.startStranger(ctx)
	if err != nil {
		return nil, err
	}
	if h.theirs, _, err = programs.Port(); err != nil {
		return nil, err
	}
	if _, err := nobody.do(order{Listen: h.theirs}); err != nil {
		return nil, err
	}
	for _, name := range []string{"off", "paused"} {
		if _, err := c.publish(ctx, name, "App "+name, h.notes); err != nil {
			return nil, err
		}
	}
	_, stop := c.open.Unpublish(ctx, "off")
	_, pause := c.owner.Pause(ctx, "paused")
	_, ask := c.open.Publish(ctx, agentapi.PublishRequest{Name: "waits", Label: "Waits", LocalPort: h.notes})
	if err := errors.Join(stop, pause, ask, h.publishEarlier(ctx)); err != nil {
		return nil, err
	}
	h.before, err = h.ofOthers(ctx)
	return h, err
}

// noWebApps are ports of remote login, mail and databases.
var noWebApps = []int{22, 25, 3306, 5432, 6379}

// listens serves on a port of 127.0.0.1 until this process ends.
func listens(port int) (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return 0, err
	}
	go func() { _ = http.Serve(ln, http.NotFoundHandler()) }()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

func (h *hostile) publishEarlier(ctx context.Context) error {
	a, err := h.begins(ctx, "earlier")
	if err != nil {
		return err
	}
	defer a.Close()
	if said, refused, err := a.tool(ctx, "publish", args{"name": "earlier", "port": h.mine}); err != nil || refused {
		return errors.Join(err, errors.New(said))
	}
	_, err = h.owner.Approve(ctx, "earlier")
	return err
}

var others = []string{"notes", "off", "paused", "waits", "earlier"}

// ofOthers are the apps that the agent did not ask for, without what passes.
func (h *hostile) ofOthers(ctx context.Context) ([]agentapi.OwnerApp, error) {
	state, err := h.owner.State(ctx)
	var apps []agentapi.OwnerApp
	for _, app := range state.Apps {
		if slices.Contains(others, app.Name) {
			apps = append(apps, agentapi.OwnerApp{AppSummary: app.AppSummary, Options: app.Options, Asks: app.Asks, ApprovedAt: app.ApprovedAt})
		}
	}
	return apps, err
}

// judged counts an attack, and looks at what it did to the apps of others.
func (h *hostile) judged(ctx context.Context, format string, what ...any) error {
	h.t.try(1)
	now, err := h.ofOthers(ctx)
	if err == nil && !reflect.DeepEqual(now, h.before) {
		h.t.got("%s: apps of others are %+v, were %+v", fmt.Sprintf(format, what...), now, h.before)
		h.before = now
	}
	return err
}

type args = map[string]any

// codingAgent is the SDK's client with a porchlight mcp at its other end.
type codingAgent struct {
	*mcp.ClientSession
	h *hostile
}

// begins starts a run, for an agent that calls itself so. It finds the file with the owner
// secret where the owner's programs do.
func (h *hostile) begins(ctx context.Context, name string) (codingAgent, error) {
	cmd := h.s.rig(0).Command("porchlight", "mcp", "--data", h.Data)
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	return codingAgent{session, h}, err
}

// tool calls one. What is refused is no error, but the end of the program is.
func (a codingAgent) tool(ctx context.Context, name string, in any) (said string, refused bool, err error) {
	answer, err := a.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: in})
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return wire.Message, true, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("%s %.200v: %w", name, in, err)
	}
	raw, err := json.Marshal(answer)
	a.h.tells(string(raw), name)
	return string(raw), answer.IsError, err
}

// tells looks for what is the owner's in what an agent is told.
func (h *hostile) tells(said, asked string) {
	if strings.Contains(said, h.secret) || strings.Contains(said, "/.porchlight/open") {
		h.t.got("%.80q is answered by what is the owner's: %.200s", asked, said)
	}
}

// request is what waits under a name, if anything does.
func (h *hostile) request(ctx context.Context, name string) (app agentapi.OwnerApp, err error) {
	state, err := h.owner.State(ctx)
	if i := slices.IndexFunc(state.Apps, func(a agentapi.OwnerApp) bool { return a.Name == name }); err == nil && i >= 0 {
		app = state.Apps[i]
	}
	return app, err
}
