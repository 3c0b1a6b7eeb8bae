package local

import (
	"regexp"
	"strings"
	"testing"
)

func TestShortName(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]string{
		"maya":                          "maya",
		"Maya.Nunes":                    "maya-nunes",
		"maya  nunes":                   "maya-nunes",
		"-x-":                           "x",
		"":                              "home",
		"мая":                           "home",
		"www":                           "home",
		"Portal":                        "home",
		"control":                       "home",
		strings.Repeat("a", 80):         strings.Repeat("a", 63),
		strings.Repeat("a", 62) + "..b": strings.Repeat("a", 62),
	} {
		if got := shortName(login); got != want {
			t.Errorf("shortName(%q) = %q, want %q", login, got, want)
		}
	}
}

func FuzzShortName(f *testing.F) {
	f.Add("maya")
	f.Add("DOMAIN\\maya")
	legal := regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	f.Fuzz(func(t *testing.T, login string) {
		name := shortName(login)
		if !legal.MatchString(name) || name == "www" || name == "portal" || name == authLabel {
			t.Errorf("shortName(%q) = %q", login, name)
		}
	})
}
