package proxy

import "testing"

// Weakness: who was turned away, because another's program listens where the app was, was
// reset instead of getting the page, when access ended before the page was out. Checked:
// neither what ends meanwhile nor what ends afterwards cuts them off, while the app's side
// is closed; after a yes it does, and so it does once the app's first word is there.
func TestWhoIsTurnedAwayIsNotCutOff(t *testing.T) {
	t.Parallel()
	together := make(chan struct{})
	close(together)
	for name, c := range map[string]struct {
		run  func(*visit)
		shut bool
	}{
		"cut while judged, ended after a no": {func(v *visit) {
			v.judge(func() bool { v.Cut(together); return false })
			v.End()
		}, false},
		"ended while judged":              {func(v *visit) { v.judge(func() bool { v.Cut(together); v.End(); return false }) }, false},
		"cut after a no":                  {func(v *visit) { v.judge(func() bool { return false }); v.Cut(together); v.End() }, false},
		"ended while judged, and welcome": {func(v *visit) { v.judge(func() bool { v.Cut(together); v.End(); return true }) }, true},
		"cut after a yes":                 {func(v *visit) { v.judge(func() bool { return true }); v.Cut(together) }, true},
		"two judged, one says no": {func(v *visit) {
			v.judge(func() bool {
				v.judge(func() bool { v.Cut(together); return false })
				v.End()
				return true
			})
		}, false},
		"cut, and the app has spoken": {func(v *visit) { v.hears(); v.judge(func() bool { v.Cut(together); return false }) }, true},
		"the app speaks after a cut": {func(v *visit) {
			v.judge(func() bool { return false })
			v.Cut(together)
			if v.hears() {
				t.Error("what an app says after access ended goes on")
			}
		}, true},
	} {
		v := &visit{}
		c.run(v)
		if v.shut.Load() != c.shut {
			t.Errorf("%s: cut off %v", name, !c.shut)
		}
		if !v.cancelled && name != "cut after a yes" {
			t.Errorf("%s: the app's side is open", name)
		}
	}
}
