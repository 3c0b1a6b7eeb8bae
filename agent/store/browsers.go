package store

import "slices"

var browsersKey = []byte("browsers")

// maxBrowsers bounds the owner's browsers that are remembered; of one more the first that
// was noted is forgotten.
const maxBrowsers = 200

// NoteBrowser keeps that a browser of the owner's signed in, by the control plane's id of
// it, and says whether it had not before. One caller at a time.
func (s *Store) NoteBrowser(id string) (isNew bool, err error) {
	var known []string
	if _, err := s.load(metaBucket, browsersKey, "the record of the owner's browsers", &known); err != nil || slices.Contains(known, id) {
		return false, err
	}
	known = append(known, id)
	return true, s.save(metaBucket, browsersKey, known[max(0, len(known)-maxBrowsers):])
}
