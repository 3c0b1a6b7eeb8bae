// Package clipboard puts a text on the clipboard without a window: the tray's
// "Copy link" must work before the window was ever opened.
//
// macOS and Windows keep what is copied. On Linux the copying program must go
// on answering for it: under X11 this package is a selection owner of its own,
// on a connection that lives until something else is copied. On Wayland only the
// focused window may copy, so there it takes wl-copy, which opens one for the
// purpose, and without it fails with errNeedsHelper.
package clipboard

import (
	"context"
	"os/exec"
	"porchlight/internal/words"
	"strings"
)

// errNeedsHelper says that this desktop lets no background program copy.
var errNeedsHelper = words.Errorf("On Wayland the menu can only copy with the wl-clipboard package installed. The Porchlight window can copy without it.")

// errNoDisplay says that there is no clipboard at all.
var errNoDisplay = words.Errorf("There is no display here, so there is no clipboard.")

// maxText is the longest text taken, in bytes: it has to fit one X11 property.
const maxText = 64 << 10

// Copy puts text on the clipboard and returns once it can be pasted. The text
// stays there until something else is copied or ctx ends.
func Copy(ctx context.Context, text string) error {
	if len(text) > maxText {
		return words.Errorf("A text of %d bytes is too long to copy.", len(text))
	}
	return copyText(ctx, text)
}

// pipe hands text to a program's standard input.
func pipe(ctx context.Context, text, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(text)
	if err := cmd.Run(); err != nil {
		return words.Errorf("%s could not copy: %w", program, err)
	}
	return nil
}
