package store

import "time"

var silenceKey = []byte("silence")

// Silence is how long the control plane had been silent when the agent last
// looked. With it a restart goes on counting where the last run stopped, whatever
// happened to the clock in between.
type Silence struct {
	// Contact is the last word of the control plane that the count began at. A
	// record of another contact is void.
	Contact time.Time     `json:"contact"`
	Seen    time.Time     `json:"seen"`  // when the agent last looked
	Spent   time.Duration `json:"spent"` // the silence up to Seen, nanoseconds
}

// SaveSilence replaces the record.
func (s *Store) SaveSilence(sil Silence) error {
	sil.Contact, sil.Seen = sil.Contact.UTC(), sil.Seen.UTC()
	return s.save(snapshotBucket, silenceKey, sil)
}

// Silence returns the record; ok is false when there is none.
func (s *Store) Silence() (sil Silence, ok bool, err error) {
	ok, err = s.load(snapshotBucket, silenceKey, "the record of the control plane's silence", &sil)
	return sil, ok, err
}
