package host

import (
	"path/filepath"
	"slices"

	"porchlight/agent/ownersecret"
)

// Secrets is wherever a secret of dataDir may be kept: that of its owner, and the credentials
// of its connections. at is the control plane that it is connected to, or empty. The data
// directory of a control plane is refused.
func Secrets(dataDir string) (kept []ownersecret.Store, at string, err error) {
	if err := notAServers(dataDir); err != nil {
		return nil, "", err
	}
	kept = []ownersecret.Store{ownersecret.File(dataDir), ownersecret.Keychain(dataDir)}
	file, err := openConnection(filepath.Join(dataDir, connectionName))
	if err != nil {
		return nil, "", err
	}
	all := file.get()
	if all.Current != nil {
		at = all.Current.AuthURL
	}
	for _, c := range slices.Concat(list(all.Current), list(all.Last), all.Ending) {
		if c.Store == storeKeychain {
			kept = append(kept, ownersecret.DeviceKeychain(dataDir, c.ID))
		} else {
			kept = append(kept, ownersecret.DeviceFile(dataDir, c.ID))
		}
	}
	return kept, at, nil
}
