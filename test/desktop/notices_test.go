//go:build rig

package desktop

import (
	"slices"
	"sync"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// notices is what programs had the desktop say: the titles of notifications. One that takes
// its own place, with an address that is another by now, counts once.
type notices struct {
	mu   sync.Mutex
	said []string
}

// listens counts notifications from now on.
func (s *session) listens() *notices {
	s.t.Helper()
	n := &notices{}
	s.hears(n)
	return n
}

// hears has notices know what is said on the session bus of now.
func (s *session) hears(n *notices) {
	s.t.Helper()
	conn := programs.Got(dbus.Connect(s.busAddress()))(s.t)
	s.t.Cleanup(func() { _ = conn.Close() })
	programs.Must(s.t, conn.BusObject().Call("org.freedesktop.DBus.AddMatch", 0, "type='method_call',interface='org.freedesktop.Notifications',member='Notify',eavesdrop='true'").Err)
	heard := make(chan *dbus.Message, 64)
	conn.Eavesdrop(heard)
	go func() {
		for message := range heard {
			if message.Headers[dbus.FieldMember].Value() != "Notify" || len(message.Body) < 5 {
				continue
			}
			summary, _ := message.Body[3].(string)
			n.mu.Lock()
			if !slices.Contains(n.said, summary) {
				n.said = append(n.said, summary)
			}
			n.mu.Unlock()
		}
	}()
}

func (n *notices) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.said)
}
