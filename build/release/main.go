// Command release makes what an update notice reads (docs/operating.md, Telling of a new
// version): a key, and the signed file that says which version is the newest.
//
//	go run ./build/release key FILE                      makes a key, and prints its public half
//	go run ./build/release sign FILE VERSION [DAYS]      prints the file to be served, good for 90 days
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
	}
	return errors.New("usage: release key FILE | release sign FILE VERSION [DAYS]")
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
	return nil
}

func sign(path, version string, rest []string) error {
	days := 90
	if len(rest) > 0 {
		var err error
		if days, err = strconv.Atoi(rest[0]); err != nil || days < 1 {
			return errors.New("the number of days is a whole one, from 1")
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return fmt.Errorf("%s holds no key", path)
	}
	now := time.Now().UTC().Truncate(time.Second)
	file, err := update.Sign(update.Manifest{Version: version, Date: now, Expires: now.AddDate(0, 0, days)}, ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return err
	}
	fmt.Println(string(file))
	return nil
}
