package words

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// locales are the one that variables name, as in a terminal, and the one chosen in the
// settings of the system: programs that no terminal started have no such variables.
func locales() []string { return append(environment(), chosen()...) }

var chosen = sync.OnceValue(func() []string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/usr/bin/defaults", "read", "-g", "AppleLocale").Output()
	if err != nil {
		return nil
	}
	return []string{strings.TrimSpace(string(out))}
})
