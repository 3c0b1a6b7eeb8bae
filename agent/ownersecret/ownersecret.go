// Package ownersecret keeps the owner secret: 256 random bits that whoever acts
// as this computer's owner shows on the owner tier's socket (docs/interface.md,
// Owner tier).
//
// The secret is made once (New), kept in the keychain of the person who is
// logged in (Keychain), or where there is none, on a server, in a file outside
// the data directory (File). The agent keeps only its hash (Hash) and compares
// in constant time (Equal). A copied data directory therefore holds no secret
// that opens the owner tier.
//
// The same places keep the device credentials with which this computer speaks
// for itself at a control plane, under entries of their own (DeviceFile,
// DeviceKeychain), and what people sign in with by porchlight reach (ReachFile,
// ReachKeychain).
package ownersecret

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"path/filepath"

	"porchlight/internal/words"
)

// size of a secret, in bytes before its encoding.
const size = 32

var (
	// ErrNotFound is returned by Get and Delete when no secret is kept for the
	// data directory. It is the only error that says so.
	ErrNotFound = words.Errorf("no owner secret is kept for this data directory")
	// ErrLocked is wrapped when the keychain waits for its password, or did
	// not answer in time. Trying again later may work.
	ErrLocked = words.Errorf("the keychain is locked")
	// ErrUnavailable is wrapped when there is no keychain to be had here.
	ErrUnavailable = words.Errorf("there is no keychain here")
	// ErrExposed is wrapped when the secret's file, or its directory, may be
	// reached by others.
	ErrExposed = words.Errorf("the owner secret can be reached by others")
)

var (
	errMalformed           = words.Errorf("what is kept as the owner secret is not one; remove it and start again")
	errMalformedCredential = words.Errorf("what is kept as the device credential is not one; disconnect this computer and connect it again")
)

// Store keeps the owner secret of one data directory. It is safe for concurrent
// use, and no call outlives its context.
type Store interface {
	Get(ctx context.Context) (string, error)
	// Set keeps secret, replacing an earlier one. An owner secret must come from
	// New.
	Set(ctx context.Context, secret string) error
	Delete(ctx context.Context) error
	// Kind is "keychain" or "file".
	Kind() string
}

// New makes a secret: 256 random bits, base64url without padding.
func New() string {
	b := make([]byte, size)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Hash is what the agent keeps of a secret (SHA-256; a slow hash is for secrets
// that can be guessed).
func Hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Equal says in constant time whether hash is the hash of secret. No secret has
// an empty hash.
func Equal(hash []byte, secret string) bool {
	return subtle.ConstantTimeCompare(hash, Hash(secret)) == 1
}

// check refuses what New did not make, before it is kept and after it is read.
func check(secret string) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	// The decoder skips line breaks, so the length counts as well.
	if err != nil || len(b) != size || len(secret) != base64.RawURLEncoding.EncodedLen(size) {
		return errMalformed
	}
	return nil
}

// entry names the data directory among others: a hash of its absolute path,
// which goes into file names and keychain entries alike.
func entry(dataDir string) (name, abs string, err error) {
	abs, err = filepath.Abs(dataDir)
	if err != nil {
		return "", "", err
	}
	return hashed(abs), abs, nil
}

func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
