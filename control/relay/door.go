package relay

import (
	"container/list"
	"io"
	"net/netip"
	"sync"
)

// door keeps the connections that have not shown yet who they are, in all and by
// source, the one that has been silent longest in front. A newcomer always gets in:
// where its source, or all together, have as many as they may, the one in front
// goes. A connection that says at once what it wants has left long before that.
// One that is kept has its place until it leaves, and goes for nobody.
type door struct {
	total, perSource int

	mu        sync.Mutex // protects what follows, and the places of every newcomer
	count     int        // those that are kept, too
	newcomers list.List  // of *newcomer; without those that are kept
	sources   map[netip.Prefix]*ofSource
	closed    bool
}

// ofSource are the connections of one source.
type ofSource struct {
	count     int       // those that are kept, too
	newcomers list.List // of *newcomer; without those that are kept
}

// newcomer is a connection at the door.
type newcomer struct {
	conn              io.Closer
	source            netip.Prefix
	inAll, amongTheir *list.Element // nil once it has left, or is kept
	kept              bool
}

func newDoor(total, perSource int) *door {
	return &door{total: total, perSource: perSource, sources: make(map[netip.Prefix]*ofSource)}
}

// enter lets a connection in; leave must be called after it. sent is the one that
// had to go for it, which is to be closed then, or nil. ok is false when the door is
// closed, or all places that it could have are those of connections that are kept.
func (d *door) enter(conn io.Closer, source netip.Prefix) (c, sent *newcomer, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, false
	}
	if sent, ok = d.makeRoom(source); !ok {
		return nil, nil, false
	}
	c = &newcomer{conn: conn, source: source}
	d.place(c)
	return c, sent, true
}

// makeRoom takes out the one that has to go for one more from source, and is false where
// nobody can. mu is held.
func (d *door) makeRoom(source netip.Prefix) (sent *newcomer, ok bool) {
	line := &d.newcomers
	if theirs := d.sources[source]; theirs != nil && theirs.count >= share(d.total, d.perSource, d.count) {
		line = &theirs.newcomers
	} else if d.count < d.total {
		return nil, true
	}
	if line.Len() == 0 {
		return nil, false
	}
	return d.remove(line.Front().Value.(*newcomer)), true
}

// rename counts c under another source from now on; sent is as that of enter. It is for
// doors where nobody is kept.
func (d *door) rename(c *newcomer, source netip.Prefix) (sent *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll == nil || c.source == source {
		return nil
	}
	d.remove(c)
	sent, _ = d.makeRoom(source)
	c.source = source
	d.place(c)
	return sent
}

// keep has c stay until it leaves, whoever comes.
func (d *door) keep(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil {
		c.kept = true
		d.unlist(c)
	}
}

// heard puts c behind the others: it has said something that makes sense, and
// has as long again for the rest.
func (d *door) heard(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil {
		d.newcomers.MoveToBack(c.inAll)
		d.sources[c.source].newcomers.MoveToBack(c.amongTheir)
	}
}

// leave takes c off the door's account, if it is still on it.
func (d *door) leave(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil || c.kept {
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

// inside is how many there are.
func (d *door) inside() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// place, remove and unlist are called with mu held.
func (d *door) place(c *newcomer) {
	theirs := d.sources[c.source]
	if theirs == nil {
		theirs = new(ofSource)
		d.sources[c.source] = theirs
	}
	d.count++
	theirs.count++
	c.inAll, c.amongTheir = d.newcomers.PushBack(c), theirs.newcomers.PushBack(c)
}

func (d *door) remove(c *newcomer) *newcomer {
	if !c.kept {
		d.unlist(c)
	}
	c.kept = false
	d.count--
	theirs := d.sources[c.source]
	if theirs.count--; theirs.count == 0 {
		delete(d.sources, c.source)
	}
	return c
}

func (d *door) unlist(c *newcomer) {
	d.newcomers.Remove(c.inAll)
	d.sources[c.source].newcomers.Remove(c.amongTheir)
	c.inAll, c.amongTheir = nil, nil
}
