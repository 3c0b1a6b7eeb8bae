package store

import "time"

// Keys of snapshotBucket.
var (
	controlTimeKey = []byte("time")
	endedKey       = []byte("ended")
)

// Share is one app of one person that ends.
type Share struct {
	AccountID string    `json:"account"`
	AppID     string    `json:"app"`
	Until     time.Time `json:"until"` // UTC
}

// SaveControlTime keeps what the control plane's clock was last known to show.
func (s *Store) SaveControlTime(at time.Time) error {
	return s.saveTime(snapshotBucket, controlTimeKey, at)
}

// ControlTime is what SaveControlTime kept, zero where there is nothing.
func (s *Store) ControlTime() (time.Time, error) {
	at, _, err := s.loadTime(snapshotBucket, controlTimeKey, "the record of the control plane's clock")
	return at, err
}

// SaveEnded keeps of which shares the owner was told that they ended.
func (s *Store) SaveEnded(shares []Share) error { return s.save(snapshotBucket, endedKey, shares) }

// Ended is what SaveEnded kept.
func (s *Store) Ended() (shares []Share, err error) {
	_, err = s.load(snapshotBucket, endedKey, "the record of which shares have ended", &shares)
	return shares, err
}
