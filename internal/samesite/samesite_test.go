package samesite

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		domain, authHost string
		want             Risk
	}{
		{"porch.example", "control.porch.example", SignIn},
		{"porch.example", "porch.example", SignIn},
		{"apps.porch.example", "control.porch.example", SignIn},
		{"porch.co.uk", "control.porch.co.uk", SignIn},
		{"porch.example", "control.example", Computers},
		{"porch.co.uk", "control.co.uk", Computers},
		// On the list: each computer is a site of its own.
		{"github.io", "control.github.io", None},
		{"github.io", "control.example", None},
		{"co.uk", "control.co.uk", None},
		// Local mode.
		{"localhost", "control.localhost", None},
	} {
		if got := Of(tt.domain, tt.authHost); got != tt.want {
			t.Errorf("computers below %s, signing in at %s: %d, want %d", tt.domain, tt.authHost, got, tt.want)
		}
	}
}
