package agentapi

import (
	"strings"
	"testing"
)

// Every choice has a name and a help, and a sentence about it says how it is, once.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	for _, f := range append(Options, SettingFields...) {
		if f.Name == "" || f.Help == "" || strings.Count(f.Says, "%s") != strings.Count(f.Says, "%") || f.Says != "" && strings.Count(f.Says, "%s") != 1 {
			t.Errorf("%+v", f)
		}
		if _, text := f.Default.(string); text && f.Says != "" && f.None == "" {
			t.Errorf("%s: nothing is said of an empty one", f.Name)
		}
	}
}
