package host

import (
	"fmt"
	"os"
	"path/filepath"
)

// serverFile is the store of a control plane, in the server's own data directory.
const serverFile = "control.db"

// notAServers refuses the data directory of a control plane: an agent there would
// put its own certificate authority in the place of the one computers trust.
func notAServers(dataDir string) error {
	if _, err := os.Stat(filepath.Join(dataDir, serverFile)); err == nil {
		return fmt.Errorf("%s is the data directory of a control plane, and an agent needs one of its own. Choose another one (--data)", dataDir)
	}
	return nil
}
