//go:build production && !linux

package page

import (
	"context"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// pageEnds says whether the page is ended while the window is hidden. Only
// WebKitGTK offers that; the others suspend hidden pages by themselves.
const pageEnds = false

func endPage()     {}
func loadPage()    {}
func beforeHide()  {}
func beforeShow()  {}
func beforeFront() {}

// watchPage: Wails offers no word of a page that died.
func watchPage(func(again uint)) {}

// endLoop ends the toolkit's loop and with it wails.Run.
func endLoop(ctx context.Context) { runtime.Quit(ctx) }

// startToolkit leaves both to Wails; dark only colours the window until the
// page is there, which sees itself what the desktop looks like.
func startToolkit(func(dark bool)) (dark, ok bool) { return false, true }
