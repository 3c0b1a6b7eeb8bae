package relay

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// door keeps the connections that have not shown yet who they are, in all and by
// source, the one that has been silent longest in front. A newcomer always gets in:
// where its source, or all together, have as many as they may, the one in front
// goes. A connection that says at once what it wants has left long before that.
type door struct {
	total, perSource int

	mu        sync.Mutex // protects what follows, and the places of every newcomer
	newcomers list.List  // of *newcomer
	sources   map[netip.Prefix]*list.List
	closed    bool
}

// newcomer is a connection at the door.
type newcomer struct {
	conn              net.Conn
	source            netip.Prefix
	inAll, amongTheir *list.Element // nil once it has left
}

func newDoor(total, perSource int) *door {
	return &door{total: total, perSource: perSource, sources: make(map[netip.Prefix]*list.List)}
}

// enter lets a connection in; leave must be called after it. sent is the one that
// had to go for it, which is to be closed then, or nil. ok is false when the door is
// closed.
func (d *door) enter(conn net.Conn, source netip.Prefix) (c, sent *newcomer, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, false
	}
	sent = d.makeRoom(source)
	c = &newcomer{conn: conn, source: source}
	d.place(c)
	return c, sent, true
}

// makeRoom takes out the one that has to go for one more from source. mu is held.
func (d *door) makeRoom(source netip.Prefix) *newcomer {
	if theirs := d.sources[source]; theirs != nil && theirs.Len() >= share(d.total, d.perSource, d.newcomers.Len()) {
		return d.remove(theirs.Front().Value.(*newcomer))
	}
	if d.newcomers.Len() >= d.total {
		return d.remove(d.newcomers.Front().Value.(*newcomer))
	}
	return nil
}

// rename counts c under another source from now on; sent is as that of enter.
func (d *door) rename(c *newcomer, source netip.Prefix) (sent *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll == nil || c.source == source {
		return nil
	}
	d.remove(c)
	sent = d.makeRoom(source)
	c.source = source
	d.place(c)
	return sent
}

// heard puts c behind the others: it has said something that makes sense, and
// has as long again for the rest.
func (d *door) heard(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil {
		d.newcomers.MoveToBack(c.inAll)
		d.sources[c.source].MoveToBack(c.amongTheir)
	}
}

// leave takes c off the door's account, if it is still on it.
func (d *door) leave(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil {
		d.remove(c)
	}
}

// sendFirst takes out the one that has been silent longest, which is to be closed
// then; nil when nobody is here.
func (d *door) sendFirst() *newcomer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newcomers.Len() == 0 {
		return nil
	}
	return d.remove(d.newcomers.Front().Value.(*newcomer))
}

// close closes every connection here and lets none in any more.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for e := d.newcomers.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*newcomer).conn.Close()
	}
}

// place and remove are called with mu held.
func (d *door) place(c *newcomer) {
	theirs := d.sources[c.source]
	if theirs == nil {
		theirs = list.New()
		d.sources[c.source] = theirs
	}
	c.inAll, c.amongTheir = d.newcomers.PushBack(c), theirs.PushBack(c)
}

func (d *door) remove(c *newcomer) *newcomer {
	theirs := d.sources[c.source]
	d.newcomers.Remove(c.inAll)
	theirs.Remove(c.amongTheir)
	if theirs.Len() == 0 {
		delete(d.sources, c.source)
	}
	c.inAll, c.amongTheir = nil, nil
	return c
}
