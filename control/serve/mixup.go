package serve

import (
	"fmt"
	"os"
	"path/filepath"
)

// agentFile is the store of an agent, in the agent's own data directory.
const agentFile = "agent.db"

// notAnAgents refuses the data directory of an agent. A server there would put
// its own certificate authority in the place of the one that the owner's
// browsers trust.
func notAnAgents(dataDir string) error {
	if dataDir == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dataDir, agentFile)); err == nil {
		return fmt.Errorf("%s is the data directory of a Porchlight agent, and a server needs one of its own. Choose another one (--data)", dataDir)
	}
	return nil
}
