package news_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"porchlight/control/news"
	"porchlight/test/programs"
)

// Who holds a tunnel says so, until it has gone or its node has; for a tunnel that
// nobody holds there is an answer, too, and what cannot be a host asks nobody.
func TestHolders(t *testing.T) {
	t.Parallel()
	one, two, three := open(t, "one", nil), open(t, "two", nil), open(t, "three", nil)
	meet(t, one, two, three)
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	holders := func(host string) string {
		var names []string
		found, _ := one.Holders(t.Context(), host, 2)
		for _, h := range found {
			names = append(names, h.Node)
		}
		return strings.Join(names, " ")
	}
	until := func(host, want string) {
		t.Helper()
		programs.Eventually(t, host+" is held by "+want, func() bool { return holders(host) == want })
	}
	until("anna.porch.test", "")
	programs.Eventually(t, "all are heard, nobody says so, and it is sure", func() bool {
		found, without := one.Holders(t.Context(), "anna.porch.test", 2)
		return len(found) == 0 && len(without) == 2
	})
	two.Hold("anna.porch.test", yes)
	until("anna.porch.test", "two")
	three.Hold("anna.porch.test", yes)
	until("anna.porch.test", "three two") // the latest first
	two.Hold("anna.porch.test", yes)
	until("anna.porch.test", "two three")
	two.Hold("anna.porch.test", no)
	until("anna.porch.test", "three")
	for _, host := range []string{"*.porch.test", ">", "", ".", "a b", "anna.porch.test.", strings.Repeat("a", 300)} {
		two.Hold(host, yes)
		if got := holders(host); got != "" {
			t.Errorf("%q is held by %s", host, got)
		}
		if _, without := one.Holders(t.Context(), host, 2); len(without) != 2 {
			t.Errorf("%q, which no node can hold: without it are %q", host, without)
		}
	}
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("c%d.porch.test", i))
		two.Hold(many[i], yes)
	}
	until(many[len(many)-1], "two")
	each := func(hosts []string, want bool) time.Duration {
		begun := time.Now()
		for _, host := range hosts {
			if held := holders(host) != ""; held != want {
				t.Fatalf("%s is held: %v", host, held)
			}
		}
		return time.Since(begun) / time.Duration(len(hosts))
	}
	one.Know([]news.Node{two.self}) // one answer is all there can be
	asked := func(host string) bool {
		for {
			found, without := one.Holders(t.Context(), host, 1)
			if len(found) == 1 || len(without) == 1 { // else the answer was late
				return len(found) == 1
			}
		}
	}
	begun := time.Now()
	for _, host := range many {
		if !asked(host) {
			t.Fatalf("nobody holds %s", host)
		}
	}
	took := time.Since(begun) / time.Duration(len(many))
	var none []string
	for i := range 1000 {
		none = append(none, fmt.Sprintf("nobody%d.porch.test", i))
	}
	t.Logf("a question: %v; one that nobody answers: %v", took, each(none, false))

	// A node that is not known to live holds nothing, whatever it says.
	one.Know([]news.Node{two.self, {Name: "three", Run: "another", Address: three.self.Address}})
	if got := holders("anna.porch.test"); got != "" {
		t.Errorf("held by %s, of another run", got)
	}
	one.Know([]news.Node{two.self, three.self})
	until("anna.porch.test", "three")
	three.stop()
	until("anna.porch.test", "")
}
