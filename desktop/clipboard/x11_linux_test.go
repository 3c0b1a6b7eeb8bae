package clipboard

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// startX runs an X server of its own and returns its display, or skips.
func startX(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"Xvfb", "xclip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	r, w, err := os.Pipe()
	programs.Must(t, err)
	defer r.Close()
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "64x64x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	programs.Must(t, cmd.Start())
	_ = w.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb told no display: %v", err)
	}
	return ":" + strings.TrimSpace(line)
}

func paste(t *testing.T, display, target string) string {
	t.Helper()
	cmd := exec.Command("xclip", "-o", "-selection", "clipboard", "-t", target)
	cmd.Env = append(os.Environ(), "DISPLAY="+display)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "error: " + strings.TrimSpace(string(out))
	}
	return string(out)
}

func TestOtherProgramsCanPaste(t *testing.T) {
	t.Parallel()
	display := startX(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const address = "https://notes.maya.localhost:8443"
	programs.Must(t, own(ctx, display, address))
	// More than once, in every form a program asks for.
	for _, target := range []string{"UTF8_STRING", "STRING", "TEXT", "text/plain", "text/plain;charset=utf-8", "UTF8_STRING"} {
		if got := paste(t, display, target); got != address {
			t.Errorf("paste as %s = %q", target, got)
		}
	}
	if got := paste(t, display, "TARGETS"); !strings.Contains(got, "UTF8_STRING\n") {
		t.Errorf("TARGETS = %q", got)
	}
	if got := paste(t, display, "image/png"); !strings.HasPrefix(got, "error:") {
		t.Errorf("pasting text as a picture gave %q", got)
	}

	// Beyond ASCII there is no STRING, which would be Latin-1.
	programs.Must(t, own(ctx, display, "Fotos für Zoë"))
	if got := paste(t, display, "UTF8_STRING"); got != "Fotos für Zoë" {
		t.Errorf("second copy = %q", got)
	}
	if got := paste(t, display, "STRING"); !strings.HasPrefix(got, "error:") {
		t.Errorf("Latin-1 of letters with marks = %q", got)
	}
}

func TestCopyByAnotherProgramReplacesOurs(t *testing.T) {
	t.Parallel()
	display := startX(t)
	programs.Must(t, own(t.Context(), display, "ours"))
	cmd := exec.Command("xclip", "-i", "-selection", "clipboard", "-quiet", "-loops", "1")
	cmd.Env = append(os.Environ(), "DISPLAY="+display)
	cmd.Stdin = strings.NewReader("theirs")
	programs.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	// xclip says nothing when it owns the selection; asking until it answers is the event there is.
	for got := "ours"; got == "ours"; {
		if got = paste(t, display, "UTF8_STRING"); got != "ours" && got != "theirs" {
			t.Fatalf("paste = %q", got)
		}
	}
}
