package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
)

// Enrolling a computer follows the device flow of RFC 8628. Begin
// answers the computer with a device code, which it polls with, and a short
// user code, which its owner types into a browser; what the browser does with it
// is in enrolconfirm.go. The confirmation makes or finds the computer's row, and
// the first poll after it makes the device credential, so that the credential
// is in clear in that one answer and nowhere else.
//
// The user code is short enough to be guessed if tries were free: they are
// counted per account and per address, and each enrolment lives ten minutes.

const (
	// enrolmentLife is how long a user code can be confirmed and its device code
	// polled.
	enrolmentLife = 10 * time.Minute
	// enrolmentInterval is how far apart polls have to be at first.
	enrolmentInterval = 5 * time.Second
	// enrolmentIntervalMax is where slowing down ends.
	enrolmentIntervalMax = time.Minute

	// userCodeLetters has no vowels, so that no words appear, and nothing that
	// is taken for something else (RFC 8628, section 6.1).
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeSize    = 8

	maxMachine = 64 // characters shown of a machine's name
)

const (
	purposeDevice   = "device code"
	purposeUserCode = "user code"
)

var (
	budgetEnrolments = budgetKind{"enrolments", []limit{{30, time.Hour}},
		"Many computers asked to be connected from your network. Try again later."}
	budgetUserCodes = budgetKind{"user-codes", []limit{{5, enrolmentLife}},
		"Five codes were wrong. Wait a few minutes, then start again at the computer."}
	budgetUserCodesFrom = budgetKind{"user-codes-from", []limit{{30, time.Hour}},
		"Many wrong codes came from your network. Try again later."}
)

// Enrolment is how computers get their credentials.
type Enrolment struct{ *core }

// enrolmentStatus is how far an enrolment has come.
type enrolmentStatus string

const (
	enrolmentWaiting   enrolmentStatus = "waiting"
	enrolmentConfirmed enrolmentStatus = "confirmed"
	enrolmentDenied    enrolmentStatus = "denied"
)

// enrolment as stored, under the hash of its device code.
type enrolment struct {
	Status   enrolmentStatus `json:"status"`
	Machine  string          `json:"machine"`
	Platform string          `json:"platform"`
	Name     string          `json:"name,omitempty"` // wished for, valid
	Apps     []string        `json:"apps,omitempty"` // names that are taken on that computer
	Client   string          `json:"client"`         // address that asked
	BeganAt  time.Time       `json:"beganAt"`
	PolledAt time.Time       `json:"polledAt,omitzero"`
	Interval time.Duration   `json:"interval"`

	// Of a confirmed one: the computer, and the hash of the credential it had
	// then, which is the only one this enrolment may replace.
	ComputerID string `json:"computerId,omitempty"`
	Replaces   string `json:"replaces,omitempty"`
}

// left is how much of an enrolment's life remains at now.
func (e enrolment) left(now time.Time) time.Duration {
	return max(enrolmentLife-now.Sub(e.BeganAt), time.Second)
}

// Begin answers a computer that wants to be connected. It refuses with
// CodeInvalid what cannot be shown to a person, and with CodeTooMany.
func (s *Enrolment) Begin(ctx context.Context, r controlapi.EnrolRequest, client netip.Addr) (controlapi.EnrolStarted, error) {
	row := enrolment{
		Status: enrolmentWaiting, Machine: shown(r.Machine), Platform: r.Platform,
		Apps: r.Apps, Interval: enrolmentInterval,
	}
	if client = client.Unmap().WithZone(""); client.IsValid() {
		row.Client = client.String()
	}
	switch {
	case !platformPattern.MatchString(r.Platform):
		return controlapi.EnrolStarted{}, refuse(controlapi.CodeInvalid, "The request to connect does not name the computer's system.")
	case len(r.Apps) > MaxApps || slices.ContainsFunc(r.Apps, func(a string) bool { return !controlapi.ValidLabel(a) }):
		return controlapi.EnrolStarted{}, refuse(controlapi.CodeInvalid, "The request to connect names an app that cannot be published.")
	}
	if s.cfg.ValidShortName(r.Name) == nil && !slices.Contains(r.Apps, r.Name) {
		row.Name = r.Name // anything else is no suggestion
	}
	budget := budgetEnrolments.of(clientKey(client))
	if err := s.pace.spend(s.now(), budget); err != nil {
		return controlapi.EnrolStarted{}, err
	}
	device, codes := newToken(), []string{newUserCode(), newUserCode(), newUserCode()}
	deviceHash := hashOf(purposeDevice, device)
	var code string
	err := s.update(ctx, func(tx *txn) error {
		if err := tx.spend(budget); err != nil {
			return err
		}
		i := slices.IndexFunc(codes, func(c string) bool {
			_, taken := get[string](tx, keyUserCode(s.userCodeHash(c)))
			return !taken
		})
		if i < 0 { // three times out of twenty billion
			return refuse(controlapi.CodeUnavailable, "No code could be made right now. Try again.")
		}
		code, row.BeganAt = codes[i], tx.now.UTC()
		tx.put(keyUserCode(s.userCodeHash(code)), deviceHash, enrolmentLife)
		tx.put(keyEnrolment(deviceHash), row, enrolmentLife)
		return nil
	})
	if err != nil {
		return controlapi.EnrolStarted{}, err
	}
	return controlapi.EnrolStarted{
		DeviceCode: device, UserCode: code,
		VerificationURI:         s.cfg.AuthURL() + controlapi.PathDevice,
		VerificationURIComplete: s.cfg.AuthURL() + controlapi.PathDevice + "?code=" + code,
		ExpiresIn:               int(enrolmentLife / time.Second),
		Interval:                int(enrolmentInterval / time.Second),
	}, nil
}

// Poll answers a computer that waits for its confirmation: with the
// device credential, once, or with the refusals of RFC 8628, section 3.5.
// Polling too early lengthens the interval by five seconds each time; a
// confirmation is answered however early the poll comes.
func (s *Enrolment) Poll(ctx context.Context, deviceCode string) (controlapi.Enrolled, error) {
	expired := refuse(controlapi.CodeExpiredToken, "The code is over, or was used already. Start connecting again.")
	if len(deviceCode) != tokenLen {
		return controlapi.Enrolled{}, expired
	}
	credential := newToken()
	key, hash := keyEnrolment(hashOf(purposeDevice, deviceCode)), hashOf(purposeCredential, credential)
	return updated(ctx, s.core, func(tx *txn) (controlapi.Enrolled, error) {
		row, err := find[enrolment](tx, key, expired)
		if err != nil {
			return controlapi.Enrolled{}, err
		}
		switch row.Status {
		case enrolmentConfirmed:
			tx.delete(key)
			out, err := s.complete(tx, row, hash)
			if IsRefusal(err, controlapi.CodeAccessDenied) {
				err = kept{err} // the enrolment is used up all the same
			}
			out.Credential = credential
			return out, err
		case enrolmentDenied:
			return controlapi.Enrolled{}, enrolmentRefused()
		}
		refusal := refuse(controlapi.CodeAuthorizationPending, "Nobody has confirmed the code yet.")
		if tx.now.Sub(row.PolledAt) < row.Interval {
			refusal = refuse(controlapi.CodeSlowDown, "The computer asks too often whether its code was confirmed.")
			if row.Interval >= enrolmentIntervalMax {
				return controlapi.Enrolled{}, refusal // it was told often enough to be worth no more writing
			}
			row.Interval = min(row.Interval+enrolmentInterval, enrolmentIntervalMax)
		}
		row.PolledAt = tx.now.UTC()
		tx.put(key, row, row.left(tx.now))
		return controlapi.Enrolled{}, kept{refusal}
	})
}

func enrolmentRefused() error {
	return refuse(controlapi.CodeAccessDenied, "Connecting this computer was refused. Start again if that was a mistake.")
}

// complete gives the computer of a confirmed enrolment the credential
// with this hash. An earlier credential ends, if it is the one whose owner was
// told so.
func (s *Enrolment) complete(tx *txn, row enrolment, credentialHash string) (controlapi.Enrolled, error) {
	c, err := find[computer](tx, keyComputer(row.ComputerID), enrolmentRefused())
	if err != nil {
		return controlapi.Enrolled{}, err
	}
	if c.CredentialHash != row.Replaces {
		return controlapi.Enrolled{}, enrolmentRefused() // connected otherwise meanwhile
	}
	owner, err := find[Account](tx, keyAccount(c.OwnerID), enrolmentRefused())
	if err != nil {
		return controlapi.Enrolled{}, err
	}
	if row.BeganAt.Before(owner.NotBefore) {
		return controlapi.Enrolled{}, enrolmentRefused() // whoever confirmed it was not its owner
	}
	c.Machine, c.Platform = row.Machine, row.Platform
	tx.giveCredential(c, credentialHash)
	return controlapi.Enrolled{AccountID: owner.ID, Email: owner.Email, Computer: s.computer(c)}, nil
}

func enrolmentByCode(tx *txn, codeHash string) (deviceHash string, row enrolment, found bool) {
	if deviceHash, found = get[string](tx, keyUserCode(codeHash)); found {
		row, found = get[enrolment](tx, keyEnrolment(deviceHash))
	}
	return deviceHash, row, found && row.Status == enrolmentWaiting
}

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
	return hex.EncodeToString(s.mark(purposeUserCode, code))
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
