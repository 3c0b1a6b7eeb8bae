package main

import "testing"

// TestTypedIsForAShell: the data directory of a command that is shown to be typed is one
// argument, whatever is in its name.
func TestTypedIsForAShell(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"":                  "",
		"/home/maya/porch":  " --data /home/maya/porch",
		"/home/maya/my own": " --data '/home/maya/my own'",
		"it's; rm -r":       ` --data 'it'\''s; rm -r'`,
	} {
		if suffix := (&location{data: dir}).suffix(); suffix != want {
			t.Errorf("%q is typed as%s, want%s", dir, suffix, want)
		}
	}
}
