package engine

import (
	"context"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
)

// A container is approved for itself, whether it asked by its labels or a program asked for its
// port: its engine, its name, its image and its port. All containers have the same program at
// their ports, or none that is seen, so what listens says nothing of which one it is; the engine
// does, and is asked for it.

// container is the one that an event makes an app's.
func (e event) container() *agentapi.Container {
	if e.Kind == onPublish {
		return e.By.Container
	}
	return e.behind()
}

// behind is e.Behind without the two kinds of none.
func (e event) behind() *agentapi.Container {
	if e.Behind == nil || *e.Behind == (agentapi.Container{}) {
		return nil
	}
	return e.Behind
}

// otherContainer says whether an approval for one container, nil for a program, is none for
// another. What was approved for a program is none of a container's business.
func otherContainer(was, is *agentapi.Container) bool {
	return was != nil && (is == nil || !was.Same(*is))
}

// takenFrom says whether a container asks for what another was approved for. A program that asks
// for the port again changes nothing of who is behind that.
func takenFrom(was, by *agentapi.Container) bool { return by != nil && otherContainer(was, by) }

// contained says whether an app was approved for a container, or one asks for it.
func (app App) contained() bool { return app.kept != nil && approvedOf(app.kept).Container != nil }

// nameContainer says in e which container is at the place where somebody was found.
func (a *Apps) nameContainer(e *event, target upstream.Target) {
	if a.cfg.Container == nil || target.Socket != "" {
		return
	}
	e.Behind, e.Unnamed = a.cfg.Container(target, &e.Listener, e.Contained)
}

// Holder is the container that a name was approved for, nil for none, and its port. waits is
// true while the owner is asked about something else in its place.
func (a *Apps) Holder(name string) (holder *agentapi.Container, port int, waits bool) {
	app, ok := a.Lookup(name)
	if !ok || app.ID == "" {
		return nil, 0, false
	}
	was := approvedOf(app.kept)
	return was.Container, was.LocalPort, app.Status == agentapi.StatusPending
}

// ContainerGone takes a request back whose container is gone.
func (a *Apps) ContainerGone(ctx context.Context, name string, gone agentapi.Container) error {
	app, ok := a.Lookup(name)
	if !ok || app.Status != agentapi.StatusPending || app.kept.Container == nil || !app.kept.Container.Same(gone) {
		return nil
	}
	_, err := a.Unpublish(ctx, Caller{Container: &gone}, name)
	return err
}

func notContainers(app *store.App) error {
	return agentapi.Errorf(agentapi.CodeConflict, "%q was approved for a program, so no container gets its name. Revoke it first, or choose another name.", app.Label)
}
