//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"porchlight/test/internet"
)

// insideParts are those that want hosts on the internet.
var insideParts = []part{
	{"cimd", attackCIMD, cimdFloor, cimdQuickFloor},
	{"assertions", attackAssertions, assertionsTried, assertionsTried},
}

// inInternet carries out a part in an internet of its own.
func inInternet(ctx context.Context, s *stage, t *tally) error {
	err := internet.Again(ctx, []string{roleVariable + "=internet"}, "-part", t.name, "-bin", s.bin, fmt.Sprintf("-quick=%t", s.quick))
	if errors.Is(err, internet.ErrMayNot) {
		t.skip(err.Error())
		return nil
	}
	t.try(t.floor) // or fewer, which is an error there
	if err != nil {
		t.got("%v", err)
	}
	return ctx.Err()
}
