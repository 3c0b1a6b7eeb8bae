package agentapi_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Kinds lists each constant, once.
func TestKindsAreTheConstants(t *testing.T) {
	t.Parallel()
	var constants, listed []string
	for _, m := range regexp.MustCompile(`(?m)^\tKind\w+ += "(\w+)"`).FindAllSubmatch(programs.Got(os.ReadFile("kinds.go"))(t), -1) {
		constants = append(constants, string(m[1]))
	}
	for _, k := range agentapi.Kinds() {
		listed = append(listed, k.Name)
	}
	if !slices.Equal(slices.Sorted(slices.Values(constants)), slices.Sorted(slices.Values(listed))) || len(listed) == 0 {
		t.Errorf("the constants are %v, listed are %v", constants, listed)
	}
}

// Every mixture of quiet kinds is one level's, or the owner's own choice; and who asks,
// who got in by a client, and what ends access for everybody is told at each level.
func TestLevelsOfNotifications(t *testing.T) {
	t.Parallel()
	lists := map[string][]string{}
	for _, level := range agentapi.Levels() {
		quiet, ok := agentapi.QuietAt(level)
		if !ok {
			t.Errorf("there is no level %s", level)
		}
		for _, loud := range []string{agentapi.KindRequest, agentapi.KindKnock, agentapi.KindClient, agentapi.KindAccess} {
			if slices.Contains(quiet, loud) {
				t.Errorf("%s is not told at %s", loud, level)
			}
		}
		lists[level] = quiet
	}
	if len(lists[agentapi.NotifyEverything]) != 0 || slices.Contains(lists[agentapi.NotifyWaiting], agentapi.KindConnection) || !slices.Contains(lists[agentapi.NotifyNothing], agentapi.KindConnection) {
		t.Errorf("the levels are %v", lists)
	}
	kinds := agentapi.Kinds()
	own := 0
	for mixture := range 1 << len(kinds) {
		quiet := []string{}
		for i, kind := range kinds {
			if mixture&(1<<i) != 0 {
				quiet = append(quiet, kind.Name)
			}
		}
		slices.Sort(quiet)
		level := agentapi.LevelOf(quiet)
		if level == "" {
			own++
		} else if !slices.Equal(lists[level], quiet) {
			t.Errorf("%v is called %s", quiet, level)
		}
	}
	if want := 1<<len(kinds) - len(agentapi.Levels()); own != want {
		t.Errorf("%d mixtures are the owner's own, want %d", own, want)
	}
	if level := agentapi.LevelOf([]string{"of-a-later-version"}); level != "" {
		t.Errorf("a kind that nobody knows makes %s", level)
	}
	if _, ok := agentapi.QuietAt("loud"); ok {
		t.Error("there is a level loud")
	}
}
