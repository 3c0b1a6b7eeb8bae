package controlapi

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/url"
)

// UpdateNotice is an address that says which version is the newest, and the key that
// signs there.
type UpdateNotice struct {
	Address string `json:"address"` // https URL of at most maxUpdateAddress bytes
	Key     string `json:"key"`     // Ed25519 public key, in base64
}

// maxUpdateAddress bounds UpdateNotice.Address, in bytes.
const maxUpdateAddress = 500

// Check refuses an address and a key that cannot be asked, with a sentence.
func (n UpdateNotice) Check() error {
	if n.Address == "" || n.Key == "" {
		return errors.New("The address of the update notice and the key that signs there are named together.")
	}
	u, err := url.Parse(n.Address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || len(n.Address) > maxUpdateAddress {
		return errors.New("The address of the update notice begins with https:// and holds no user name.")
	}
	_, err = n.PublicKey()
	return err
}

// PublicKey is Key, read.
func (n UpdateNotice) PublicKey() (ed25519.PublicKey, error) {
	raw, err := base64.StdEncoding.DecodeString(n.Key)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("A key is 32 bytes in base64, 44 characters.")
	}
	return raw, nil
}
