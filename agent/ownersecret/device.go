package ownersecret

import "strings"

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

// String is for sentences.
func (i item) String() string {
	if i == "" {
		return "the owner secret"
	}
	return "the device credential"
}

// place is the directory of the item's file.
func (i item) place() string {
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
