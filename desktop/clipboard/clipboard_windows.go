package clipboard

import (
	"context"
	"porchlight/internal/words"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	user32   = windows.NewLazySystemDLL("user32.dll")
	kernel32 = windows.NewLazySystemDLL("kernel32.dll")

	openClipboard    = user32.NewProc("OpenClipboard")
	emptyClipboard   = user32.NewProc("EmptyClipboard")
	setClipboardData = user32.NewProc("SetClipboardData")
	closeClipboard   = user32.NewProc("CloseClipboard")
	globalAlloc      = kernel32.NewProc("GlobalAlloc")
	globalFree       = kernel32.NewProc("GlobalFree")
	globalLock       = kernel32.NewProc("GlobalLock")
	globalUnlock     = kernel32.NewProc("GlobalUnlock")
	moveMemory       = kernel32.NewProc("RtlMoveMemory")
)

const (
	formatUnicodeText = 13 // CF_UNICODETEXT
	movable           = 2  // GMEM_MOVEABLE
)

// copyText speaks Win32 itself: the clipboard belongs to the thread that opened
// it, and another program may hold it for a moment.
func copyText(ctx context.Context, text string) error {
	utf16, err := windows.UTF16FromString(text)
	if err != nil {
		return words.Errorf("This text cannot be copied: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		if ok, _, _ := openClipboard.Call(0); ok != 0 {
			break
		}
		select {
		case <-ctx.Done():
			return words.Errorf("Another program is holding the clipboard.")
		case <-time.After(10 * time.Millisecond):
		}
	}
	defer closeClipboard.Call()
	if ok, _, err := emptyClipboard.Call(); ok == 0 {
		return words.Errorf("The clipboard could not be emptied: %w", err)
	}
	handle, _, err := globalAlloc.Call(movable, uintptr(len(utf16)*2))
	if handle == 0 {
		return words.Errorf("No memory for the clipboard: %w", err)
	}
	memory, _, err := globalLock.Call(handle)
	if memory == 0 {
		_, _, _ = globalFree.Call(handle)
		return words.Errorf("No memory for the clipboard: %w", err)
	}
	_, _, _ = moveMemory.Call(memory, uintptr(unsafe.Pointer(&utf16[0])), uintptr(len(utf16)*2))
	_, _, _ = globalUnlock.Call(handle)
	// On success the clipboard owns the memory.
	if ok, _, err := setClipboardData.Call(formatUnicodeText, handle); ok == 0 {
		_, _, _ = globalFree.Call(handle)
		return words.Errorf("The clipboard did not take the text: %w", err)
	}
	return nil
}
