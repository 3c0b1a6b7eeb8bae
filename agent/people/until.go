package people

import (
	"time"

	"porchlight/agent/agentapi"
)

// Shares that end. The control plane keeps the ends, and access ends them; this is how
// the owner gives one.

// canEnd refuses an end that would not be kept: one that is no time, and any where the
// control plane knows of none, which would let the person in for ever.
func (p *People) canEnd(until string) error {
	if until == "" || until == agentapi.UntilNever {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, until); err != nil {
		return agentapi.Errorf(agentapi.CodeInvalid, "The end of a share is written like 2030-01-31T18:00:00Z, or it is \"never\".")
	}
	snapshot := p.cfg.Access.Snapshot()
	if err := p.connected(); err != nil || snapshot.Version == "" || snapshot.Ends {
		return err
	}
	return agentapi.Errorf(agentapi.CodeInvalid,
		"The server that this computer is connected to is too old to end a share by itself. Have it updated, or share without an end and take access away by hand.")
}
