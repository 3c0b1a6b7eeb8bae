package control

import (
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
)

// newUserCode makes a code such as BCDF-GHJK, of 34 random bits.
func newUserCode() string {
	var b strings.Builder
	for i := range userCodeSize {
		if i == userCodeSize/2 {
			b.WriteByte('-')
		}
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(userCodeLetters))))
		if err != nil {
			panic(err) // as newCode: without randomness nothing may go on
		}
		b.WriteByte(userCodeLetters[n.Int64()])
	}
	return b.String()
}

// ParseUserCode reads a code as a person types it: in either case, with or
// without the hyphen. It returns the form the computer shows, or refuses with
// CodeNotFound, as for a code that is not known.
func ParseUserCode(typed string) (string, error) {
	var b strings.Builder
	for _, r := range typed {
		switch {
		case r == '-' || r == ' ':
			continue
		case r >= 'a' && r <= 'z':
			r -= 'a' - 'A'
		}
		if b.Len() == userCodeSize || r > unicode.MaxASCII || strings.IndexByte(userCodeLetters, byte(r)) < 0 {
			return "", userCodeWrong()
		}
		b.WriteRune(r)
	}
	if b.Len() != userCodeSize {
		return "", userCodeWrong()
	}
	code := b.String()
	return code[:userCodeSize/2] + "-" + code[userCodeSize/2:], nil
}

func userCodeWrong() error {
	return refuse(controlapi.CodeNotFound, "That code is not right, was used already, or is more than ten minutes old. Compare it with the one the computer shows.")
}

// userCodeHash is keyed: the plain hash of so short a code could be turned back
// into it by whoever reads the store.
func (s *Enrolment) userCodeHash(code string) string {
	return hex.EncodeToString(s.seal(purposeUserCode, code))
}

// shown makes text from a stranger fit to be shown to a person: one line of
// printable characters, none of which turns the direction of what follows.
func shown(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(text) {
		if n == maxMachine {
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			continue
		}
		b.WriteRune(r)
		n++
	}
	return strings.TrimSpace(b.String())
}
