package ownersecret

import (
	"strings"
	"unicode"

	"porchlight/internal/words"
)

// maxCredential is the longest device credential, in bytes.
const maxCredential = 512

// item says which secret a store keeps: the owner secret of a data directory when empty, what
// porchlight reach signed in with at the app behind signInAt, else the device credential of
// the data directory's connection with this id.
type item string

// signInAt begins the item of a sign-in; no connection has such an id.
const signInAt = "reach:"

// ReachFile is the store, in a file, for what a person signed in with at an app, which has
// nothing to do with any data directory; see File.
func ReachFile(host string) FileStore { return FileStore{item: item(signInAt + host)} }

// ReachKeychain is the same in the keychain; see Keychain.
func ReachKeychain(host string) KeychainStore {
	return KeychainStore{timeout: answerIn, item: item(signInAt + host)}
}

// app is where a sign-in is for; empty for any other item.
func (i item) app() string {
	host, _ := strings.CutPrefix(string(i), signInAt)
	if host == string(i) {
		return ""
	}
	return host
}

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
	if i.app() != "" {
		return words.Of("the sign-in")
	}
	return words.Of("the device credential")
}

// dir is the directory of the item's file.
func (i item) dir() string {
	if i == "" {
		return "owner"
	}
	if i.app() != "" {
		return "reach"
	}
	return "device"
}

// entry names the item among those of other data directories.
func (i item) entry(dataDir string) string {
	if i == "" {
		return dataDir
	}
	if i.app() != "" {
		return hashed(i.app())
	}
	return dataDir + "-" + string(i)
}

// maxNamed is the longest path, in bytes, that stands in the name of an entry in
// the keychain; macOS takes the whole entry in one line.
const maxNamed = 300

// readable names the item's entry for an owner who looks through their keychain.
// A path that has no business in a line is named as in a file.
func (i item) readable(hash, abs string) string {
	if i.app() != "" {
		return "sign-in at " + i.app()
	}
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
