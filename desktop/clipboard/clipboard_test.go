package clipboard

import (
	"errors"
	"strings"
	"testing"
)

func TestTooLongIsRefused(t *testing.T) {
	t.Parallel()
	err := Copy(t.Context(), strings.Repeat("x", maxText+1))
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Fatalf("err = %v", err)
	}
}

// Where nothing can be copied the owner is told why, at once.
func TestNoWayToCopy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if err := Copy(t.Context(), "x"); !errors.Is(err, errNoDisplay) {
		t.Errorf("no display: %v", err)
	}
	t.Setenv("WAYLAND_DISPLAY", "wayland-0")
	if err := Copy(t.Context(), "x"); !errors.Is(err, errNeedsHelper) {
		t.Errorf("Wayland without wl-copy: %v", err)
	}
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("DISPLAY", ":65000")
	if err := Copy(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("dead display: %v", err)
	}
}
