package certstore

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

const (
	maxKeys    = 2
	maxKeyFile = 4 << 10 // bytes
	// version is how a sealed value begins: this, the key's id, nonce and ciphertext.
	version = "s1"
)

// Keys are those of a key file: the first seals, each opens.
type Keys struct{ keys []key }

type key struct {
	id   string // tells keys apart, and nothing about them
	aead cipher.AEAD
}

// MakeKeys writes a file with a new key, for its owner alone, where there is none. It
// returns the key's id.
func MakeKeys(path string) (id string, err error) {
	secret := make([]byte, chacha20poly1305.KeySize)
	rand.Read(secret) // never fails
	k, err := newKey(secret)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s exists already, and what it sealed could not be opened without it; choose another name", path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the key: %w", err)
	}
	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(secret))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("cannot write the key: %w", errors.Join(err, os.Remove(path)))
	}
	return k.id, nil
}

// ReadKeys reads a key file: one key a line, two at most. The errors are sentences
// for the operator, and hold nothing of the file.
func ReadKeys(path string) (*Keys, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key that seals certificates (--seal-key): %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the key that seals certificates (--seal-key): %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("every user of this machine may read %s, which holds the key that seals certificates: chmod 600 it (--seal-key)", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the key that seals certificates (--seal-key): %w", err)
	}
	return parseKeys(path, raw)
}

func parseKeys(path string, raw []byte) (*Keys, error) {
	var k Keys
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(secret) != chacha20poly1305.KeySize {
			return nil, fmt.Errorf("%s does not hold a key a line, as porchlight-control seal-key make writes it (--seal-key)", path)
		}
		next, err := newKey(secret)
		if err != nil {
			return nil, err
		}
		if slices.Contains(k.ids(), next.id) {
			return nil, fmt.Errorf("%s holds the same key twice (--seal-key)", path)
		}
		k.keys = append(k.keys, next)
	}
	if n := len(k.keys); n == 0 || n > maxKeys || len(raw) > maxKeyFile {
		return nil, fmt.Errorf("%s does not hold one key, or two while one replaces the other: porchlight-control seal-key make FILE makes such a file (--seal-key)", path)
	}
	return &k, nil
}

func newKey(secret []byte) (key, error) {
	aead, err := chacha20poly1305.NewX(secret)
	sum := sha256.Sum256(append([]byte("porchlight seal key id\n"), secret...))
	return key{hex.EncodeToString(sum[:8]), aead}, err
}

// ID is that of the key that seals.
func (k *Keys) ID() string { return k.keys[0].id }

func (k *Keys) ids() (ids []string) {
	for _, key := range k.keys {
		ids = append(ids, key.id)
	}
	return ids
}

// bound is what a value is sealed together with: put elsewhere it does not open.
func bound(name string) []byte { return []byte("porchlight acme\n" + name) }

// seal returns value in a form that only the keys open, and only under its name.
func (k *Keys) seal(name string, value []byte) string {
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	rand.Read(nonce) // never fails
	first := k.keys[0]
	sealed := first.aead.Seal(nonce, nonce, value, bound(name))
	return version + "." + first.id + "." + base64.RawURLEncoding.EncodeToString(sealed)
}

var (
	// errKey is wrapped where a value was sealed by a key that is not in the file.
	errKey = errors.New("the key file of this node (--seal-key) is not the one of the other nodes")
	// errDamaged is wrapped where no key would open a value.
	errDamaged = errors.New("it is damaged, or somebody changed it who has not the key")
)

// open returns what was sealed under a name; old says that it was not the first key.
func (k *Keys) open(name, sealed string) (value []byte, old bool, err error) {
	form, rest, _ := strings.Cut(sealed, ".")
	id, text, ok := strings.Cut(rest, ".")
	if !ok || form != version {
		return nil, false, fmt.Errorf("%s is not sealed in a way that this version knows", name)
	}
	i := slices.Index(k.ids(), id)
	if i < 0 {
		return nil, false, fmt.Errorf("%w: %s was sealed by the key %q, and the file holds %s. Copy the file of a node that runs",
			errKey, name, id, strings.Join(k.ids(), " and "))
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < chacha20poly1305.NonceSizeX {
		return nil, false, fmt.Errorf("%s: %w", name, errDamaged)
	}
	nonce, ciphertext := raw[:chacha20poly1305.NonceSizeX], raw[chacha20poly1305.NonceSizeX:]
	if value, err = k.keys[i].aead.Open(nil, nonce, ciphertext, bound(name)); err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, errDamaged)
	}
	return value, i > 0, nil
}
