package host

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"porchlight/internal/durable"
	"porchlight/internal/words"
)

const (
	// connectionName is a file inside the data directory (0600). It holds no
	// secret: device credentials are in the keychain, or in a file elsewhere.
	connectionName = "connection.json"

	// maxConnection bounds what is read of it, in bytes.
	maxConnection = 1 << 20

	// maxEnding is how many control planes may wait to be told that this
	// computer is disconnected from them; past it the oldest is forgotten.
	maxEnding = 16
)

// Where a device credential is kept, as ownersecret.Store's Kind says it.
const (
	storeFile     = "file"
	storeKeychain = "keychain"
)

// connections is what the file holds.
type connections struct {
	// Current is the connection in use; nil while this computer is on its own.
	Current *connection `json:"current,omitempty"`
	// Last is the one that was ended last by the owner, to be suggested; it is in no use.
	Last *connection `json:"last,omitempty"`
	// Ending holds connections that are over, or never came to be, and whose
	// credentials are still to be ended at their control planes.
	Ending []connection `json:"leaving,omitempty"`
	// ForgetLocal says that local people are to be forgotten before this
	// computer is on its own again.
	ForgetLocal bool `json:"forgetLocal,omitempty"`
}

// connection to a control plane.
type connection struct {
	ID            string    `json:"id"` // random; names the credential's entry
	AuthURL       string    `json:"authUrl"`
	ComputerID    string    `json:"computerId"`
	Name          string    `json:"name"` // short name
	Host          string    `json:"host"` // root host
	Store         string    `json:"store"`
	CA            string    `json:"ca,omitempty"` // PEM
	ACMEDirectory string    `json:"acmeDirectory,omitempty"`
	At            time.Time `json:"at"` // connected, or disconnected
}

func newConnectionID() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// connectionFile is safe for concurrent use.
type connectionFile struct {
	path string

	mu    sync.Mutex // protects value, and is held while the file is written
	value connections
}

// openConnection reads the file. One that is damaged is an error: to take it for
// none would put this computer on its own behind its owner's back.
func openConnection(path string) (*connectionFile, error) {
	f := &connectionFile{path: path}
	raw, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, words.Errorf("cannot tell where this computer is connected: %w", err)
	}
	if f.value, err = parseConnections(raw); err != nil {
		return nil, words.Errorf("%s is damaged (%w). Move it away to be on this computer alone, and connect anew", path, err)
	}
	return f, nil
}

func parseConnections(raw []byte) (connections, error) {
	var c connections
	if err := json.Unmarshal(raw, &c); err != nil {
		return connections{}, err
	}
	for _, one := range slices.Concat(c.Ending, list(c.Current), list(c.Last)) {
		if _, err := hex.DecodeString(one.ID); err != nil || one.ID == "" || len(one.ID) > 64 {
			return connections{}, words.Errorf("a connection has no id")
		}
		if origin, err := originOf(one.AuthURL); err != nil || origin != one.AuthURL {
			return connections{}, words.Errorf("a connection has no control plane")
		}
		if one.Store != storeFile && one.Store != storeKeychain {
			return connections{}, words.Errorf("a connection does not say where its credential is")
		}
	}
	if c.Current != nil && (c.Current.ComputerID == "" || c.Current.Host == "") {
		return connections{}, words.Errorf("the connection does not say who this computer is")
	}
	return c, nil
}

func list(c *connection) []connection {
	if c == nil {
		return nil
	}
	return []connection{*c}
}

// get is a copy.
func (f *connectionFile) get() connections {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value.clone()
}

func (c connections) clone() connections {
	if c.Current != nil {
		c.Current = new(*c.Current)
	}
	if c.Last != nil {
		c.Last = new(*c.Last)
	}
	c.Ending = slices.Clone(c.Ending)
	return c
}

// update changes the file at once: after a crash it is as before or as after,
// and after update has returned it is as after.
func (f *connectionFile) update(change func(*connections)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.value.clone()
	change(&next)
	if len(next.Ending) > maxEnding {
		next.Ending = next.Ending[len(next.Ending)-maxEnding:]
	}
	raw, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return words.Errorf("encode the connection: %w", err)
	}
	if err := durable.Replace(f.path, append(raw, '\n')); err != nil {
		return words.Errorf("cannot write down where this computer is connected: %w", err)
	}
	f.value = next
	return nil
}

// end moves a connection to those that are over.
func (c *connections) end(one connection, now time.Time) {
	if c.Current != nil && c.Current.ID == one.ID {
		c.Current = nil
	}
	one.At = now.UTC()
	c.forget(one.ID)
	c.Ending = append(c.Ending, one)
}

// forget drops a connection that is over.
func (c *connections) forget(id string) {
	c.Ending = slices.DeleteFunc(c.Ending, func(l connection) bool { return l.ID == id })
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConnection+1))
	if err == nil && len(raw) > maxConnection {
		err = words.Errorf("it is too long")
	}
	return bytes.TrimSpace(raw), err
}
