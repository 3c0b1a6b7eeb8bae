package peers

import "porchlight/control/kv"

// Living is a node of a store, as it says of itself.
type Living struct {
	Node          string `json:"node"`
	Version       string `json:"version,omitempty"`  // of its program; none: it is of before nodes told it
	Before        bool   `json:"before,omitempty"`   // that is of before version 0.1.0
	TunnelAddress string `json:"tunnelAddress"`      // where agents reach it
	Draining      bool   `json:"draining,omitempty"` // it is about to end
}

// LivingNodes reads which nodes live, by name. Only those with peers say so.
func LivingNodes(tx kv.Tx) ([]Living, error) {
	rows, err := livingNodes(tx)
	if err != nil {
		return nil, err
	}
	all := []Living{}
	for _, n := range rows {
		all = append(all, Living{Node: n.Node, Version: n.Version, Before: n.Protocol < nodeProtocol, TunnelAddress: n.Relay.Address, Draining: n.Draining})
	}
	return all, nil
}

// livingNodes are the nodes whose lease runs, by name.
func livingNodes(tx kv.Tx) (nodes []nodeRow, err error) {
	err = kv.EachJSON(tx, keyNodes, func(_ string, row nodeRow) error {
		nodes = append(nodes, row)
		return nil
	})
	return nodes, err
}
