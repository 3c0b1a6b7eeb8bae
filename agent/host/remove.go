package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"porchlight/agent/ownersecret"
	"porchlight/agent/store"
)

// Secret may be kept of a data directory. Sure is true where it is known to be there.
type Secret struct {
	ownersecret.Store
	Sure bool
}

// Secrets is wherever a secret of dataDir may be kept: that of its owner, and the credentials
// of its connections. where is the control plane that it is connected to, or empty. The data
// directory of a control plane is refused.
func Secrets(dataDir string) (kept []Secret, where string, err error) {
	if err := notAServers(dataDir); err != nil {
		return nil, "", err
	}
	kept = []Secret{{Store: ownersecret.File(dataDir)}, {Store: ownersecret.Keychain(dataDir)}}
	file, err := openConnection(filepath.Join(dataDir, connectionName))
	if err != nil {
		return nil, "", err
	}
	all := file.get()
	if all.Current != nil {
		where = all.Current.AuthURL
	}
	for i, c := range slices.Concat(list(all.Last), list(all.Current), all.Ending) {
		sure := i > 0 || all.Last == nil // that of the last one was forgotten as it ended
		kept = append(kept, Secret{credentialsOf(dataDir, c), sure})
	}
	return kept, where, nil
}

// Leave tells the control planes that dataDir is connected to, or still has to take leave of, that
// its computer goes. It returns the sign-in hosts of those that could not be told, and why.
func Leave(ctx context.Context, dataDir string) (untold map[string]error, err error) {
	file, err := openConnection(filepath.Join(dataDir, connectionName))
	if err != nil {
		return nil, err
	}
	all := file.get()
	untold = map[string]error{}
	for i, c := range slices.Concat(all.Ending, list(all.Current)) {
		trying, cancel := context.WithTimeout(ctx, askIn)
		err := endCredential(trying, c, credentialsOf(dataDir, c))
		cancel()
		if i < len(all.Ending) && errors.Is(err, ownersecret.ErrNotFound) {
			continue // it was told before
		}
		if err != nil {
			untold[c.AuthURL] = err
		}
	}
	return untold, nil
}

var (
	// made is what Porchlight puts into a data directory: agent, menu bar and local control
	// plane, of every version.
	made = regexp.MustCompile(`^(agent\.db(\.format-\d+)?|agent\.json|connection\.json|https-port|desktop\.(json|lock|sock)|acme|connected-ca|ca|control|socket|\.porchlight-\d+|\.DS_Store)$`)
	// besides is what is beside it where the person's configuration is the same directory, as
	// on a Mac: secrets of other data directories, too.
	besides = regexp.MustCompile(`^(owner|device|reach)$`)
)

// Contents parts what is in dataDir: what Porchlight put there, and what somebody else did.
func Contents(dataDir string) (ours, others []string, err error) {
	all, err := os.ReadDir(dataDir)
	config, _ := os.UserConfigDir()
	one, _ := os.Stat(filepath.Join(config, "porchlight"))
	other, _ := os.Stat(dataDir)
	for _, file := range all {
		switch name := file.Name(); {
		case made.MatchString(name):
			ours = append(ours, name)
		case !besides.MatchString(name) || !os.SameFile(one, other):
			others = append(others, name)
		}
	}
	return ours, others, err
}

// Remove removes what Porchlight put into dataDir, the database last, and then dataDir where
// nothing else is in it.
func Remove(dataDir string) error {
	ours, others, err := Contents(dataDir)
	if err != nil {
		return err
	}
	for _, name := range ours {
		if name != store.FileName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dataDir, name)))
		}
	}
	if err == nil {
		err = os.Remove(filepath.Join(dataDir, store.FileName))
	}
	if err != nil {
		return err
	}
	left, err := os.ReadDir(dataDir)
	if err == nil && (len(left) == 0 || len(others) > 0) {
		err = os.Remove(dataDir)
	}
	return err
}
