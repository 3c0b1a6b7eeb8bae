package certs

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"

	"github.com/caddyserver/certmagic"
)

// maxAccount bounds what is read of an account's file, in bytes.
const maxAccount = 64 << 10

// AccountURL is the address of the account that an ACME with this Dir and
// Directory has at its authority, as a CAA record names it (accounturi, RFC
// 8657); empty before the first certificate was ordered.
func AccountURL(dir, directory string) string {
	authority, err := url.Parse(cmp.Or(directory, certmagic.LetsEncryptProductionCA))
	if err != nil {
		return ""
	}
	files, _ := filepath.Glob(filepath.Join(dir, "acme", "*", "users", "*", "*.json")) // fails on a bad pattern only
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Size() > maxAccount {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var account struct {
			Location string `json:"location"`
		}
		if json.Unmarshal(raw, &account) != nil {
			continue
		}
		if location, err := url.Parse(account.Location); err == nil && location.Scheme == "https" && location.Host == authority.Host {
			return location.String()
		}
	}
	return ""
}
