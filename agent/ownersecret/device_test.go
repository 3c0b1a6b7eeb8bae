package ownersecret

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestDeviceCredentialsHaveEntriesOfTheirOwn(t *testing.T) {
	ctx := context.Background()
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	data := filepath.Join(t.TempDir(), "data")

	owner := programs.Got(Ensure(ctx, File(data)))(t)
	one, two := DeviceFile(data, "one"), DeviceFile(data, "two")
	if _, err := one.Get(ctx); !errors.Is(err, ErrNotFound) {
		t.Fatalf("no credential was kept, and Get says %v", err)
	}
	for store, credential := range map[FileStore]string{one: "first-credential", two: "second-credential"} {
		programs.Must(t, store.Set(ctx, credential))
	}
	programs.Must(t, two.Delete(ctx))
	if got, err := one.Get(ctx); err != nil || got != "first-credential" {
		t.Errorf("the first credential is %q, %v", got, err)
	}
	if got, err := File(data).Get(ctx); err != nil || got != owner {
		t.Errorf("the owner secret is %q, %v", got, err)
	}
	path, err := one.Path()
	if err != nil || !strings.HasPrefix(path, config) {
		t.Fatalf("the credential is at %s, %v", path, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file has mode %v, %v", info.Mode(), err)
	}
}

func TestDeviceCredentialMustLookLikeOne(t *testing.T) {
	ctx := context.Background()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := DeviceFile(filepath.Join(t.TempDir(), "data"), "one")
	for _, bad := range []string{"", "two words", "line\nbreak", "é", strings.Repeat("x", maxCredential+1)} {
		if err := s.Set(ctx, bad); !errors.Is(err, errMalformedCredential) {
			t.Errorf("Set(%.20q) says %v", bad, err)
		}
	}
}
