package containers

import (
	"context"
	"maps"
	"time"

	"porchlight/agent/agentapi"
)

// Run asks in the name of containers, by their labels, until ctx ends. While the owner named no
// engine it waits for that and does nothing else.
func (c *Containers) Run(ctx context.Context) error {
	changed, cancel := c.cfg.Changes.Subscribe()
	defer cancel()
	for {
		at := c.cfg.Socket()
		var next <-chan time.Time
		if at != "" {
			c.round(ctx, at)
			next = time.After(c.cfg.Every)
		} else {
			clear(c.asking)
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				waiting = c.cfg.Socket() == at
			case <-next:
				waiting = false
			}
		}
	}
}

// round looks once. An engine that does not answer says nothing of its containers: none is
// gone for that.
func (c *Containers) round(ctx context.Context, socket string) {
	now, err := c.look(ctx, socket)
	if err != nil {
		c.say(socket, err.Error(), "the container engine cannot be asked", "socket", socket)
		return
	}
	delete(c.logged, socket)
	wanted, running := map[string]claim{}, map[string]bool{socket: true}
	for _, one := range now.all {
		running[one.id] = true
		asks, ok, why := one.claims(c.cfg.Host())
		if why == "" && ok {
			why = c.taken(asks, now, wanted)
		}
		if why != "" {
			c.say(one.id, why, "a container does not ask for an address", "container", one.Name)
		} else if ok {
			wanted[asks.Name] = asks
		}
	}
	maps.DeleteFunc(c.logged, func(id, _ string) bool { return !running[id] })
	c.tell(ctx, wanted)
}

// taken says why a container cannot have its name: it is that of one that asked first, or
// that was approved and is still there. It never takes an address away from another.
func (c *Containers) taken(asks claim, now *seen, wanted map[string]claim) string {
	holder, port, _ := c.cfg.Holder(asks.Name)
	_, older := wanted[asks.Name]
	switch {
	case older:
		return "an older container asks for this name"
	case now.byPort[asks.LocalPort] != asks.Container:
		return "another container publishes its port, too"
	case holder == nil || holder.Same(asks.Container):
		return ""
	case now.byPort[port].Same(*holder):
		return "this name was approved for " + holder.String() + ", which still runs"
	}
	return ""
}

// tell publishes what is asked for anew, and takes back what is asked for no more.
func (c *Containers) tell(ctx context.Context, wanted map[string]claim) {
	for name, was := range c.asking {
		if is, ok := wanted[name]; ok && is.Same(was.Container) {
			continue
		}
		if err := c.cfg.Gone(ctx, name, was.Container); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("a request of a container that is gone could not be taken back", "name", name, "err", err)
		}
		delete(c.asking, name)
	}
	for name, asks := range wanted {
		was, asked := c.asking[name]
		if asked && was.id == asks.id && was.PublishRequest == asks.PublishRequest && !c.isBack(asks) {
			continue
		}
		if err := c.cfg.Publish(ctx, asks.Container, asks.PublishRequest); err != nil {
			c.say(asks.id, err.Error(), "a container does not get the address it asks for", "container", asks.Name)
			if agentapi.CodeOf(err) == agentapi.CodeTooMany {
				continue // until there is room
			}
		}
		c.asking[name] = asks
	}
}

// isBack says whether another was in the place of a container that was approved, and it is
// there again: it may have been away for less than a round.
func (c *Containers) isBack(asks claim) bool {
	holder, port, waits := c.cfg.Holder(asks.Name)
	return waits && holder != nil && holder.Same(asks.Container) && port == asks.LocalPort
}

// say logs what is wrong with a container, or with the engine, once.
func (c *Containers) say(of, why, what string, with ...any) {
	if c.logged[of] != why {
		c.logged[of] = why
		c.cfg.Log.Warn(what, append(with, "why", why)...)
	}
}
