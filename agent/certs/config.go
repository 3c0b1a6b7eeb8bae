package certs

import (
	"crypto/tls"
	"slices"

	"porchlight/internal/acmeorder"
)

// resumeMark begins what we add to a session ticket, so that it cannot be taken
// for what another layer adds.
const resumeMark = "porchlight name "

// TLSConfig makes the configuration of the agent's public side: TLS 1.2 or
// later, HTTP/2 and HTTP/1.1, certificates of src, session tickets. Curves and
// ciphers are crypto/tls's own choice.
//
// A resumed session presents no certificate, so crypto/tls does not ask for one
// and would resume under whatever name the client states. Tickets therefore
// carry the name they were given out for, and are honoured for that name only
// and only while src serves it.
func TLSConfig(src Source) *tls.Config {
	cfg := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: src.GetCertificate,
		// Full records from the first byte: browsers wait for the answer's head
		// no longer, and a download costs about an eighth less CPU.
		DynamicRecordSizingDisabled: true,
	}
	if _, ok := src.(*ACME); ok {
		// Negotiated with nobody but the authority; an HTTP server closes such a
		// connection after the handshake, which is all the authority came for.
		cfg.NextProtos = append(cfg.NextProtos, acmeorder.ChallengeALPN)
	}
	// Both use the keys of cfg itself, which crypto/tls changes every day, even
	// when a server works with a clone.
	cfg.WrapSession = func(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
		s.Extra = append(s.Extra, []byte(resumeMark+normal(cs.ServerName)))
		return cfg.EncryptTicket(cs, s)
	}
	cfg.UnwrapSession = func(identity []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		s, err := cfg.DecryptTicket(identity, cs)
		if err != nil || s == nil {
			return nil, err
		}
		name := normal(cs.ServerName)
		if !src.Serves(name) || !carries(s, resumeMark+name) {
			return nil, nil // a full handshake decides
		}
		return s, nil
	}
	return cfg
}

func carries(s *tls.SessionState, mark string) bool {
	return slices.ContainsFunc(s.Extra, func(extra []byte) bool { return string(extra) == mark })
}
