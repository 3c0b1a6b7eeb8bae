// Command release makes what only whoever publishes versions can: a key, the update notice
// (docs/operating.md, Telling of a new version), and the signatures of a release
// (build/release.sh, which also has it join programs for the two kinds of Mac).
//
//	go run ./build/release key FILE                      makes a key, and prints its public half
//	go run ./build/release sign FILE VERSION [DAYS]      prints the file to be served, good for 90 days
//	go run ./build/release seal FILE VERSION DIR         signs SHA256SUMS in DIR, and puts key and notice beside it
//	go run ./build/release join TO PART PART             makes one program of one for each kind of Mac
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/update"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "key":
		return makeKey(args[1])
	case (len(args) == 3 || len(args) == 4) && args[0] == "sign":
		return sign(args[1], args[2], args[3:])
	case len(args) == 4 && args[0] == "seal":
		return seal(args[1], args[2], args[3])
	case len(args) == 4 && args[0] == "join":
		return join(args[1], args[2:])
	}
	return errors.New("usage: release key FILE | sign FILE VERSION [DAYS] | seal FILE VERSION DIR | join TO PART PART")
}

func makeKey(path string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, base64.StdEncoding.EncodeToString(private.Seed()))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Println(base64.StdEncoding.EncodeToString(public))
	fmt.Fprintln(os.Stderr, "its fingerprint, for those who install for the first time:", fingerprint(private))
	return nil
}

// noticeDays is how long a notice says something when nobody says how long.
const noticeDays = 90

func sign(path, version string, rest []string) error {
	days := noticeDays
	if len(rest) > 0 {
		var err error
		if days, err = strconv.Atoi(rest[0]); err != nil || days < 1 {
			return errors.New("the number of days is a whole one, from 1")
		}
	}
	key, err := readKey(path)
	if err != nil {
		return err
	}
	file, err := notice(key, version, days)
	if err != nil {
		return err
	}
	fmt.Println(string(file))
	return nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s holds no key", path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func notice(key ed25519.PrivateKey, version string, days int) ([]byte, error) {
	now := time.Now().UTC().Truncate(time.Second)
	return update.Sign(update.Manifest{Version: version, Date: now, Expires: now.AddDate(0, 0, days)}, key)
}
