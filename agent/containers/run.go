package containers

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
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
			clear(c.told)
			c.tellOwner(false)
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
func (c *Containers) round(ctx context.Context, at string) {
	now, err := c.look(ctx, at)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		maps.DeleteFunc(c.told, func(of string, _ words.Text) bool { return of != at })
		c.say(at, words.Text{away(at, err)}, "the container engine cannot be asked", "socket", at, "err", err)
		c.tellOwner(true)
		return
	}
	delete(c.told, at)
	wanted, running := map[string]claim{}, map[string]bool{}
	for _, one := range now.all {
		running[one.id] = true
		asks, ok, why := one.claims(c.cfg.Host())
		if ok {
			why = c.taken(asks, now, wanted)
		}
		if !why.IsZero() {
			c.refuse(one, why)
			continue
		}
		if ok {
			wanted[asks.Name] = asks
		} else {
			delete(c.told, one.id)
		}
	}
	maps.DeleteFunc(c.told, func(id string, _ words.Text) bool { return !running[id] })
	c.tell(ctx, wanted)
	c.tellOwner(false)
}

// taken says why a container cannot have its name: it is that of one that asked first, or
// that was approved and is still there. It never takes an address away from another.
func (c *Containers) taken(asks claim, now *seen, wanted map[string]claim) (why words.Sentence) {
	holder, port, _ := c.cfg.Holder(asks.Name)
	_, older := wanted[asks.Name]
	switch {
	case older:
		return words.Of("An older container asks for this name.")
	case now.at(asks.LocalPort) != asks.Container:
		return words.Of("Another container takes the connections to its port.")
	case holder == nil || holder.Same(asks.Container):
		return why
	case now.runsAt(*holder, port):
		return words.Of("This name was approved for %s, which still runs.", holder.String())
	}
	return why
}

// tell publishes what is asked for anew, and takes back what is asked for no more. What was
// refused is asked for again the next time: the owner may have made room.
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
		if !asked || was.id != asks.id || was.PublishRequest != asks.PublishRequest || c.isBack(asks) {
			if err := c.cfg.Publish(ctx, asks.Container, asks.PublishRequest); err != nil {
				c.refuse(asks.container, words.InWords(err))
				continue
			}
			c.asking[name] = asks
		}
		delete(c.told, asks.id)
	}
}

// isBack says whether another was in the place of a container that was approved, and it is
// there again: it may have been away for less than a round.
func (c *Containers) isBack(asks claim) bool {
	holder, port, waits := c.cfg.Holder(asks.Name)
	return waits && holder != nil && holder.Same(asks.Container) && port == asks.LocalPort
}

// refuse says why a container has not what it asks for.
func (c *Containers) refuse(one container, why words.Sentence) {
	c.say(one.id, words.Text{words.Of("The container %s has no address.", one.Name), why}, "a container does not get the address it asks for", "container", one.Name)
}

// say keeps what is wrong with a container, or with the engine, for the owner, and logs it once.
func (c *Containers) say(of string, said words.Text, what string, with ...any) {
	if was := c.told[of]; was.String() != said.String() {
		c.cfg.Log.Warn(what, append(with, "why", said.String())...)
	}
	c.told[of] = said
}

// maxTold is of how many containers the owner is told.
const maxTold = 5

// tellOwner shows what is wrong by now.
func (c *Containers) tellOwner(away bool) {
	var now *agentapi.ContainersTrouble
	for _, of := range slices.Sorted(maps.Keys(c.told)) {
		if now == nil {
			now = &agentapi.ContainersTrouble{Away: away}
		}
		if len(now.Words) < 2*maxTold {
			now.Words = append(now.Words, c.told[of]...)
		}
	}
	if was := c.trouble.Swap(now); (was == nil) != (now == nil) || now != nil && was.Words.String() != now.Words.String() {
		c.cfg.Changes.Raise()
	}
}

// Trouble is what keeps containers from addresses, as far as is known; nil for nothing.
func (c *Containers) Trouble() *agentapi.ContainersTrouble { return c.trouble.Load() }

// away says why an engine cannot be asked.
func away(socket string, err error) words.Sentence {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return words.Of("There is no container engine at %s.", socket)
	case errors.Is(err, fs.ErrPermission):
		return words.Of("Porchlight may not open the container engine's socket %s.", socket)
	case errors.Is(err, context.DeadlineExceeded):
		return words.Of("The container engine at %[1]s did not answer within %[2]s seconds.", socket, strconv.Itoa(int(askFor/time.Second)))
	}
	return words.Of("The container engine at %[1]s cannot be asked: %[2]s", socket, err.Error())
}
