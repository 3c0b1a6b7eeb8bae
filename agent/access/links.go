package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"porchlight/control/controlapi"
)

const (
	// linkLife is how long an owner's one-time link works.
	linkLife = 60 * time.Second

	maxLinks = 64
)

// ErrLink refuses a one-time link that is unknown, used, too old or not for
// this app. It does not say which.
var ErrLink = errors.New("this link has been used already or is older than a minute")

// ErrNoOwner means that no snapshot has named the owner yet.
var ErrNoOwner = errors.New("this computer does not know its owner's account yet; it is not connected")

// links holds the owner's one-time links, in memory only.
type links struct {
	mu   sync.Mutex
	open map[[32]byte]link // by SHA-256 of the token
}

type link struct {
	app     string
	expires time.Time
}

// MintLink makes a token that signs the owner in on one app's host, once and
// within linkLife, with no mail. The caller has made sure that it is the owner.
func (a *Access) MintLink(appID string) (token string, expires time.Time, err error) {
	if _, ok := a.Owner(); !ok {
		return "", time.Time{}, ErrNoOwner
	}
	var raw [32]byte
	rand.Read(raw[:])
	now := a.now()
	expires = now.Add(linkLife)
	l := &a.links
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest [32]byte
	for key, other := range l.open {
		if now.After(other.expires) {
			delete(l.open, key)
		} else if o, ok := l.open[oldest]; !ok || other.expires.Before(o.expires) {
			oldest = key
		}
	}
	if len(l.open) >= maxLinks {
		delete(l.open, oldest)
	}
	l.open[sha256.Sum256(raw[:])] = link{app: appID, expires: expires}
	return base64.RawURLEncoding.EncodeToString(raw[:]), expires, nil
}

// RedeemLink uses a token up and returns the owner. Looking tokens up by their
// digest leaves nothing for a clock to measure.
func (a *Access) RedeemLink(token, appID string) (controlapi.Person, error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 32 {
		return controlapi.Person{}, ErrLink
	}
	key := sha256.Sum256(raw)
	a.links.mu.Lock()
	l, ok := a.links.open[key]
	if ok && l.app == appID {
		delete(a.links.open, key)
	}
	a.links.mu.Unlock()
	if !ok || l.app != appID || a.now().After(l.expires) {
		return controlapi.Person{}, ErrLink
	}
	owner, ok := a.Owner()
	if !ok {
		return controlapi.Person{}, ErrNoOwner
	}
	return owner, nil
}
