// Package certstore keeps what belongs to ACME (the account, certificates, their
// keys) in the control plane's store, for all nodes of it: it is certmagic's storage
// over control/kv. Every value is sealed by a key that only the nodes have (Keys), so
// that neither the database nor a backup of it gives away a private key. Locks are
// leases in the same store, so that one node orders while the others wait.
//
// Each node has a sealed copy in files of its own, which serves while the store is
// away. Rows are acme/KEY, with KEY as certmagic names it, and acme-lock/NAME.
package certstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/control/kv"
)

const (
	prefix = "acme/"
	// maxEntries bounds what is looked through at once; there are some ten for a host.
	maxEntries = 1000
)

// Config of Open. Store, Keys and Dir are required.
type Config struct {
	Store kv.Store
	Keys  *Keys
	Dir   string // of this node's sealed copy, 0700
	// Files is where a node kept all of it before it had a key, unsealed. It is taken
	// over where the store has no certificate yet, and left as it is.
	Files string
	Log   *slog.Logger
}

// Storage implements certmagic.Storage and certmagic.TryLocker.
type Storage struct {
	store  kv.Store
	keys   *Keys
	files  *files
	before string // Config.Files
	log    *slog.Logger

	preparing sync.Mutex // guards prepared
	prepared  bool

	mu   sync.Mutex // guards what follows
	held map[string]*lease
	seen map[string]sighting
}

// row is one value as the store has it.
type row struct {
	At     time.Time `json:"at"` // when it was stored
	Sealed string    `json:"sealed"`
}

// Open prepares the store, see Prepare. Where that is away the node's own copy has to
// do. The errors are sentences for the operator.
func Open(ctx context.Context, cfg Config) (*Storage, error) {
	s := &Storage{
		store: cfg.Store, keys: cfg.Keys, before: cfg.Files, log: cfg.Log, files: newFiles(cfg.Dir, cfg.Keys),
		held: map[string]*lease{}, seen: map[string]sighting{},
	}
	err := s.Prepare(ctx)
	if errors.Is(err, kv.ErrUnavailable) {
		s.log.Warn("the database does not answer; the certificate comes from this node's own copy", "err", err)
		err = s.files.check()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Copy is this node's sealed copy, for certmagic.Config.LocalCache.
func (s *Storage) Copy() certmagic.Storage { return s.files }

// Prepare makes sure that the keys open what the store holds, seals anew what an older
// key sealed, and takes over the files of before, unless that has been done. Nothing
// should be ordered before it was.
func (s *Storage) Prepare(ctx context.Context) error {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	if s.prepared {
		return nil
	}
	before, err := readFiles(s.before)
	if err != nil {
		return err
	}
	var taken, again int
	err = s.store.Update(ctx, func(tx kv.Tx) (err error) {
		if again, err = s.sealAnew(tx); err != nil {
			return err
		}
		taken, err = s.takeOver(tx, before)
		return err
	})
	if err != nil {
		return err
	}
	s.prepared = true
	if again > 0 {
		s.log.Info("what was sealed by another key of the file is sealed by its first one", "key", s.keys.ID(), "entries", again)
	}
	if taken > 0 {
		s.log.Info("certificates and the account were taken over into the store, sealed; the files are not read any more and may be removed", "directory", s.before, "files", taken)
	}
	return s.files.sealAnew()
}

// mark is an entry that is always there, so that a node with the wrong key is
// refused before there is a certificate.
const mark = "sealed"

// sealAnew opens every entry, and seals those again that another key than the first
// one sealed. What nobody can open is removed, so that it is had again.
func (s *Storage) sealAnew(tx kv.Tx) (n int, err error) {
	items, err := tx.Scan(prefix, "", maxEntries)
	if err != nil {
		return 0, err
	}
	for _, it := range items {
		key := strings.TrimPrefix(it.Key, prefix)
		value, at, old, err := s.open(key, it.Value)
		switch {
		case errors.Is(err, errDamaged):
			s.log.Warn("a certificate's entry in the store does not open and is removed", "err", err)
			err = tx.Delete(it.Key)
		case err == nil && old:
			n++
			err = s.put(tx, key, value, at)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(items) > 0 {
		return n, nil
	}
	return 0, s.put(tx, mark, []byte("by this key"), time.Now())
}

// takeOver stores what the files held, where the store has no certificate.
func (s *Storage) takeOver(tx kv.Tx, before map[string][]byte) (n int, err error) {
	has, err := tx.Scan(prefix+"certificates/", "", 1)
	if err != nil || len(has) > 0 {
		return 0, err
	}
	for key, value := range before {
		if err := s.put(tx, key, value, time.Now()); err != nil {
			return 0, err
		}
	}
	return len(before), nil
}

func (s *Storage) put(tx kv.Tx, key string, value []byte, at time.Time) error {
	return kv.PutJSON(tx, prefix+key, row{At: at.UTC(), Sealed: s.keys.seal(key, value)}, 0)
}

// open is the value of a row, with when it was stored.
func (s *Storage) open(key string, b []byte) (value []byte, at time.Time, old bool, err error) {
	var r row
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, at, false, fmt.Errorf("%s: %w", key, errDamaged)
	}
	value, old, err = s.keys.open(key, r.Sealed)
	return value, r.At, old, err
}

// Store implements certmagic.Storage. It is refused where this node has lost a lock
// that it works under: another one does that work now.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	return s.store.Update(ctx, func(tx kv.Tx) error {
		if err := s.fence(tx); err != nil {
			return err
		}
		return s.put(tx, key, value, time.Now())
	})
}

// Load implements certmagic.Storage.
func (s *Storage) Load(ctx context.Context, key string) (value []byte, err error) {
	value, _, err = s.load(ctx, key)
	return value, err
}

func (s *Storage) load(ctx context.Context, key string) (value []byte, at time.Time, err error) {
	err = s.store.ViewOf(ctx, kv.Rows{Keys: []string{prefix + key}}, func(tx kv.Tx) error {
		b, err := tx.Get(prefix + key)
		if errors.Is(err, kv.ErrNotFound) {
			return fs.ErrNotExist
		}
		if err != nil {
			return err
		}
		value, at, _, err = s.open(key, b)
		return err
	})
	return value, at, err
}

// Delete implements certmagic.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	return s.store.Update(ctx, func(tx kv.Tx) error {
		if err := s.fence(tx); err != nil {
			return err
		}
		below, err := tx.Scan(prefix+key+"/", "", maxEntries)
		if err != nil {
			return err
		}
		for _, it := range below {
			if err := tx.Delete(it.Key); err != nil {
				return err
			}
		}
		return tx.Delete(prefix + key)
	})
}

// Exists implements certmagic.Storage. What cannot be found out is taken to be
// there: nothing should be ordered because the store did not answer.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return !errors.Is(err, fs.ErrNotExist)
}

// List implements certmagic.Storage.
func (s *Storage) List(ctx context.Context, dir string, recursive bool) ([]string, error) {
	under := prefix + strings.TrimSuffix(dir, "/") + "/"
	if dir == "" {
		under = prefix
	}
	var keys []string
	err := s.store.ViewOf(ctx, kv.Rows{Prefixes: []string{under}}, func(tx kv.Tx) error {
		keys = nil
		items, err := tx.Scan(under, "", maxEntries)
		for _, it := range items {
			first, _, deeper := strings.Cut(strings.TrimPrefix(it.Key, under), "/")
			key := strings.TrimPrefix(it.Key, prefix)
			if deeper && !recursive {
				key = strings.TrimPrefix(under, prefix) + first
			}
			if len(keys) == 0 || keys[len(keys)-1] != key {
				keys = append(keys, key)
			}
		}
		return err
	})
	if err == nil && len(keys) == 0 {
		err = fs.ErrNotExist
	}
	return keys, err
}

// Stat implements certmagic.Storage.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	value, at, err := s.load(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: at, Size: int64(len(value)), IsTerminal: true}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return certmagic.KeyInfo{}, err
	}
	_, err = s.List(ctx, key, false)
	return certmagic.KeyInfo{Key: key}, err
}
