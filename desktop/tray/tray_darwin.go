//go:build cgo

package tray

/*
#cgo CFLAGS: -x objective-c
#cgo LDFLAGS: -framework Cocoa
#import <Cocoa/Cocoa.h>

extern void porchlightTray(void);

static void tray_on_main(void) { dispatch_async(dispatch_get_main_queue(), ^{ porchlightTray(); }); }
*/
import "C"

import (
	"sync"

	"fyne.io/systray"

	"porchlight/assets"
)

func literal(text string) string { return text }

func trayIcon(state string, _ assets.Panel) (template, regular []byte) {
	icon := assets.TrayPNG(state, 32, assets.Template)
	return icon, icon
}

// onMain is what porchlightTray runs, on the main thread.
var onMain func()

//export porchlightTray
func porchlightTray() { onMain() }

// Start makes the tray ready; onLoop puts it up.
func (t *Tray) Start() (end func()) {
	start, stop := systray.RunWithExternalLoop(t.build, nil)
	onMain = start
	var once sync.Once
	return func() { once.Do(stop) }
}

// OnLoop is called when the window's event loop runs, which is the tray's too.
func (t *Tray) OnLoop() { C.tray_on_main() }
