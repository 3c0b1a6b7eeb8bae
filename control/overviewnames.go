package control

import "context"

// Named is what an id is of.
type Named struct {
	Kind SuspensionKind // account, computer or client
	Name string         // mail address, short name or name of the client
}

// Names are what some ids are of, as far as they are there. At most MaxPage of them are
// looked for.
func (s *Overview) Names(ctx context.Context, ids []string) (map[string]Named, error) {
	ids = ids[:min(len(ids), MaxPage)]
	return viewed(ctx, s.core, func(tx *txn) (map[string]Named, error) {
		out := map[string]Named{}
		for i, value := range tx.getAll(keysOf(ids, keyAccount)...) {
			if value != nil {
				a, _ := parsed[Account](tx, value)
				out[ids[i]] = Named{SuspendAccount, a.Email}
			}
		}
		for i, value := range tx.getAll(keysOf(ids, keyComputer)...) {
			if value != nil {
				c, _ := parsed[computer](tx, value)
				out[ids[i]] = Named{SuspendComputer, c.Name}
			}
		}
		for i, value := range tx.getAll(keysOf(ids, keyClient)...) {
			if value != nil {
				c, _ := parsed[client](tx, value)
				out[ids[i]] = Named{SuspendClient, c.Name}
			}
		}
		return out, nil
	})
}
