package ownersecret

import (
	"strings"
	"unicode"

	"porchlight/internal/words"
)

// maxCredential is the longest device credential, in bytes.
const maxCredential = 512

// item says which secret of a data directory a store keeps: the owner secret
// when empty, else the device credential of the connection with this id.
type item string

// DeviceFile is the store, in a file, for the device credential of one
// connection of dataDir; see File.
func DeviceFile(dataDir, connection string) FileStore {
	return FileStore{dataDir: dataDir, item: item(connection)}
}

// DeviceKeychain is the store, in the keychain, for the device credential of one
// connection of dataDir; see Keychain.
func DeviceKeychain(dataDir, connection string) KeychainStore {
	return KeychainStore{dataDir: dataDir, timeout: answerIn, item: item(connection)}
}

// name is for sentences.
func (i item) name() words.Sentence {
	if i == "" {
		return words.Of("the owner secret")
	}
	return words.Of("the device credential")
}

// dir is the directory of the item's file.
func (i item) dir() string {
	if i == "" {
		return "owner"
	}
	return "device"
}

// entry names the item among those of other data directories.
func (i item) entry(dataDir string) string {
	if i == "" {
		return dataDir
	}
	return dataDir + "-" + string(i)
}

// maxNamed is the longest path, in bytes, that stands in the name of an entry in
// the keychain; macOS takes the whole entry in one line.
const maxNamed = 300

// readable names the item's entry for an owner who looks through their keychain.
// A path that has no business in a line is named as in a file.
func (i item) readable(hash, abs string) string {
	if len(abs) > maxNamed || strings.ContainsFunc(abs, func(r rune) bool { return !unicode.IsPrint(r) }) {
		abs = hash
	}
	if i == "" {
		return "owner of " + abs
	}
	return "computer " + string(i) + " of " + abs
}

// check refuses what cannot be the item.
func (i item) check(secret string) error {
	switch {
	case i == "":
		return check(secret)
	case secret == "" || len(secret) > maxCredential:
		return errMalformedCredential
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errMalformedCredential
	}
	return nil
}
