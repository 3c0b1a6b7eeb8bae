//go:build cgo

package page

/*
#cgo CFLAGS: -x objective-c
#cgo LDFLAGS: -framework Cocoa
#import <Cocoa/Cocoa.h>

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

// First: on macOS the window's event loop is the tray's too, so the window
// is made at once, hidden, and the tray once the loop runs.
const First = true

func windowShown()  { C.set_policy(1) }
func windowHidden() { C.set_policy(0) }
