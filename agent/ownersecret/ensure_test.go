package ownersecret

import (
	"context"
	"errors"
	"os"
	"testing"

	"porchlight/test/programs"
)

func TestEnsureMakesOneSecretOnly(t *testing.T) {
	configure(t)
	s := File(t.TempDir())
	first, err := Ensure(context.Background(), s)
	if err != nil || check(first) != nil {
		t.Fatal(err, check(first))
	}
	if again, err := Ensure(context.Background(), s); err != nil || again != first {
		t.Errorf("a second secret was made: %v", err)
	}
	// A secret that cannot be read is not replaced.
	path := programs.Got(s.Path())(t)
	programs.Must(t, os.WriteFile(path, []byte("damaged"), 0o600))
	if _, err := Ensure(context.Background(), s); !errors.Is(err, errMalformed) {
		t.Errorf("Ensure over a damaged secret: %v", err)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "damaged" {
		t.Errorf("it was replaced: %v", err)
	}
}
