package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"porchlight/agent/agentapi"
	"porchlight/agent/listening"
	"porchlight/control/controlapi"
)

const (
	maxPorts   = 200 // that one answer lists
	maxWaiting = 16  // calls that wait for the owner at a time
	tellEvery  = 10  // looks between two words of progress
)

// assistant is what a coding agent can do here: what any program of this user can, and
// of that nothing to an app that something else asked for.
type assistant struct {
	cli
	listens *listening.Listening
	waiting chan struct{} // one for each call that waits

	mu sync.Mutex
	// asked is what this run asked for last, by name. It is guarded by mu, which is held
	// from a look at an app to what is done with it, so that calls come one after another.
	asked map[string]agentapi.PublishRequest
}

type portsFound struct {
	Ports []portFound `json:"ports"`
	More  bool        `json:"more,omitempty" jsonschema:"true where there are more than are listed"`
}

type portFound struct {
	Port    int    `json:"port"`
	Program string `json:"program" jsonschema:"name of the program that listens, empty where the system does not tell"`
}

type publishing struct {
	Name  string `json:"name" jsonschema:"first part of the address: 1 to 63 lower-case letters a to z, digits and hyphens"`
	Port  int    `json:"port" jsonschema:"local port that the app listens on, one of those that the tool ports lists"`
	Label string `json:"label,omitempty" jsonschema:"name that the owner and visitors see, 1 to 100 characters; the name where it is left out"`
	Wait  bool   `json:"wait,omitempty" jsonschema:"true to wait until the owner has decided"`
}

type named struct {
	Name string `json:"name" jsonschema:"first part of the app's address"`
}

type maybeNamed struct {
	Name string `json:"name,omitempty" jsonschema:"first part of one app's address; left out for all"`
}

// What an assistant is told of an app's status.
const (
	saysPending   = "pending"
	saysLive      = "live"
	saysPaused    = "paused"
	saysStopped   = "stopped"
	saysWithdrawn = "withdrawn"
)

type standing struct {
	Name   string `json:"name"`
	Status string `json:"status" jsonschema:"pending: the owner has not decided; live: on; paused: the owner keeps everybody out; stopped: off, the approval is kept; withdrawn: no longer asked for"`
	URL    string `json:"url,omitempty"`
	Port   int    `json:"port,omitempty"`
	Label  string `json:"label,omitempty"`
	Next   string `json:"next" jsonschema:"what this means, and what to do next"`
}

type standings struct {
	Connected bool       `json:"connected" jsonschema:"whether this computer has an address now"`
	Waiting   int        `json:"waiting" jsonschema:"requests of any program that wait for the owner"`
	Apps      []standing `json:"apps"`
}

func (a *assistant) ports(context.Context, *mcp.CallToolRequest, struct{}) (portsFound, error) {
	out := portsFound{Ports: []portFound{}}
	for _, one := range a.listens.List() {
		if !one.Own || one.NotOffered != "" {
			continue
		}
		if out.More = len(out.Ports) == maxPorts; out.More {
			break
		}
		out.Ports = append(out.Ports, portFound{one.Port, one.Program})
	}
	return out, nil
}

func (a *assistant) publish(ctx context.Context, call *mcp.CallToolRequest, in publishing) (standing, error) {
	client, err := a.open()
	if err != nil {
		return standing{}, err
	}
	found, err := a.ask(ctx, client, in, claimed(call))
	if err != nil || !in.Wait || found.Status != agentapi.StatusPending {
		return a.standing(found), err
	}
	select {
	case a.waiting <- struct{}{}:
		defer func() { <-a.waiting }()
	default:
		return a.standing(found), nil // as without wait
	}
	return a.wait(ctx, client, call, in.Name)
}

// claimed is what the assistant calls itself, for the owner to read; it is never empty.
func claimed(call *mcp.CallToolRequest) string {
	if me := call.ClientInfo(); me != nil {
		return cmp.Or(me.Title, me.Name, "?")
	}
	return "?"
}

// ask asks for the address, unless something else has the name.
func (a *assistant) ask(ctx context.Context, client *agentapi.Client, in publishing, assistant string) (agentapi.AppSummary, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, err := lookAt(ctx, client, in.Name)
	switch {
	case err != nil && !absent(err):
		return before, err
	case err == nil && !a.its(before):
		// Nothing is sent: a request would change the other's port or label.
		if before.LocalPort == 0 || before.LocalPort != in.Port || in.Label != "" && in.Label != before.Label {
			return before, a.taken(before, in.Port)
		}
		return before, nil
	case !a.offers(in.Port):
		return before, fmt.Errorf("Port %d is none that the tool ports lists: no program of this user listens there, or it is no web app. Start the app first, or ask the owner to type: %s", in.Port, a.typed("publish %s --port %d", in.Name, in.Port))
	}
	req := agentapi.PublishRequest{Name: in.Name, Label: cmp.Or(in.Label, a.asked[in.Name].Label, in.Name), LocalPort: in.Port, Assistant: assistant}
	// Not given up half way: what was asked for could not be told, nor withdrawn.
	pub, err := client.Publish(context.WithoutCancel(ctx), req)
	if err != nil {
		return before, err
	}
	a.asked[in.Name] = req
	if pub.Status == agentapi.StatusLive {
		return lookAt(ctx, client, in.Name) // whether it is paused
	}
	return agentapi.AppSummary{Name: in.Name, Label: req.Label, LocalPort: req.LocalPort, Status: pub.Status, URL: pub.URL}, nil
}

// lookAt is what any program sees of an app: port and label of a live one alone.
func lookAt(ctx context.Context, client *agentapi.Client, name string) (agentapi.AppSummary, error) {
	if !controlapi.ValidLabel(name) || strings.HasPrefix(name, "-") { // the owner is told to type it
		return agentapi.AppSummary{}, fmt.Errorf("%.80q cannot be the name: it has 1 to 63 lower-case letters a to z, digits and hyphens, and does not begin with a hyphen.", name)
	}
	pub, err := client.Publication(ctx, name)
	if absent(err) {
		err = agentapi.Errorf(agentapi.CodeNotFound, "Nothing is published under the name %s. The tool status lists what is, and publish asks for a new address.", name)
	}
	if err != nil {
		return agentapi.AppSummary{}, err
	}
	status, err := client.Status(ctx)
	i := slices.IndexFunc(status.Apps, func(app agentapi.AppSummary) bool { return app.Name == name })
	if err == nil && i >= 0 && pub.Status == agentapi.StatusLive {
		return status.Apps[i], nil
	}
	return agentapi.AppSummary{Name: name, Status: pub.Status, URL: pub.URL}, err
}

func absent(err error) bool { return agentapi.CodeOf(err) == agentapi.CodeNotFound }

// its says whether an app is the one this run asked for, as far as it can be seen: it may
// have been revoked since, and its name taken by another.
func (a *assistant) its(app agentapi.AppSummary) bool {
	req, ok := a.asked[app.Name]
	return ok && (app.LocalPort == 0 || app.LocalPort == req.LocalPort && app.Label == req.Label)
}

// taken says why a name is not to be had, and what to ask the owner for.
func (a *assistant) taken(app agentapi.AppSummary, port int) error {
	switch {
	case app.Status == agentapi.StatusPending:
		return fmt.Errorf("Another program asked for the name %s, and waits for the owner. Choose another name.", app.Name)
	case app.LocalPort == 0:
		return fmt.Errorf("The name %s is another app's, which is off now. Choose another name, or ask the owner to put it on, by: %s", app.Name, a.typed("publish %s --port %d", app.Name, port))
	}
	return fmt.Errorf("The name %s is another app's: %s, on port %d. Choose another name, or ask the owner to move it, by: %s", app.Name, printable(app.Label), app.LocalPort, a.typed("publish %s --port %d", app.Name, port))
}

func (a *assistant) offers(port int) bool {
	return slices.ContainsFunc(a.listens.List(), func(one agentapi.Listening) bool {
		return one.Port == port && one.Own && one.NotOffered == ""
	})
}

// wait ends when the owner has decided, or when the assistant gives up, and says
// meanwhile that it goes on.
func (a *assistant) wait(ctx context.Context, client *agentapi.Client, call *mcp.CallToolRequest, name string) (standing, error) {
	token, looks := call.Params.GetProgressToken(), 0
	_, err := waitLive(ctx, client, name, func() {
		if token != nil && looks%tellEvery == 0 {
			// A lost word of progress is no reason to give up.
			_ = call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(looks + 1), Message: a.waits(name),
			})
		}
		looks++
	})
	switch {
	case ctx.Err() != nil:
		return standing{}, fmt.Errorf("Nobody waits any more, but %s still waits for the owner. The tool stop withdraws the request.", name)
	case absent(err) && !a.asks(name):
		return standing{Name: name, Status: saysWithdrawn, Next: withdrawn(name)}, nil
	case err != nil:
		return standing{}, err
	}
	found, err := lookAt(ctx, client, name)
	return a.standing(found), err
}

func (a *assistant) asks(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.asked[name]
	return ok
}

func (a *assistant) status(ctx context.Context, _ *mcp.CallToolRequest, in maybeNamed) (standings, error) {
	out := standings{Apps: []standing{}}
	client, err := a.open()
	if err != nil {
		return out, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return out, err
	}
	out.Connected, out.Waiting = status.Host != "", status.PendingApps
	if in.Name != "" {
		found, err := lookAt(ctx, client, in.Name)
		if err == nil {
			out.Apps = append(out.Apps, a.standing(found))
		}
		return out, err
	}
	for _, app := range status.Apps {
		out.Apps = append(out.Apps, a.standing(app))
	}
	for _, name := range a.unseen(status.Apps) {
		if found, err := lookAt(ctx, client, name); err == nil {
			out.Apps = append(out.Apps, a.standing(found))
		} else if !absent(err) {
			return out, err
		}
	}
	return out, nil
}

// unseen are the names that this run asked for and that are none of these apps.
func (a *assistant) unseen(apps []agentapi.AppSummary) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.asked {
		if !slices.ContainsFunc(apps, func(app agentapi.AppSummary) bool { return app.Name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (a *assistant) stop(ctx context.Context, _ *mcp.CallToolRequest, in named) (standing, error) {
	client, err := a.open()
	if err != nil {
		return standing{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	found, err := lookAt(ctx, client, in.Name)
	if err != nil {
		return standing{}, err
	}
	if !a.its(found) {
		return standing{}, fmt.Errorf("%s was not published in this run, and is left as it is. The owner takes it off by: %s", in.Name, a.typed("stop %s", in.Name))
	}
	if _, err = client.Unpublish(context.WithoutCancel(ctx), in.Name); err != nil {
		return standing{}, err
	}
	found, err = lookAt(ctx, client, in.Name)
	if absent(err) { // it was never approved
		delete(a.asked, in.Name)
		return standing{Name: in.Name, Status: saysWithdrawn, Next: withdrawn(in.Name)}, nil
	}
	return a.standing(found), err
}

func withdrawn(name string) string {
	return fmt.Sprintf("The request for %s is withdrawn. It was never approved, so publishing it again asks the owner.", name)
}

func (a *assistant) waits(name string) string {
	return fmt.Sprintf("%s waits for the owner, who approves it in the menu bar, or by: %s", name, a.typed("approve %s", name))
}

// standing is what the assistant is told of an app.
func (a *assistant) standing(app agentapi.AppSummary) standing {
	s := standing{Name: app.Name, Status: saysLive, URL: app.URL, Port: app.LocalPort, Label: app.Label}
	switch {
	case app.Status == agentapi.StatusPending:
		s.Status, s.Next = saysPending, a.waits(app.Name)
	case app.Status == agentapi.StatusStopped:
		s.Status, s.Next = saysStopped, "It is off, and its approval is kept: publish puts it on again."
	case app.Paused:
		s.Status, s.Next = saysPaused, "Its owner keeps everybody out. The owner resumes it by: "+a.typed("resume %s", app.Name)
	case app.URL == "":
		s.Next = "It is approved, and gets its address once this computer is connected."
	default:
		s.Next = "It is on at its URL. Only the owner can open it until the owner invites somebody."
	}
	return s
}
