//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/test/programs"
)

// node is one line of the tray's menu, as a panel reads it.
type node struct {
	id    int32
	props map[string]dbus.Variant
	kids  []node
}

func (n node) label() string {
	label, _ := n.props["label"].Value().(string)
	return strings.ReplaceAll(label, "__", "_")
}

func (n node) flag(name string) bool {
	b, ok := n.props[name].Value().(bool)
	return !ok || b
}

func nodeOf(v []any) node {
	n := node{id: v[0].(int32), props: v[1].(map[string]dbus.Variant)}
	for _, k := range v[2].([]dbus.Variant) {
		n.kids = append(n.kids, nodeOf(k.Value().([]any)))
	}
	return n
}

// find follows labels; only what is shown counts.
func (n node) find(path []string) (node, bool) {
	if len(path) == 0 {
		return n, true
	}
	for _, k := range n.kids {
		if k.flag("visible") && k.label() == path[0] {
			return k.find(path[1:])
		}
	}
	return node{}, false
}

// lines lists what the menu shows, with depth by indent.
func (n node) lines(depth int) []string {
	var out []string
	for _, k := range n.kids {
		if !k.flag("visible") {
			continue
		}
		text := k.label()
		if t, _ := k.props["type"].Value().(string); t == "separator" {
			text = "--"
		}
		out = append(out, strings.Repeat("    ", depth)+text)
		out = append(out, k.lines(depth+1)...)
	}
	return out
}

func (s *session) trayItems() []string {
	v, err := s.bus.Object("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher").GetProperty("org.kde.StatusNotifierWatcher.RegisteredStatusNotifierItems")
	if err != nil {
		return nil
	}
	items, _ := v.Value().([]string)
	for i, item := range items { // GNOME's extension says them as names of its own
		if name, path, found := strings.Cut(item, "@"); found {
			items[i] = name + path
		}
	}
	return items
}

// trayMenu reads the menu the way a panel does.
func (s *session) trayMenu() (dbus.BusObject, node, error) {
	items := s.trayItems()
	if len(items) != 1 {
		return nil, node{}, fmt.Errorf("%d tray items", len(items))
	}
	name, path, _ := strings.Cut(items[0], "/")
	v, err := s.bus.Object(name, dbus.ObjectPath("/"+path)).GetProperty("org.kde.StatusNotifierItem.Menu")
	if err != nil {
		return nil, node{}, err
	}
	menu := s.bus.Object(name, v.Value().(dbus.ObjectPath))
	var need bool
	_ = menu.Call("com.canonical.dbusmenu.AboutToShow", 0, int32(0)).Store(&need)
	var revision uint32
	var layout []any
	if err := menu.Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &layout); err != nil {
		return nil, node{}, err
	}
	return menu, nodeOf(layout), nil
}

// trayShows waits until the menu has the line; path is labels joined by " > ".
func (s *session) trayShows(path string, want bool) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("tray line %q: %v", path, want), func() error {
		_, root, err := s.trayMenu()
		if err != nil {
			return err
		}
		if _, ok := root.find(strings.Split(path, " > ")); ok != want {
			return errors.New("the menu is\n" + strings.Join(root.lines(0), "\n"))
		}
		return nil
	})
}

// trayClick clicks a line, as a panel reports it, and says when. Like a person it
// takes a moment to aim: the app ignores a click on a line that has only just
// changed.
func (s *session) trayClick(path string) (clicked time.Time) {
	s.t.Helper()
	var menu dbus.BusObject
	var n node
	s.eventually(fmt.Sprintf("%q can be clicked", path), func() error {
		var root node
		menu, root = s.trayStays()
		line, ok := root.find(strings.Split(path, " > "))
		if n = line; !ok || !n.flag("enabled") {
			return errors.New("the menu is\n" + strings.Join(root.lines(0), "\n"))
		}
		return nil
	})
	clicked = time.Now()
	programs.Must(s.t, menu.Call("com.canonical.dbusmenu.Event", 0, n.id, "clicked", dbus.MakeVariant(""), uint32(clicked.Unix())).Err)
	return clicked
}

// trayStays waits until the menu has stood for longer than a line that changed
// ignores clicks: a request's line changes a moment after it came, when the
// program behind it was found.
func (s *session) trayStays() (menu dbus.BusObject, root node) {
	s.t.Helper()
	var last string
	var since time.Time
	s.eventually("the menu stays as it is", func() (err error) {
		if menu, root, err = s.trayMenu(); err != nil {
			return err
		}
		if now := strings.Join(root.lines(0), "\n"); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 600*time.Millisecond {
			return errors.New("it changed")
		}
		return nil
	})
	return menu, root
}
