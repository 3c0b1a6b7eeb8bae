//go:build !linux

package doctor

import "context"

// MenuBar has nothing to say where every desktop has a place for icons.
func MenuBar(context.Context) []Finding { return nil }
