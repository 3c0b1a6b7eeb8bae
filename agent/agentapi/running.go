package agentapi

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"porchlight/internal/durable"
	"porchlight/internal/words"
)

// runningFile is the file's name inside the data directory.
const runningFile = "agent.json"

// maxRunning bounds what is read of it, in bytes.
const maxRunning = 16 << 10

// ReadRunning tells where the agent of a data directory listens. The error wraps
// ErrNotRunning when no agent left word; an agent that was killed leaves its
// word behind, and calling it then fails with ErrNotRunning. An agent of another
// protocol is refused.
func ReadRunning(dataDir string) (Running, error) {
	path := filepath.Join(dataDir, runningFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Running{}, words.Errorf("%w: no agent serves %s", ErrNotRunning, dataDir)
	}
	if err != nil {
		return Running{}, words.Errorf("cannot tell where the agent listens: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRunning))
	if err != nil {
		return Running{}, words.Errorf("cannot tell where the agent listens: %w", err)
	}
	var r Running
	if err := json.Unmarshal(raw, &r); err != nil || r.API == "" {
		return Running{}, words.Errorf("%s is damaged, so where the agent listens is not known; start the agent anew", path)
	}
	if r.Protocol != Protocol {
		return Running{}, words.Errorf("the agent of %s speaks protocol %d and this program protocol %d; update the older of the two", dataDir, r.Protocol, Protocol)
	}
	return r, nil
}

// WriteRunning replaces DATA/agent.json (0600) at once: a reader finds the old
// file or the new one.
func WriteRunning(dataDir string, r Running) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return words.Errorf("encode where the agent listens: %w", err)
	}
	if err := durable.Replace(filepath.Join(dataDir, runningFile), append(raw, '\n')); err != nil {
		return words.Errorf("cannot write down where the agent listens: %w", err)
	}
	return nil
}

// RemoveRunning takes DATA/agent.json away; it may be gone already.
func RemoveRunning(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, runningFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return words.Errorf("cannot take back where the agent listened: %w", err)
	}
	return nil
}
