package news

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Where a host's tunnel is, its holder says: each node listens on a subject for
// every tunnel it has. Nobody listening is an answer too, and comes at once.
const (
	tunnelSubject = "tunnel."
	// questionsMost bounds the questions under way, and answersMost the answers to
	// one.
	questionsMost = 1024
	answersMost   = 8
	// answerWait is how long a question may take, and secondWait what a second
	// answer may take longer than the first.
	answerWait = 250 * time.Millisecond
	secondWait = 5 * time.Millisecond
)

// Holder is a node that says to have a tunnel.
type Holder struct {
	Node  string    `json:"node"`
	Run   string    `json:"run"`
	Since time.Time `json:"since"` // by that node's clock
}

// held is a tunnel of this node.
type held struct {
	sub   *nats.Subscription
	since time.Time
}

var hostPattern = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

func validHost(s string) bool { return len(s) <= 253 && hostPattern.MatchString(s) }

// Hold has this node answer for the tunnel of a host while holds says that it has
// one. It is called whenever one came or went.
func (n *News) Hold(host string, holds func(host string) bool) {
	if !validHost(host) {
		return
	}
	n.holding.Lock()
	defer n.holding.Unlock()
	h, listens := n.held[host]
	switch here := holds(host); {
	case here && listens:
		n.held[host] = held{h.sub, time.Now()}
		return
	case listens:
		delete(n.held, host)
		_ = h.sub.Unsubscribe() // fails where the connection has ended, and this with it
		return
	case !here:
		return
	}
	sub, err := n.client.ChanSubscribe(tunnelSubject+host, n.questions)
	if err != nil {
		// Only when this has ended, and then no other node hears this one.
		n.log.Warn("other nodes are not told of a tunnel, and ask this one itself as long as they do not hear it", "err", err)
		return
	}
	n.held[host] = held{sub, time.Now()}
}

// answer says what this node holds.
func (n *News) answer(m *nats.Msg) {
	host := strings.TrimPrefix(m.Subject, tunnelSubject)
	n.holding.Lock()
	h, listens := n.held[host]
	n.holding.Unlock()
	if !listens || m.Reply == "" {
		return
	}
	b, err := json.Marshal(Holder{Node: n.cfg.Node, Run: n.cfg.Run, Since: h.since})
	if err == nil {
		_ = m.Respond(b) // who asked is not sure otherwise
	}
}

// Holders asks which of the other nodes have the tunnel of a host, and returns up
// to most of them, the latest first. Nobody may know of one, and none is taken at
// its word: it is asked again by whoever brings a visitor. Where nobody says to have it,
// without are the runs of the nodes that surely do not. Any other is not heard, has been too
// busy to answer, or its connection has just broken.
func (n *News) Holders(ctx context.Context, host string, most int) (found []Holder, without []string) {
	if !validHost(host) {
		return nil, n.all() // no node can have it
	}
	if most < 1 {
		return nil, nil
	}
	inbox, answers := n.ask()
	if answers == nil {
		return nil, nil
	}
	defer n.asked(inbox)
	begun := time.Now()
	if err := n.client.PublishRequest(tunnelSubject+host, answerPrefix(n.cfg.Run)+inbox, nil); err != nil {
		return nil, nil
	}
	late := time.NewTimer(answerWait)
	defer late.Stop()
	for len(found) < most {
		select {
		case <-ctx.Done():
			return found, nil
		case <-late.C:
			return latestFirst(found), nil
		case m := <-answers:
			if m.Header.Get("Status") == "503" { // nobody listens
				return nil, n.reached(begun)
			}
			if h, ok := n.holder(m.Data); ok {
				found = append(found, h)
				late.Reset(secondWait)
			}
		}
	}
	return latestFirst(found), nil
}

func latestFirst(found []Holder) []Holder {
	slices.SortStableFunc(found, func(a, b Holder) int { return b.Since.Compare(a.Since) })
	return found
}

// holder reads an answer, of a node that lives.
func (n *News) holder(b []byte) (h Holder, ok bool) {
	if len(b) > maxMessage || json.Unmarshal(b, &h) != nil {
		return Holder{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.others[h.Node]
	return h, o != nil && o.Run == h.Run
}

func answerPrefix(run string) string { return "answer." + run + "." }

// ask takes a place for a question, if there is one.
func (n *News) ask() (inbox string, answers chan *nats.Msg) {
	n.holding.Lock()
	defer n.holding.Unlock()
	if len(n.open) >= questionsMost {
		return "", nil
	}
	inbox, answers = rand.Text(), make(chan *nats.Msg, answersMost)
	n.open[inbox] = answers
	return inbox, answers
}

func (n *News) asked(inbox string) {
	n.holding.Lock()
	defer n.holding.Unlock()
	delete(n.open, inbox)
}

// answered hands an answer to who asked; one that nobody waits for is dropped.
func (n *News) answered(m *nats.Msg) {
	n.holding.Lock()
	defer n.holding.Unlock()
	select {
	case n.open[strings.TrimPrefix(m.Subject, answerPrefix(n.cfg.Run))] <- m:
	default:
	}
}
