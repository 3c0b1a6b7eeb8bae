package store

import "time"

var countKey = []byte("count")

// Count is how much time has passed for approvals that end, which no clock that is set
// back undoes: the engine counts it, and a restart goes on from here.
type Count struct {
	Passed time.Duration `json:"passed"`
	At     time.Time     `json:"at"`    // this computer's clock then
	Since  time.Duration `json:"since"` // and how long it had run
}

// SaveCount replaces the record.
func (s *Store) SaveCount(c Count) error {
	c.At = c.At.UTC()
	return s.save(metaBucket, countKey, c)
}

// Count returns the record, zero where there is none.
func (s *Store) Count() (c Count, err error) {
	_, err = s.load(metaBucket, countKey, "the record of how long approvals have lasted", &c)
	return c, err
}
