package certs

import (
	"testing"

	"porchlight/test/programs"
)

// TestStateOfOwnCertificates: nothing before the first visitor, the dates while
// it serves, nothing again once it has ended and nobody came since.
func TestStateOfOwnCertificates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made := 0
	r.cfg.OnMade = func() { made++ }
	const name = "notes.maya.localhost"
	if s, known := r.State(name); known {
		t.Errorf("before the first visitor: %+v", s)
	}
	cert := programs.Got(r.Certificate(name))(t)
	s, known := r.State("Notes.maya.localhost.")
	life := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore)
	if !known || !s.Problem.IsZero() || !s.NotAfter.Equal(cert.Leaf.NotAfter) || s.NotAfter.Sub(s.RenewsAfter) != life/3 {
		t.Errorf("while it serves: %+v, %t", s, known)
	}
	if _, err := r.Certificate(name); err != nil || made != 1 {
		t.Errorf("one certificate was told of %d times, %v", made, err)
	}
	r.clock.advance(life)
	if s, known := r.State(name); known {
		t.Errorf("after its end: %+v", s)
	}
}
