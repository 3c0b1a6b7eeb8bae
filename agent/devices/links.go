package devices

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"porchlight/internal/bounds"
)

const (
	// LinkLife is how long a link waits to be used, once.
	LinkLife = 10 * time.Minute
	mostOpen = 100 // links that wait
)

// links are files that wait to be fetched. Nothing is written down: they are gone with this
// process, and without its code a file is worth nothing.
type links struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]link // by the digest of the secret; guarded by mu
}

type link struct {
	file []byte
	ends time.Time
}

func newLinks() links { return links{open: map[[sha256.Size]byte]link{}} }

// Link has a file wait to be fetched with the secret, of 256 bits.
func (d *Devices) Link(file []byte) (secret string, ends time.Time) {
	var raw [32]byte
	rand.Read(raw[:])
	secret = base64.RawURLEncoding.EncodeToString(raw[:])
	now := d.now()
	ends = now.Add(LinkLife)
	d.links.mu.Lock()
	defer d.links.mu.Unlock()
	bounds.MakeRoom(d.links.open, mostOpen, func(l link) bool { return !now.Before(l.ends) })
	d.links.open[sha256.Sum256([]byte(secret))] = link{file, ends}
	return secret, ends
}

// Fetch takes the file of a link, which works no more then.
func (d *Devices) Fetch(secret string) (file []byte, ok bool) {
	digest := sha256.Sum256([]byte(secret))
	d.links.mu.Lock()
	defer d.links.mu.Unlock()
	l, ok := d.links.open[digest]
	delete(d.links.open, digest)
	return l.file, ok && d.now().Before(l.ends)
}
