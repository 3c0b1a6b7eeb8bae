package control

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Known browsers and familiar networks. Anybody may ask for mail at anybody's address, so the budget of
// an address can be spent by strangers, and its owner would then get no mail. A
// browser that has signed in with the address before is given a proof of that,
// and asks from a budget of its own, which no stranger can touch. The proof opens
// nothing else, and nothing is stored for it here. A network from which a mail to the
// address was used has a budget of its own, too, for the browsers that are not known.

const (
	// KnownLife is how long a browser is known after it signed in with an
	// address.
	KnownLife = 180 * 24 * time.Hour

	sealKnown = "known browser"
	// maxKnown is how many addresses one browser is known with.
	maxKnown = 4
	// maxFamiliar is how many networks are familiar to one address.
	maxFamiliar = 16
)

// knownBrowser is what the proof says.
type knownBrowser struct {
	device string // random; tells its budget from that of the person's other browsers
	with   []knownAddress
}

// knownAddress is an address the browser signed in with, as a hash, and when.
type knownAddress struct {
	hash string
	at   int64 // unix seconds
}

// Remember returns the proof a browser is to keep after it has signed in with
// email, for SignIn.Begin. known is the one it kept before, or anything.
func (s *SignIn) Remember(known, email string) string {
	b, ok := s.parseKnown(known)
	if !ok {
		b.device = newID()
	}
	now := s.now().Unix()
	hash := hashOf(purposeKnown, email)
	with := []knownAddress{{hash, now}} // newest first
	for _, a := range b.with {
		if a.hash != hash && len(with) < maxKnown {
			with = append(with, a)
		}
	}
	text := b.device
	for _, a := range with {
		text += fmt.Sprintf(" %s:%d", a.hash, a.at)
	}
	return s.keys.Seal(sealKnown, text)
}

// Knows says whether known is the proof of a browser that has signed in with some address.
func (s *SignIn) Knows(known string) bool {
	b, _ := s.parseKnown(known)
	return len(b.with) > 0 && b.with[0].at > s.now().Add(-KnownLife).Unix() // newest first
}

// KnowsWith is Knows for one address.
func (s *SignIn) KnowsWith(known, email string) bool {
	_, is := s.knownFor(known, email)
	return is
}

// knownFor says which known browser asks for mail at email, if it is one.
func (s *SignIn) knownFor(known, email string) (device string, ok bool) {
	b, ok := s.parseKnown(known)
	if !ok {
		return "", false
	}
	hash, oldest := hashOf(purposeKnown, email), s.now().Add(-KnownLife).Unix()
	for _, a := range b.with {
		if a.hash == hash && a.at > oldest {
			return b.device, true
		}
	}
	return "", false
}

func (s *SignIn) parseKnown(known string) (b knownBrowser, ok bool) {
	text, ok := s.keys.Unseal(sealKnown, known)
	if !ok {
		return knownBrowser{}, false
	}
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return knownBrowser{}, false
	}
	b.device = fields[0]
	for _, f := range fields[1:] {
		hash, at, _ := strings.Cut(f, ":")
		unix, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return knownBrowser{}, false
		}
		b.with = append(b.with, knownAddress{hash, unix})
	}
	return b, true
}

// familiarNetworks are the sources (see clientKey) that used a mail to one address, as
// hashes, with when they did last in unix seconds. The narrowest network is taken: whoever
// asks in it can find out that it is familiar.
type familiarNetworks map[string]int64

func hashOfNetwork(email, client string) string { return hashOf(purposeFamiliar, email, client) }

// familiar says whether client has used a mail to email within KnownLife. It reads as
// much for every address.
func (t *txn) familiar(email, client string) bool {
	networks, _ := get[familiarNetworks](t, keyFamiliar(email))
	at, ok := networks[hashOfNetwork(email, client)]
	return ok && time.Unix(at, 0).Add(KnownLife).After(t.now)
}

// noteFamiliar notes that client has used a mail to email. The network that did so
// longest ago gives way.
func (t *txn) noteFamiliar(email string, client netip.Addr) {
	if !client.IsValid() {
		return
	}
	networks, _ := get[familiarNetworks](t, keyFamiliar(email))
	if networks == nil {
		networks = familiarNetworks{}
	}
	networks[hashOfNetwork(email, clientKey(client))] = t.now.Unix()
	if len(networks) > maxFamiliar {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(networks)), func(a, b string) int { return cmp.Compare(networks[a], networks[b]) })
		delete(networks, oldest)
	}
	t.put(keyFamiliar(email), networks, KnownLife)
}
