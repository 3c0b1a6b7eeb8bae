package serve

import (
	"path/filepath"

	"porchlight/control/audit"
	"porchlight/control/kv"
)

// auditKey is the file in the data directory with the key that signs heads.
const auditKey = "audit.key"

// openAudit makes the log of this node, whose chain is named as the node is.
func (n *Node) openAudit() error {
	cfg := audit.Config{Store: n.store, Node: n.cfg.Node, Keep: n.cfg.AuditKeep, Now: kv.Clock(n.store), Log: n.cfg.Log.With("part", "audit")}
	var err error
	if n.cfg.DataDir != "" {
		if cfg.Key, err = audit.Key(filepath.Join(n.cfg.DataDir, auditKey)); err != nil {
			return err
		}
	}
	if n.cfg.AuditHead != "" {
		if cfg.Head, err = audit.Sink(n.cfg.AuditHead); err != nil {
			return err
		}
	}
	n.audit = audit.New(cfg)
	return nil
}
