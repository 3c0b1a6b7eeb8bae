package news

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"porchlight/internal/broadcast"
)

// Bounds of what one node says.
const (
	// maxMessage is the size of a message, in bytes; a larger one is not heard.
	maxMessage = 4 << 10
	// perMessage computers are told of in one message.
	perMessage = 48
	// tellAgain is how often one computer is told of at most, so that whatever a
	// tenant does stays small for the others: an account has 50 computers at most,
	// of which a node then says 2,000 names a second, in as many messages at most.
	tellAgain = 25 * time.Millisecond
	// pendingMost computers wait to be told of; beyond that a number is left out,
	// by which the others know that they have to look for themselves.
	pendingMost = 1 << 14
)

// changedSubject is what all nodes speak and listen on.
const changedSubject = "changed"

// message is what a node says: which of its messages this is, and the computers it
// changed. Without any it is a beat, which repeats the last number.
type message struct {
	Node    string   `json:"node"`
	Run     string   `json:"run"`
	Number  uint64   `json:"number"`
	Changed []string `json:"changed,omitempty"`
}

// namePattern is of the names of nodes, runs and computers.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func validName(s string) bool { return namePattern.MatchString(s) }

// parse reads a message, or refuses it.
func parse(b []byte) (m message, ok bool) {
	if len(b) > maxMessage || json.Unmarshal(b, &m) != nil {
		return message{}, false
	}
	ok = validName(m.Node) && validName(m.Run) && len(m.Changed) <= perMessage && !slices.ContainsFunc(m.Changed, func(id string) bool { return !validName(id) })
	return m, ok
}

// Tell tells the other nodes that computers changed. It does not block: what
// cannot be told, they find by themselves.
func (n *News) Tell(computers []string) {
	n.mu.Lock()
	for _, id := range computers {
		if validName(id) {
			n.pending[id] = true
		}
	}
	if len(n.pending) > pendingMost {
		clear(n.pending)
		n.number++
	}
	n.mu.Unlock()
	broadcast.Raise(n.wake)
}

// flush says what is due, and returns after which time there is more, 0 for never.
func (n *News) flush(now time.Time) (more time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var due []string
	for id := range n.pending {
		if wait := tellAgain - now.Sub(n.recent[id]); wait > 0 {
			if more == 0 || wait < more {
				more = wait
			}
			continue
		}
		due = append(due, id)
		delete(n.pending, id)
		n.recent[id] = now
	}
	for some := range slices.Chunk(due, perMessage) {
		n.number++
		n.publish(message{Node: n.cfg.Node, Run: n.cfg.Run, Number: n.number, Changed: some})
	}
	return more
}

// beat repeats the last number, so that others miss nothing for long.
func (n *News) beat() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, at := range n.recent {
		if time.Since(at) > tellAgain {
			delete(n.recent, id)
		}
	}
	n.publish(message{Node: n.cfg.Node, Run: n.cfg.Run, Number: n.number})
}

// publish sends under mu, which keeps messages in the order of their numbers; the
// client only puts them into its buffer.
func (n *News) publish(m message) {
	b, err := json.Marshal(m)
	if err == nil {
		err = n.client.Publish(changedSubject, b)
	}
	if err != nil { // its number is missing, so the others look for themselves
		n.log.Warn("telling other nodes failed", "err", err)
	}
}
