package store

import "slices"

var browsersKey, passkeysKey = []byte("browsers"), []byte("passkeys")

// maxBrowsers bounds the owner's browsers, and their passkeys, that are remembered; of one
// more the first that was noted is forgotten.
const maxBrowsers = 200

// NoteBrowser keeps that a browser of the owner's signed in, by the control plane's id of
// it, and says whether it had not before. One caller at a time.
func (s *Store) NoteBrowser(id string) (isNew bool, err error) {
	return s.note(browsersKey, "the record of the owner's browsers", id)
}

// NotePasskey is NoteBrowser for a passkey that was added to the owner's account.
func (s *Store) NotePasskey(id string) (isNew bool, err error) {
	return s.note(passkeysKey, "the record of the owner's passkeys", id)
}

func (s *Store) note(key []byte, what, id string) (isNew bool, err error) {
	var known []string
	if _, err := s.load(metaBucket, key, what, &known); err != nil || slices.Contains(known, id) {
		return false, err
	}
	known = append(known, id)
	return true, s.save(metaBucket, key, known[max(0, len(known)-maxBrowsers):])
}
