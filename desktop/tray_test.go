//go:build !darwin || cgo

package desktop

import (
	"testing"
	"time"
)

// The owner clicks what the line said when they aimed: when it comes to mean
// another app at that moment, the click is nobody's.
func TestClickOnALineThatJustChanged(t *testing.T) {
	t.Parallel()
	notes := action{verb: doApprove, name: "notes"}
	photos := action{verb: doApprove, name: "photos"}
	l := &trayLine{}
	at := time.Unix(1000, 0)

	l.mean(notes, at)
	if act, ok := l.clicked(at); !ok || act != notes {
		t.Fatalf("a line that was hidden before: %v %v", act, ok)
	}
	l.mean(photos, at)
	if _, ok := l.clicked(at.Add(settle - 1)); ok {
		t.Fatal("a click meant for Notes approved Photos")
	}
	if act, ok := l.clicked(at.Add(settle)); !ok || act != photos {
		t.Fatalf("after a moment: %v %v", act, ok)
	}
	// The same app with another port is the same target; what was seen travels along.
	moved := photos
	moved.seen.port = 1234
	l.mean(moved, at.Add(settle))
	if act, ok := l.clicked(at.Add(settle)); !ok || act.seen.port != 1234 {
		t.Fatalf("same app: %v %v", act, ok)
	}
}
