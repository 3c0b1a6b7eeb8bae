package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

// Files beside those of a release that say whose it is.
const (
	sumsFile   = "SHA256SUMS"
	sealFile   = "SHA256SUMS.minisig"
	publicFile = "porchlight.pub"
	noticeFile = "update.json"
)

// seal signs the checksums of a release as minisign does, and writes the public key and
// the update notice beside them. The comment that is signed too says which version it is, so that
// nobody can offer an older one as a newer.
func seal(keyPath, version, dir string) error {
	key, err := readKey(keyPath)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	file, err := notice(key, version, noticeDays)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		sealFile:   minisign(key, sums, "porchlight "+version),
		publicFile: minisignPublic(key.Public().(ed25519.PublicKey)),
		noticeFile: append(file, '\n'),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "signed by the key with the fingerprint", fingerprint(key))
	return nil
}

// fingerprint is what install.sh shows of a key, for people to compare.
func fingerprint(key ed25519.PrivateKey) string {
	return fmt.Sprintf("%x", sha256.Sum256(key.Public().(ed25519.PublicKey)))
}

// algorithm is minisign's name for Ed25519 over the bytes themselves, which openssl can
// check, too; the other one is over their BLAKE2b.
const algorithm = "Ed"

// keyID tells keys apart; minisign's own are random, this one follows from the key.
func keyID(public ed25519.PublicKey) []byte {
	sum := sha256.Sum256(public)
	return sum[:8]
}

// minisign is the file with the signature of a message (minisign(1)).
func minisign(key ed25519.PrivateKey, message []byte, comment string) []byte {
	signature := ed25519.Sign(key, message)
	global := ed25519.Sign(key, append(signature[:len(signature):len(signature)], comment...))
	return fmt.Appendf(nil, "untrusted comment: signature of %s\n%s\ntrusted comment: %s\n%s\n", sumsFile,
		encoded([]byte(algorithm), keyID(key.Public().(ed25519.PublicKey)), signature), comment, encoded(global))
}

func minisignPublic(public ed25519.PublicKey) []byte {
	return fmt.Appendf(nil, "untrusted comment: minisign public key of Porchlight's releases\n%s\n", encoded([]byte(algorithm), keyID(public), public))
}

func encoded(parts ...[]byte) string {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return base64.StdEncoding.EncodeToString(all)
}
