//go:build cgo

package desktop

/*
#cgo CFLAGS: -x objective-c
#cgo LDFLAGS: -framework Cocoa
#import <Cocoa/Cocoa.h>

extern void porchlightTray(void);

static void tray_on_main(void) { dispatch_async(dispatch_get_main_queue(), ^{ porchlightTray(); }); }

// An accessory has no place in the Dock; an app with a window on the screen does.
static void set_policy(int regular) {
	dispatch_async(dispatch_get_main_queue(), ^{
		[NSApp setActivationPolicy:regular ? NSApplicationActivationPolicyRegular : NSApplicationActivationPolicyAccessory];
		if (regular)
			[NSApp activateIgnoringOtherApps:YES];
	});
}
*/
import "C"

import (
	"sync"

	"fyne.io/systray"

	"porchlight/assets"
)

// windowFirst: on macOS the window's event loop is the tray's too, so the window
// is made at once, hidden, and the tray once the loop runs.
const windowFirst = true

func literal(text string) string { return text }

func trayIcon(state string, _ assets.Panel) (template, regular []byte) {
	icon := assets.TrayPNG(state, 32, assets.Template)
	return icon, icon
}

// onMain is what porchlightTray runs, on the main thread.
var onMain func()

//export porchlightTray
func porchlightTray() { onMain() }

// startTray has the window made first; toolkitStarted goes on from there.
func (a *app) startTray() (end func()) {
	start, stop := systray.RunWithExternalLoop(a.tray.build, nil)
	onMain = start
	raise(a.wantWindow)
	var once sync.Once
	return func() { once.Do(stop) }
}

// toolkitStarted runs when the event loop does.
func (a *app) toolkitStarted() {
	C.tray_on_main()
	C.set_policy(0)
	a.showWished()
}

func windowShown()  { C.set_policy(1) }
func windowHidden() { C.set_policy(0) }
