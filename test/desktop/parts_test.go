//go:build rig

package desktop

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"porchlight/test/programs"
)

// startWindowManager waits until it has taken the screen: keys pressed before
// reach nobody.
func (s *session) startWindowManager() {
	s.spawn("openbox")
	s.eventually("a window manager", func() error {
		out, err := s.tool("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
		if err == nil && !strings.Contains(out, "window id") {
			err = errors.New(strings.TrimSpace(out))
		}
		return err
	})
}

// startDunst also gives it the program that picks one of a notification's
// buttons: ours takes the one the test is about.
func (s *session) startDunst() {
	s.picks(cmp.Or(s.opts.picks, "Approve"))
	s.write(filepath.Join(s.dir, "home/.config/dunst/dunstrc"), `[global]
 history_length=50
 follow=none
 origin=bottom-right
 width=(0, 460)
 dmenu=`+s.dir+`/bin/pick
 mouse_left_click=context
`+s.dunstLook()+`
 timeout=30
`)
	s.hears(s.told)
	s.spawn("dunst")
	s.waitName("org.freedesktop.Notifications", true)
}

// picks says which button of a notification is pressed from now on.
func (s *session) picks(button string) {
	s.t.Helper()
	programs.Must(s.t, os.WriteFile(filepath.Join(s.dir, "bin/pick"), []byte("#!/bin/sh\ngrep -m 1 '"+button+"'\n"), 0o755))
}

func (s *session) startPanel() {
	colour := `<value type="double" value="0.13"/><value type="double" value="0.12"/><value type="double" value="0.11"/>`
	if s.opts.light {
		colour = `<value type="double" value="0.93"/><value type="double" value="0.92"/><value type="double" value="0.90"/>`
	}
	s.write(filepath.Join(s.dir, "home/.config/xfce4/xfconf/xfce-perchannel-xml/xfce4-panel.xml"), `<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
 <property name="configver" type="int" value="2"/>
 <property name="panels" type="array"><value type="int" value="1"/>
  <property name="dark-mode" type="bool" value="`+strconv.FormatBool(!s.opts.light)+`"/>
  <property name="panel-1" type="empty">
   <property name="position" type="string" value="p=6;x=0;y=0"/>
   <property name="length" type="uint" value="100"/>
   <property name="position-locked" type="bool" value="true"/>
   <property name="size" type="uint" value="32"/>
   <property name="icon-size" type="uint" value="22"/>
   <property name="background-style" type="uint" value="1"/>
   <property name="background-rgba" type="array">`+colour+`<value type="double" value="1"/></property>
   <property name="plugin-ids" type="array"><value type="int" value="1"/><value type="int" value="2"/><value type="int" value="3"/></property>
  </property>
 </property>
 <property name="plugins" type="empty">
  <property name="plugin-1" type="string" value="separator"><property name="expand" type="bool" value="true"/><property name="style" type="uint" value="0"/></property>
  <property name="plugin-2" type="string" value="systray"><property name="square-icons" type="bool" value="true"/><property name="icon-size" type="int" value="22"/><property name="known-items" type="array"><value type="string" value="Porchlight"/></property></property>
  <property name="plugin-3" type="string" value="clock">`+s.clockLook()+`</property>
 </property>
</channel>
`)
	s.spawn("xfce4-panel", "--disable-wm-check")
	panel := s.running["xfce4-panel"]
	s.t.Cleanup(func() {
		if said := panel.Stderr(); strings.Contains(said, "LIBDBUSMENU-GTK") {
			s.t.Errorf("the panel does not draw all of the menu:\n%s", said)
		}
	})
	s.waitName(watcher, true)
}

// watcher is the name of the panel's part that shows icons.
const watcher = "org.kde.StatusNotifierWatcher"

// panelPID is the process that has it.
func (s *session) panelPID() int {
	s.t.Helper()
	var pid uint32
	programs.Must(s.t, s.bus.BusObject().Call("org.freedesktop.DBus.GetConnectionUnixProcessID", 0, watcher).Store(&pid))
	return int(pid)
}

// installBrowser puts an xdg-open before the real one that keeps what it was
// asked to open.
func (s *session) installBrowser() {
	script := "#!/bin/sh\nprintf '%s\\n' \"$1\" >>" + s.dir + "/opened\n"
	programs.Must(s.t, os.WriteFile(filepath.Join(s.dir, "bin/xdg-open"), []byte(script), 0o755))
}

// opened lists what the browser was asked to open.
func (s *session) opened() []string {
	raw, err := os.ReadFile(filepath.Join(s.dir, "opened"))
	if err != nil {
		return nil
	}
	// A line counts once it is whole: the file is there before its first one.
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1]
	return strings.Fields(string(whole))
}
