package kv

import (
	"strings"
	"testing"
)

const someLocks = `1: POSIX  ADVISORY  WRITE 77 08:01:4711 0 EOF
2: FLOCK  ADVISORY  WRITE 812 08:01:47110 0 EOF
3: FLOCK  ADVISORY  WRITE -1 08:01:4712 0 EOF
4: FLOCK  ADVISORY  WRITE 813 08:01:4711 0 EOF
4: -> FLOCK  ADVISORY  WRITE 814 08:01:4711 0 EOF
`

func TestFindLock(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]int{"08:01:4711": 813, "08:01:47110": 812, "08:01:4712": 0, "08:01:1": 0, "": 0} {
		if pid := findLock(strings.NewReader(someLocks), file); pid != want {
			t.Errorf("%s is held by %d, want %d", file, pid, want)
		}
	}
}

func TestProcessNamesAreFitForATerminal(t *testing.T) {
	t.Parallel()
	if got := oneWord("a b\x1b[2J\u202ec\n"); got != "a_b_[2J_c" {
		t.Errorf("%q", got)
	}
}

func FuzzFindLock(f *testing.F) {
	f.Add(someLocks, "08:01:4711")
	f.Add("4: FLOCK ADVISORY WRITE 99999999999999999999 08:01:4711 0 EOF", "08:01:4711")
	f.Fuzz(func(t *testing.T, table, file string) {
		if pid := findLock(strings.NewReader(table), file); pid < 0 {
			t.Errorf("process %d", pid)
		}
	})
}
