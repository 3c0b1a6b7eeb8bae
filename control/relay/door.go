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
// One that is kept has its place until it leaves, and goes for nobody; one that is busy
// goes after all others.
type door struct {
	total, perSource int
	mostKept         int // those beyond go as others do

	mu        sync.Mutex // protects what follows, and the places of every newcomer
	count     int        // those that are kept, too
	kept      int        // of these
	newcomers line       // without those that are kept
	sources   map[netip.Prefix]*ofSource
	closed    bool
}

// line is newcomers, of *newcomer, those that are busy in the second list.
type line [2]list.List

// front is the one that goes first; nil where nobody is here.
func (l *line) front() *newcomer {
	for i := range l {
		if first := l[i].Front(); first != nil {
			return first.Value.(*newcomer)
		}
	}
	return nil
}

// ofSource are the connections of one source.
type ofSource struct {
	count     int  // those that are kept, too
	newcomers line // without those that are kept
}

// newcomer is a connection at the door.
type newcomer struct {
	conn              io.Closer
	source            netip.Prefix
	inAll, amongTheir *list.Element // nil once it has left, or is kept
	kept              bool
	list              int // of its line
}

func newDoor(total, perSource int) *door {
	return &door{total: total, perSource: perSource, mostKept: total, sources: make(map[netip.Prefix]*ofSource)}
}

// enter lets a connection in; release must be called after it. sent is the one that
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
	d.add(c)
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
	first := line.front()
	if first == nil {
		return nil, false
	}
	return d.remove(first), true
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
	d.add(c)
	return sent
}

// becomes has conn be closed if c has to go from now on.
func (d *door) becomes(c *newcomer, conn io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil {
		c.conn = conn
	}
}

// keep has c stay until it leaves, whoever comes, unless too many do.
func (d *door) keep(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil && d.kept < d.mostKept {
		c.kept = true
		d.kept++
		d.unlist(c)
	}
}

// heard puts c behind the others: it has said something that makes sense, and
// has as long again for the rest.
func (d *door) heard(c *newcomer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll != nil {
		d.unlist(c)
		d.enlist(c)
	}
}

// busy puts c behind the others that are busy, or not.
func (d *door) busy(c *newcomer, busy bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.inAll == nil {
		return
	}
	d.unlist(c)
	if c.list = 0; busy {
		c.list = 1
	}
	d.enlist(c)
}

// release takes c off the door's account, if it is still on it.
func (d *door) release(c *newcomer) {
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
	if first := d.newcomers.front(); first != nil {
		return d.remove(first)
	}
	return nil
}

// close closes every connection here and lets none in any more.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for i := range d.newcomers {
		for e := d.newcomers[i].Front(); e != nil; e = e.Next() {
			_ = e.Value.(*newcomer).conn.Close()
		}
	}
}

// inside is how many there are.
func (d *door) inside() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// add, remove, enlist and unlist are called with mu held.
func (d *door) add(c *newcomer) {
	theirs := d.sources[c.source]
	if theirs == nil {
		theirs = new(ofSource)
		d.sources[c.source] = theirs
	}
	d.count++
	theirs.count++
	d.enlist(c)
}

func (d *door) enlist(c *newcomer) {
	c.inAll, c.amongTheir = d.newcomers[c.list].PushBack(c), d.sources[c.source].newcomers[c.list].PushBack(c)
}

func (d *door) remove(c *newcomer) *newcomer {
	if c.kept {
		d.kept--
	} else {
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
	d.newcomers[c.list].Remove(c.inAll)
	d.sources[c.source].newcomers[c.list].Remove(c.amongTheir)
	c.inAll, c.amongTheir = nil, nil
}
