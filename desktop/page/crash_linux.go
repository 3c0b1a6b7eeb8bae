//go:build production && cgo

package page

// #include <gtk/gtk.h>
import "C"

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// pageCrash is told of each crash of the page's process; there is one window in
// a process, and C knows no more than that.
var pageCrash atomic.Pointer[func(again uint)]

// watchPage has the page loaded again when the process it runs in dies of
// itself: at once, and later each time when it keeps dying. crashed is told how
// many crashes came shortly before this one. To be called with the page there.
func watchPage(crashed func(again uint)) {
	pageCrash.Store(&crashed)
	watchPageSoon()
}

//export porchlightPageCrashed
func porchlightPageCrashed(again C.guint) {
	if crashed := pageCrash.Load(); crashed != nil {
		(*crashed)(uint(again))
	}
}

// desktopLooks is told what the desktop looks like, by C as well.
var desktopLooks atomic.Pointer[func(dark bool)]

//export porchlightDesktopLooks
func porchlightDesktopLooks(dark C.gboolean) {
	if looks := desktopLooks.Load(); looks != nil {
		(*looks)(dark != 0)
	}
}

// porchlightEndNetwork ends WebKit's network process, 11 MiB, which the page never uses:
// Wails serves it from this one. WebKit has no call for that, and starts another by itself
// with the next page.
//
//export porchlightEndNetwork
func porchlightEndNetwork() {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		children, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(children)) {
			name, _ := os.ReadFile("/proc/" + child + "/comm")
			if pid, err := strconv.Atoi(child); err == nil && string(name) == "WebKitNetworkPr\n" { // 15 bytes of it
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
