//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"
)

// What a screen reader is told of the window: the tree that WebKit and GTK give to the
// bus of assistive technology (AT-SPI).

// startAccessibility starts that bus, which programs ask the session's for.
func (s *session) startAccessibility() {
	s.t.Helper()
	s.spawn("/usr/libexec/at-spi-bus-launcher", "--launch-immediately")
	s.waitName("org.a11y.Bus", true)
	enabled := dbus.MakeVariant(true)
	status := s.bus.Object("org.a11y.Bus", "/org/a11y/bus")
	for _, property := range []string{"org.a11y.Status.IsEnabled", "org.a11y.Status.ScreenReaderEnabled"} {
		if err := status.SetProperty(property, enabled); err != nil {
			s.t.Logf("%s: %v", property, err) // asked for by some versions alone
		}
	}
}

// accessible is a thing of the tree.
type accessible struct {
	Bus  string
	Path dbus.ObjectPath
}

// spoken is what is said of a thing; its role is one of AtspiRole.
type spoken struct {
	role uint32
	name string
}

// tree is everything the window tells, in its order.
func (s *session) tree() (all []spoken, err error) {
	var address string
	if err := s.bus.Object("org.a11y.Bus", "/org/a11y/bus").Call("org.a11y.Bus.GetAddress", 0).Store(&address); err != nil {
		return nil, err
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	root := accessible{"org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root"}
	programs, err := children(conn, root)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		if name, _ := conn.Object(program.Bus, program.Path).GetProperty("org.a11y.atspi.Accessible.Name"); !strings.Contains(fmt.Sprint(name.Value()), "porchlight") {
			continue
		}
		if err := walk(conn, program, 0, &all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func children(conn *dbus.Conn, of accessible) (found []accessible, err error) {
	object := conn.Object(of.Bus, of.Path)
	if err := object.Call("org.a11y.atspi.Accessible.GetChildren", 0).Store(&found); err != nil || len(found) > 0 {
		return found, err
	}
	// The web view's place holds what another process shows, which GTK lists by number alone.
	var embedded accessible
	err = object.Call("org.a11y.atspi.Accessible.GetChildAtIndex", 0, int32(0)).Store(&embedded)
	if err == nil && embedded.Bus != "" && embedded.Path != "/org/a11y/atspi/null" {
		found = append(found, embedded)
	}
	return found, nil
}

// maxDepth is beyond any window: a tree that is a ring would be walked for ever.
const maxDepth = 60

func walk(conn *dbus.Conn, at accessible, depth int, all *[]spoken) error {
	if depth > maxDepth {
		return errors.New("the tree has no end")
	}
	object := conn.Object(at.Bus, at.Path)
	var one spoken
	if err := object.Call("org.a11y.atspi.Accessible.GetRole", 0).Store(&one.role); err != nil {
		return nil // gone since it was listed
	}
	name, err := object.GetProperty("org.a11y.atspi.Accessible.Name")
	if err != nil {
		return nil
	}
	one.name, _ = name.Value().(string)
	*all = append(*all, one)
	below, err := children(conn, at)
	if err != nil {
		return nil
	}
	for _, child := range below {
		if err := walk(conn, child, depth+1, all); err != nil {
			return err
		}
	}
	return nil
}

// controls are the roles of what can be operated.
var controls = map[uint32]string{
	7: "check box", 11: "combo box", 35: "menu item", 40: "password field", 43: "button", 44: "radio button", 62: "switch", 79: "field", 88: "link", 98: "page tab", 131: "switch",
}

// namesEvery waits for a tree that has what, and says which control has no name.
func (p *page) namesEvery(what string) (n int) {
	p.t.Helper()
	var all []spoken
	p.eventually("a screen reader is told of "+what, func() (err error) {
		if all, err = p.tree(); err != nil {
			return err
		}
		for _, one := range all {
			if strings.Contains(one.name, what) {
				return nil
			}
		}
		return fmt.Errorf("not among %v", all)
	})
	for _, one := range all {
		if controls[one.role] == "" {
			continue
		}
		n++
		if strings.TrimSpace(one.name) == "" {
			p.t.Errorf("on the page with %s a %s has no name", what, controls[one.role])
		}
	}
	return n
}
