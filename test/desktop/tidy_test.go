//go:build rig

package desktop

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"porchlight/test/programs"
)

// dress gives a tidy desktop the looks of a present one: one typeface and plain
// frames. Tests that look for colours and places keep Debian's defaults.
func (s *session) dress() {
	if s.opts.dark {
		s.env = append(s.env, "GTK_THEME=Adwaita:dark")
	}
	if !s.opts.tidy {
		return
	}
	home := filepath.Join(s.dir, "home")
	theme := filepath.Join(home, ".local/share/themes/Tidy/openbox-3")
	for _, d := range []string{theme, filepath.Join(home, ".config/openbox"), filepath.Join(home, ".config/gtk-3.0"), filepath.Join(home, ".config/fontconfig")} {
		programs.Must(s.t, os.MkdirAll(d, 0o700))
	}
	// What pages call the system's own face: the window's, and those on the phone.
	alias := func(family string) string {
		return `<alias binding="strong"><family>` + family + `</family><prefer><family>Inter</family></prefer></alias>`
	}
	s.write(filepath.Join(home, ".config/fontconfig/fonts.conf"), `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>`+alias("system-ui")+alias("sans-serif")+alias("Sans")+`</fontconfig>
`)
	s.write(filepath.Join(home, ".config/gtk-3.0/settings.ini"), `[Settings]
gtk-font-name=Inter 10.5
gtk-xft-antialias=1
gtk-xft-hinting=1
gtk-xft-hintstyle=hintslight
gtk-xft-rgba=none
gtk-xft-dpi=98304
gtk-enable-animations=0
`)
	bar, edge, words := "#e9e6e0", "#c9c4ba", "#3b352e"
	if s.opts.dark {
		bar, edge, words = "#2c2825", "#0f0d0c", "#d8d0c4"
	}
	// The window manager knows nothing of finer screens: its lengths are pixels.
	px := s.scale()
	if s.opts.fine {
		s.write(filepath.Join(theme, "close.xbm"), crossXBM)
	}
	s.write(filepath.Join(theme, "themerc"), fmt.Sprintf(`
border.width: %d
padding.width: %d
padding.height: %d
`, px, 8*px, 6*px)+`
window.client.padding.width: 0
window.handle.width: 0
window.*.title.bg: flat solid
window.*.title.bg.color: `+bar+`
window.*.label.bg: parentrelative
window.*.label.text.color: `+words+`
window.label.text.justify: center
window.*.border.color: `+edge+`
window.*.title.separator.color: `+edge+`
window.*.button.*.bg: parentrelative
window.*.button.*.image.color: `+words+`
`)
	size := strconv.Itoa(10 * px)
	s.write(filepath.Join(home, ".config/openbox/rc.xml"), `<?xml version="1.0"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
<theme><name>Tidy</name><titleLayout>NLC</titleLayout><keepBorder>yes</keepBorder>
<font place="ActiveWindow"><name>Inter</name><size>`+size+`</size><weight>Semi-Bold</weight></font>
<font place="InactiveWindow"><name>Inter</name><size>`+size+`</size><weight>Semi-Bold</weight></font></theme>
<desktops><number>1</number><popupTime>0</popupTime></desktops>
<keyboard><keybind key="A-F4"><action name="Close"/></keybind></keyboard>
</openbox_config>
`)
}

// scale is how many pixels a length of one has.
func (s *session) scale() int {
	if s.opts.fine {
		return 2
	}
	return 1
}

// crossXBM is the mark on a close button, 12 pixels each way.
const crossXBM = `#define close_width 12
#define close_height 12
static unsigned char close_bits[] = {
0x03,0x0c, 0x07,0x0e, 0x0e,0x07, 0x9c,0x03, 0xf8,0x01, 0xf0,0x00,
0xf0,0x00, 0xf8,0x01, 0x9c,0x03, 0x0e,0x07, 0x07,0x0e, 0x03,0x0c };
`

// dunstLook is how notifications are drawn; it ends in the section of ordinary
// ones.
func (s *session) dunstLook() string {
	if !s.opts.tidy {
		return " font=DejaVu Sans 10\n[urgency_normal]"
	}
	return ` font=Inter 10
 width=400
 offset=16x16
 corner_radius=10
 frame_width=1
 frame_color="#4a443c"
 padding=12
 horizontal_padding=14
 show_indicators=no
 max_icon_size=40
[urgency_normal]
 background="#2a2621"
 foreground="#f6f2ec"`
}

// clockLook is what the panel's clock shows: the time alone.
func (s *session) clockLook() string {
	if !s.opts.tidy {
		return ""
	}
	return `<property name="digital-layout" type="uint" value="3"/><property name="digital-time-font" type="string" value="Inter 10"/>` +
		`<property name="digital-time-format" type="string" value=" %H:%M "/>`
}
