package senders

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
)

const (
	// Skew is how far the time that a sender signed may be from ours.
	Skew = 5 * time.Minute

	maxSignatures = 16      // that are looked at in one request
	maxField      = 4 << 10 // bytes of a field that is read
)

var (
	errMalformed = errors.New("the signature is not written as this kind has it")
	// ErrTime is of a signed time that is too far from ours.
	ErrTime = errors.New("the signed time is more than five minutes off")
	// ErrSignature is of a body that none of the secrets signed so.
	ErrSignature = errors.New("the signature is not by this sender's secret")
)

// signed is what the head of a request says of its signature.
type signed struct {
	id         string    // of the message, where that is signed
	at         time.Time // that was signed; zero where none is
	before     string    // what is signed before the body
	signatures [][]byte  // any of which will do
}

// Fields of the kinds, as net/http writes them. Those of Standard Webhooks have an older
// name, too.
const (
	fieldGitHub    = "X-Hub-Signature-256"
	fieldStripe    = "Stripe-Signature"
	fieldSlack     = "X-Slack-Signature"
	fieldSlackTime = "X-Slack-Request-Timestamp"
)

var standardFields = []string{"Webhook-", "Svix-"}

// readSigned reads the signature of a kind. present is false for a head that has none;
// header is that of agentapi.SenderHMAC.
func readSigned(kind, header string, h http.Header) (s signed, present bool, err error) {
	switch kind {
	case agentapi.SenderStandard:
		for _, prefix := range standardFields {
			if len(h[prefix+"Signature"]) > 0 {
				s, err = readStandard(h, prefix)
				return s, true, err
			}
		}
		return s, false, nil
	case agentapi.SenderGitHub:
		header = fieldGitHub
	case agentapi.SenderStripe:
		header = fieldStripe
	case agentapi.SenderSlack:
		header = fieldSlack
	}
	if header == "" || len(h[header]) == 0 {
		return s, false, nil
	}
	value, err := field(h, header)
	if err != nil {
		return s, true, err
	}
	switch kind {
	case agentapi.SenderGitHub:
		err = s.addHex(strings.CutPrefix(value, "sha256="))
	case agentapi.SenderStripe:
		err = s.readStripe(value)
	case agentapi.SenderSlack:
		err = s.readSlack(h, value)
	case agentapi.SenderHMAC:
		err = s.readPlain(value)
	default:
		err = errMalformed // a store of a later version has it
	}
	return s, true, err
}

// field is the value of a field that is there once.
func field(h http.Header, name string) (string, error) {
	if values := h[name]; len(values) == 1 && len(values[0]) <= maxField && values[0] != "" {
		return values[0], nil
	}
	return "", errMalformed
}

// readStandard reads what standardwebhooks.com signs: id, time and body, in base64.
func readStandard(h http.Header, prefix string) (s signed, err error) {
	signatures, err := field(h, prefix+"Signature")
	id, wrongID := field(h, prefix+"Id")
	at, wrongTime := field(h, prefix+"Timestamp")
	if err = errors.Join(err, wrongID, wrongTime); err != nil {
		return s, errMalformed
	}
	// With a dot in the id, what is signed could be taken apart in two ways.
	if strings.Contains(id, ".") {
		return s, errMalformed
	}
	s.id, s.before = id, id+"."+at+"."
	for one := range strings.FieldsSeq(signatures) {
		encoded, is := strings.CutPrefix(one, "v1,")
		if !is {
			continue // another version's
		}
		if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			s.add(raw)
		}
	}
	return s, s.readTime(at)
}

// readStripe reads t=TIME,v1=HEX, with more signatures and other versions.
func (s *signed) readStripe(value string) error {
	at := ""
	for part := range strings.SplitSeq(value, ",") {
		switch name, text, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			if at != "" {
				return errMalformed
			}
			at = text
		case "v1":
			_ = s.addHex(text, true) // another may be right
		}
	}
	s.before = at + "."
	return s.readTime(at)
}

// readSlack reads v0=HEX, and the time from its own field.
func (s *signed) readSlack(h http.Header, value string) error {
	at, err := field(h, fieldSlackTime)
	if err != nil {
		return err
	}
	s.before = "v0:" + at + ":"
	return errors.Join(s.addHex(strings.CutPrefix(value, "v0=")), s.readTime(at))
}

// readPlain reads a signature alone, in hexadecimal or base64, with sha256= before it or not.
func (s *signed) readPlain(value string) error {
	value = strings.TrimPrefix(value, "sha256=")
	if len(value) == hex.EncodedLen(sha256.Size) {
		return s.addHex(value, true)
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || !s.add(raw) {
		return errMalformed
	}
	return nil
}

func (s *signed) addHex(text string, is bool) error {
	raw, err := hex.DecodeString(text)
	if !is || err != nil || !s.add(raw) {
		return errMalformed
	}
	return nil
}

// add takes a signature, if it can be one.
func (s *signed) add(raw []byte) bool {
	if len(raw) != sha256.Size || len(s.signatures) >= maxSignatures {
		return false
	}
	s.signatures = append(s.signatures, raw)
	return true
}

// readTime reads Unix seconds, in the one way of writing them.
func (s *signed) readTime(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != text || n > 1<<40 {
		return errMalformed
	}
	s.at = time.Unix(n, 0)
	return nil
}

// timely says whether the time that was signed, if any, is near enough.
func (s *signed) timely(now time.Time) bool {
	return s.at.IsZero() || now.Sub(s.at).Abs() <= Skew
}

// by says whether a body was signed so with one of the keys. All are tried, in constant time.
func (s *signed) by(keys [][]byte, body []byte) (is bool) {
	for _, key := range keys {
		sum := signedBy(key, []byte(s.before), body)
		for _, signature := range s.signatures {
			if hmac.Equal(sum, signature) {
				is = true
			}
		}
	}
	return is
}

func signedBy(key, before, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(before)
	mac.Write(body)
	return mac.Sum(nil)
}

// digest tells a delivery from others. When it was signed is not part of it: a retry may be
// signed anew.
func (s *signed) digest(body []byte) (digest [32]byte) {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s.id))))
	h.Write([]byte(s.id))
	h.Write(body)
	return [32]byte(h.Sum(digest[:0]))
}
