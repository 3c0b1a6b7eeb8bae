package peers

import (
	"encoding/json"
	"fmt"

	"porchlight/control/kv"
)

// Living is a node of a store, as it says of itself.
type Living struct {
	Node    string
	Version string // of its program
	Before  bool   // that is of before version 0.1.0
	Address string // where agents reach it
	// Draining says that it is about to end.
	Draining bool
}

// LivingNodes reads which nodes live, by name. Only those with peers say so.
func LivingNodes(tx kv.Tx) ([]Living, error) {
	rows, err := livingNodes(tx)
	if err != nil {
		return nil, err
	}
	var all []Living
	for _, n := range rows {
		all = append(all, Living{Node: n.Node, Version: n.Version, Before: n.Protocol < nodeProtocol, Address: n.Relay.Address, Draining: n.Draining})
	}
	return all, nil
}

// livingNodes are the nodes whose lease runs, by name.
func livingNodes(tx kv.Tx) (nodes []nodeRow, err error) {
	for after := ""; ; {
		items, err := tx.Scan(keyNodes, after, nodesAtOnce)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			var row nodeRow
			if err := json.Unmarshal(item.Value, &row); err != nil {
				return nil, fmt.Errorf("the row %s: %w", item.Key, err)
			}
			nodes, after = append(nodes, row), item.Key
		}
		if len(items) < nodesAtOnce {
			return nodes, nil
		}
	}
}
