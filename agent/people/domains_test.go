package people

import (
	"testing"

	"porchlight/control/controlapi"
)

// A CAA that forbids is told of by what has to be entered; one that allows, or that is about an
// authority whose name is not known, is not.
func TestWhatCAAForbids(t *testing.T) {
	t.Parallel()
	const ours = "letsencrypt.org"
	for what, c := range map[string]struct {
		caa       []string
		authority string
		forbids   bool
	}{
		"none":                   {nil, ours, false},
		"ours":                   {[]string{"other.example", ours}, ours, false},
		"another":                {[]string{"other.example"}, ours, true},
		"nobody":                 {[]string{}, ours, true},
		"one that is not known":  {[]string{"other.example"}, "", false},
		"nobody, ours not known": {[]string{}, "", false},
	} {
		err := forbidden(controlapi.Domain{Name: "notes.maya.net", CAA: c.caa}, c.authority)
		const want = `The DNS of notes.maya.net does not let letsencrypt.org give certificates. Where the domain is registered, add: notes.maya.net CAA 0 issue "letsencrypt.org"`
		if (err != nil) != c.forbids || err != nil && err.Error() != want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
