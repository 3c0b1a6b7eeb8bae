package control

import (
	"crypto/hkdf"
	"crypto/sha256"

	"porchlight/control/controlapi"
)

// relaysFor are the relays the agent of a computer is told of.
func (s *Agents) relaysFor(computerID string) []controlapi.Relay {
	if s.cfg.RelaysFor != nil {
		if relays := s.cfg.RelaysFor(computerID); len(relays) > 0 {
			return relays
		}
	}
	if s.cfg.Relays == nil {
		return []controlapi.Relay{}
	}
	return s.cfg.Relays
}

// RelaysChanged has every held sync look again, because Config.RelaysFor may
// answer something else by now.
func (s *Agents) RelaysChanged() {
	for _, id := range s.watchers.watched() {
		s.watchers.wake(id)
	}
}

// PeerSecret is 32 bytes that the nodes on one store share, by which their
// relays know each other.
func (s *Keys) PeerSecret() ([]byte, error) {
	return hkdf.Key(sha256.New, s.keyRing.Load().sealing, nil, "porchlight peers 1", 32)
}
