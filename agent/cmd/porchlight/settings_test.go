package main

import (
	"io"
	"testing"

	"github.com/spf13/pflag"
)

// TestEveryFlagOfSettingsSets: one that is in no row would be taken and change nothing.
func TestEveryFlagOfSettingsSets(t *testing.T) {
	t.Parallel()
	cmd, _, err := newRoot(&terminal{out: io.Discard, err: io.Discard}).Find([]string{"settings"})
	if err != nil {
		t.Fatal(err)
	}
	left := len(settingOf)
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case settingOf[flag.Name] != nil:
			left--
		case flag.Name != "json" && flag.Name != "help":
			t.Errorf("--%s sets nothing", flag.Name)
		}
	})
	if left != 0 {
		t.Errorf("%d rows have no flag", left)
	}
}
