//go:build (linux || freebsd || openbsd || netbsd) && !android

// Changed by Porchlight: calls are answered in the order in which they come, see menuCalls;
// gone are the first GetLayout of depth 1 and the second one asked for by a timer; AddSubMenu;
// LayoutUpdated says of which item.

package systray

import (
	"fmt"
	"log"
	"os"
	"reflect"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"fyne.io/systray/internal/generated/menu"
)

// SetIcon sets the icon of a menu item.
// iconBytes should be the content of .ico/.jpg/.png
func (item *MenuItem) SetIcon(iconBytes []byte) {
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	m, exists := findLayout(int32(item.id))
	if exists {
		m.V1["icon-data"] = dbus.MakeVariant(iconBytes)
		emitItemPropertiesUpdated(int32(item.id), m.V1)
		// Property-only change; per spec LayoutUpdated isn't required here,
		// but kept as a fallback for clients that only watch LayoutUpdated.
		refresh(m.V0)
	}
}

// SetIconFromFilePath sets the icon of a menu item from a file path.
// iconFilePath should be the path to a .ico for windows and .ico/.jpg/.png for other platforms.
func (item *MenuItem) SetIconFromFilePath(iconFilePath string) error {
	iconBytes, err := os.ReadFile(iconFilePath)
	if err != nil {
		return fmt.Errorf("failed to read icon file: %v", err)
	}
	item.SetIcon(iconBytes)
	return nil
}

// copyLayout makes full copy of layout
func copyLayout(in *menuLayout, depth int32) *menuLayout {
	out := menuLayout{
		V0: in.V0,
		V1: make(map[string]dbus.Variant, len(in.V1)),
	}
	for k, v := range in.V1 {
		out.V1[k] = v
	}
	if depth != 0 {
		depth--
		out.V2 = make([]dbus.Variant, len(in.V2))
		for i, v := range in.V2 {
			out.V2[i] = dbus.MakeVariant(copyLayout(v.Value().(*menuLayout), depth))
		}
	} else {
		out.V2 = []dbus.Variant{}
	}
	return &out
}

// menuCalls are the calls of the menu's methods, in the order in which they came. dbus runs
// each method on a goroutine of its own, so that answers overtake one another. Panels that
// use libdbusmenu-gtk (Xfce, MATE, Budgie, Cinnamon, waybar) ask for the properties of an
// item, and then for those of the items below it: where the second answer comes first, they
// drop the items below for good ("Children but no menu"). So calls are answered one after the
// other, and the lock that a change and its signal hold is held until an answer is sent.
type menuCalls struct {
	next chan *dbus.Message
	over chan struct{} // closed when nobody answers any more
}

// take keeps a call of the menu from dbus, which knows no message of type 0.
func (c menuCalls) take(msg *dbus.Message) {
	path, _ := msg.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	iface, _ := msg.Headers[dbus.FieldInterface].Value().(string)
	if msg.Type == dbus.TypeMethodCall && path == menuPath && iface == menu.InterfaceDbusmenu {
		call := *msg
		msg.Type = 0
		select {
		case c.next <- &call:
		case <-c.over:
		}
	}
}

// answer answers until the connection ends, which waits for it.
func (c menuCalls) answer(conn *dbus.Conn) {
	defer close(c.over)
	for {
		select {
		case call := <-c.next:
			instance.answer(conn, call)
		case <-conn.Context().Done():
			return
		}
	}
}

func (t *tray) answer(conn *dbus.Conn, call *dbus.Message) {
	initialMenuBuilt.Wait()
	t.menuLock.Lock()
	defer t.menuLock.Unlock()
	out, err := t.call(call)
	if call.Flags&dbus.FlagNoReplyExpected != 0 {
		return
	}
	reply := &dbus.Message{Type: dbus.TypeMethodReply, Body: out, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: call.Headers[dbus.FieldSender],
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
	}}
	if err != nil {
		reply.Type, reply.Body = dbus.TypeError, err.Body
		reply.Headers[dbus.FieldErrorName] = dbus.MakeVariant(err.Name)
	}
	reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(reply.Body...))
	conn.Send(reply, nil)
}

// call calls the method that a message names; the caller holds menuLock.
func (t *tray) call(msg *dbus.Message) ([]interface{}, *dbus.Error) {
	member, _ := msg.Headers[dbus.FieldMember].Value().(string)
	method := reflect.ValueOf(map[string]interface{}{
		"GetLayout":          t.GetLayout,
		"GetGroupProperties": t.GetGroupProperties,
		"GetProperty":        t.GetProperty,
		"Event":              t.Event,
		"EventGroup":         t.EventGroup,
		"AboutToShow":        t.AboutToShow,
		"AboutToShowGroup":   t.AboutToShowGroup,
	}[member])
	if !method.IsValid() {
		return nil, &dbus.ErrMsgUnknownMethod
	}
	args, in := make([]interface{}, method.Type().NumIn()), make([]reflect.Value, method.Type().NumIn())
	for i := range args {
		arg := reflect.New(method.Type().In(i))
		args[i], in[i] = arg.Interface(), arg.Elem()
	}
	if dbus.Store(msg.Body, args...) != nil {
		return nil, &dbus.ErrMsgInvalidArg
	}
	var out []interface{}
	results := method.Call(in)
	for _, result := range results[:len(results)-1] {
		out = append(out, result.Interface())
	}
	err, _ := results[len(results)-1].Interface().(*dbus.Error)
	return out, err
}

// GetLayout is com.canonical.dbusmenu.GetLayout method.
func (t *tray) GetLayout(parentID int32, recursionDepth int32, propertyNames []string) (revision uint32, layout menuLayout, err *dbus.Error) {
	if m, ok := findLayout(parentID); ok {
		// return copy of menu layout to prevent panic from cuncurrent access to layout
		return instance.menuVersion, *copyLayout(m, recursionDepth), nil
	}
	return
}

// GetGroupProperties is com.canonical.dbusmenu.GetGroupProperties method.
func (t *tray) GetGroupProperties(ids []int32, propertyNames []string) (properties []struct {
	V0 int32
	V1 map[string]dbus.Variant
}, err *dbus.Error) {
	for _, id := range ids {
		if m, ok := findLayout(id); ok {
			p := struct {
				V0 int32
				V1 map[string]dbus.Variant
			}{
				V0: m.V0,
				V1: make(map[string]dbus.Variant, len(m.V1)),
			}
			for k, v := range m.V1 {
				p.V1[k] = v
			}
			properties = append(properties, p)
		}
	}
	return
}

// GetProperty is com.canonical.dbusmenu.GetProperty method.
func (t *tray) GetProperty(id int32, name string) (value dbus.Variant, err *dbus.Error) {
	if m, ok := findLayout(id); ok {
		if p, ok := m.V1[name]; ok {
			return p, nil
		}
	}
	return value, &dbus.ErrMsgInvalidArg // no variant has no value: that would be no answer
}

// Event is com.canonical.dbusmenu.Event method.
func (t *tray) Event(id int32, eventID string, data dbus.Variant, timestamp uint32) (err *dbus.Error) {
	switch eventID {
	case "clicked":
		systrayMenuItemSelected(uint32(id))
	case "opened":
		if id == t.menu.V0 {
			select {
			case TrayOpenedCh <- struct{}{}:
			default:
			}
		}
	}
	return
}

// EventGroup is com.canonical.dbusmenu.EventGroup method.
func (t *tray) EventGroup(events []struct {
	V0 int32
	V1 string
	V2 dbus.Variant
	V3 uint32
}) (idErrors []int32, err *dbus.Error) {
	for _, event := range events {
		if event.V1 == "clicked" {
			systrayMenuItemSelected(uint32(event.V0))
		}
	}
	return
}

// AboutToShow is com.canonical.dbusmenu.AboutToShow method.
func (t *tray) AboutToShow(id int32) (needUpdate bool, err *dbus.Error) {
	return
}

// AboutToShowGroup is com.canonical.dbusmenu.AboutToShowGroup method.
func (t *tray) AboutToShowGroup(ids []int32) (updatesNeeded []int32, idErrors []int32, err *dbus.Error) {
	for _, id := range ids {
		if m, ok := findLayout(id); ok && len(m.V2) > 0 {
			updatesNeeded = append(updatesNeeded, id)
		}
	}
	return
}

func createMenuPropSpec() map[string]map[string]*prop.Prop {
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	return map[string]map[string]*prop.Prop{
		"com.canonical.dbusmenu": {
			"Version": {
				Value:    instance.menuVersion,
				Writable: true,
				Emit:     prop.EmitTrue,
				Callback: nil,
			},
			"TextDirection": {
				Value:    "ltr",
				Writable: false,
				Emit:     prop.EmitTrue,
				Callback: nil,
			},
			"Status": {
				Value:    "normal",
				Writable: false,
				Emit:     prop.EmitTrue,
				Callback: nil,
			},
			"IconThemePath": {
				Value:    []string{},
				Writable: false,
				Emit:     prop.EmitTrue,
				Callback: nil,
			},
		},
	}
}

// menuLayout is a named struct to map into generated bindings. It represents the layout of a menu item
type menuLayout = struct {
	V0 int32                   // the unique ID of this item
	V1 map[string]dbus.Variant // properties for this menu item layout
	V2 []dbus.Variant          // child menu item layouts
}

// emptyMenu is the item that all others are below; libdbusmenu-gtk warns where it is not one
// that opens a menu.
func emptyMenu() *menuLayout {
	return &menuLayout{V1: map[string]dbus.Variant{"children-display": dbus.MakeVariant("submenu")}}
}

func addOrUpdateMenuItem(item *MenuItem) {
	var layout, parent *menuLayout
	var parentForChildrenDisplayUpdate *menuLayout
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	m, exists := findLayout(int32(item.id))
	if exists {
		layout = m
	} else {
		layout = &menuLayout{
			V0: int32(item.id),
			V1: map[string]dbus.Variant{},
			V2: []dbus.Variant{},
		}

		parent = instance.menu
		if item.parent != nil {
			m, ok := findLayout(int32(item.parent.id))
			if ok {
				parent = m
				if _, already := parent.V1["children-display"]; !already {
					parent.V1["children-display"] = dbus.MakeVariant("submenu")
					if parent.V0 != 0 {
						parentForChildrenDisplayUpdate = parent
					}
				}
			}
		}
		parent.V2 = append(parent.V2, dbus.MakeVariant(layout))
	}

	applyItemToLayout(item, layout)
	if exists {
		emitItemPropertiesUpdated(int32(item.id), layout.V1)
		// Property-only change on an existing item; per spec LayoutUpdated isn't required here,
		// but kept as a fallback for clients that only watch LayoutUpdated.
		refresh(m.V0)
	} else {
		// We've added "children-display", that's a property change
		if parentForChildrenDisplayUpdate != nil {
			emitItemPropertiesUpdated(parentForChildrenDisplayUpdate.V0, parentForChildrenDisplayUpdate.V1)
		}
		// New item appended to a parent's children,
		// that's a structural change, so LayoutUpdated signal is required
		refresh(parent.V0)
	}
}

func addSeparator(id uint32, parent uint32) {
	menu, _ := findLayout(int32(parent))

	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	layout := &menuLayout{
		V0: int32(id),
		V1: map[string]dbus.Variant{
			"type": dbus.MakeVariant("separator"),
		},
		V2: []dbus.Variant{},
	}
	menu.V2 = append(menu.V2, dbus.MakeVariant(layout))
	refresh(menu.V0)
}

func applyItemToLayout(in *MenuItem, out *menuLayout) {
	out.V1["enabled"] = dbus.MakeVariant(!in.disabled)
	out.V1["label"] = dbus.MakeVariant(in.title)
	if in.opensMenu {
		out.V1["children-display"] = dbus.MakeVariant("submenu")
	}

	if in.isCheckable {
		out.V1["toggle-type"] = dbus.MakeVariant("checkmark")
		if in.checked {
			out.V1["toggle-state"] = dbus.MakeVariant(1)
		} else {
			out.V1["toggle-state"] = dbus.MakeVariant(0)
		}
	} else {
		out.V1["toggle-type"] = dbus.MakeVariant("")
		out.V1["toggle-state"] = dbus.MakeVariant(0)
	}
}

func findLayout(id int32) (*menuLayout, bool) {
	if id == 0 {
		return instance.menu, true
	}
	return findSubLayout(id, instance.menu.V2)
}

func findSubLayout(id int32, vals []dbus.Variant) (*menuLayout, bool) {
	for _, i := range vals {
		item := i.Value().(*menuLayout)
		if item.V0 == id {
			return item, true
		}

		if len(item.V2) > 0 {
			child, ok := findSubLayout(id, item.V2)
			if ok {
				return child, true
			}
		}
	}

	return nil, false
}

func removeSubLayout(id int32, vals []dbus.Variant) ([]dbus.Variant, bool) {
	for idx, i := range vals {
		item := i.Value().(*menuLayout)
		if item.V0 == id {
			return append(vals[:idx], vals[idx+1:]...), true
		}

		if len(item.V2) > 0 {
			if child, removed := removeSubLayout(id, item.V2); removed {
				return child, true
			}
		}
	}

	return vals, false
}

func removeMenuItem(item *MenuItem) {
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()

	parent := instance.menu
	if item.parent != nil {
		m, ok := findLayout(int32(item.parent.id))
		if !ok {
			return
		}
		parent = m
	}

	if items, removed := removeSubLayout(int32(item.id), parent.V2); removed {
		parent.V2 = items
		refresh(parent.V0)
	}
}

func hideMenuItem(item *MenuItem) {
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	m, exists := findLayout(int32(item.id))
	if exists {
		m.V1["visible"] = dbus.MakeVariant(false)
		emitItemPropertiesUpdated(int32(item.id), m.V1)
		// Property-only change; per spec LayoutUpdated isn't required here,
		// but kept as a fallback for clients that only watch LayoutUpdated.
		refresh(m.V0)
	}
}

func showMenuItem(item *MenuItem) {
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	m, exists := findLayout(int32(item.id))
	if exists {
		m.V1["visible"] = dbus.MakeVariant(true)
		emitItemPropertiesUpdated(int32(item.id), m.V1)
		// Property-only change; per spec LayoutUpdated isn't required here,
		// but kept as a fallback for clients that only watch LayoutUpdated.
		refresh(m.V0)
	}
}

// emitItemPropertiesUpdated emits the com.canonical.dbusmenu.ItemsPropertiesUpdated
// signal so desktop clients refresh per-item state (label, enabled, toggle-state,
// visible, icon-data) without re-querying the whole layout.
func emitItemPropertiesUpdated(id int32, props map[string]dbus.Variant) {
	instance.lock.Lock()
	conn := instance.conn
	instance.lock.Unlock()
	if conn == nil {
		return
	}
	err := menu.Emit(conn, &menu.Dbusmenu_ItemsPropertiesUpdatedSignal{
		Path: menuPath,
		Body: &menu.Dbusmenu_ItemsPropertiesUpdatedSignalBody{
			UpdatedProps: []struct {
				V0 int32
				V1 map[string]dbus.Variant
			}{{V0: id, V1: props}},
		},
	})
	if err != nil {
		log.Printf("systray error: failed to emit items properties updated signal: %v\n", err)
	}
}

// refresh has panels read again what changed: the item with this id, or what is below it.
// LXQt's closes an open menu when that is all of it.
func refresh(id int32) {
	instance.lock.Lock()
	defer instance.lock.Unlock()
	if instance.conn == nil || instance.menuProps == nil {
		return
	}
	instance.menuVersion++
	dbusErr := instance.menuProps.Set("com.canonical.dbusmenu", "Version",
		dbus.MakeVariant(instance.menuVersion))
	if dbusErr != nil {
		log.Printf("systray error: failed to update menu version: %v\n", dbusErr)
		return
	}
	err := menu.Emit(instance.conn, &menu.Dbusmenu_LayoutUpdatedSignal{
		Path: menuPath,
		Body: &menu.Dbusmenu_LayoutUpdatedSignalBody{
			Revision: instance.menuVersion,
			Parent:   id,
		},
	})
	if err != nil {
		log.Printf("systray error: failed to emit layout updated signal: %v\n", err)
	}
}

func resetMenu() {
	instance.menuLock.Lock()
	defer instance.menuLock.Unlock()
	instance.menu = emptyMenu()
	instance.menuVersion++
	refresh(0)
}
