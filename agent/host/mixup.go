package host

import (
	"os"
	"path/filepath"

	"porchlight/agent/store"
	"porchlight/internal/words"
)

// serverFile is the store of a control plane, in the server's own data directory.
const serverFile = "control.db"

// mayOpen refuses what is to stay as it is: the data directory of a control plane,
// where an agent would put its own certificate authority in the place of the one
// computers trust, and one that a newer version wrote.
func mayOpen(dataDir string) error {
	if err := notAServers(dataDir); err != nil {
		return err
	}
	return store.Check(dataDir)
}

func notAServers(dataDir string) error {
	if _, err := os.Stat(filepath.Join(dataDir, serverFile)); err == nil {
		return words.Errorf("%s is the data directory of a control plane, and an agent needs one of its own. Choose another one (--data)", dataDir)
	}
	return nil
}
