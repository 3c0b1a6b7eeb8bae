package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"

	"porchlight/control/controlapi"
	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

// maxDetail bounds, in bytes, what is repeated of an authority's own words.
const maxDetail = 200

// cause says in a sentence why there is no certificate of a name, and what helps.
func (a *ACME) cause(name string, err error) words.Sentence {
	if _, ok := errors.AsType[*words.Failure](err); ok { // of ACMEConfig.Before
		return words.InWords(err)
	}
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok { // of PublishConfig.Publish
		return refusal.Sentence()
	}
	authority := authorityOf(a.cfg.Directory)
	if problem, ok := errors.AsType[acme.Problem](err); ok {
		if a.cfg.Own != nil && a.cfg.Own(name) {
			if said := meaningOfOwn(authority, name, kindOf(problem)); !said.IsZero() {
				return said
			}
		}
		return meaning(authority, name, problem)
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	_, away := errors.AsType[*url.Error](err)
	switch {
	case ok && invalid.Reason == x509.Expired:
		return words.Of("This computer's clock is wrong, or the certificate of %s has ended. Set the clock right.", authority)
	case untrusted:
		return words.Of("This computer does not trust the certificate of %s. If it is an authority of your own, connect anew with its file.", authority)
	case errors.Is(err, context.DeadlineExceeded):
		return words.Of("%s did not answer in time. There is nothing to do unless that lasts.", authority)
	case away:
		return words.Of("%s cannot be reached from here. Look whether this computer is online.", authority)
	case !certmagic.SubjectQualifiesForPublicCert(name):
		return words.Of("%s gives certificates for names of the internet alone. Ask whoever runs your server for its authority's file, and connect anew with it.", authority)
	}
	return words.Of("%s gave none. Porchlight's log says more.", authority)
}

// kindOf is the type of a problem document (RFC 8555, section 6.7).
func kindOf(p acme.Problem) string {
	if p.Type == acme.ProblemTypeCompound && len(p.Subproblems) > 0 {
		return p.Subproblems[0].Type
	}
	return p.Type
}

// meaningOfOwn is what a problem means that the owner of an own domain can mend, who keeps its
// DNS; zero for others.
func meaningOfOwn(authority, name, kind string) words.Sentence {
	switch kind {
	case acme.ProblemTypeDNS:
		return words.Of("%[1]s says that it finds no address of %[2]s. Look at its records where the domain is registered.", authority, name)
	case acme.ProblemTypeConnection, acme.ProblemTypeUnauthorized, acme.ProblemTypeTLS, acme.ProblemTypeIncorrectResponse:
		return words.Of("%[1]s says that %[2]s does not lead to this computer. Look at its records where the domain is registered.", authority, name)
	case acme.ProblemTypeCAA:
		return words.Of("The DNS of %[2]s does not let %[1]s give certificates (CAA). Allow it where the domain is registered.", authority, name)
	}
	return words.Sentence{}
}

// meaning is a problem document in a sentence.
func meaning(authority, name string, p acme.Problem) words.Sentence {
	kind := kindOf(p)
	root, common := rootOf(name)
	switch kind {
	case acme.ProblemTypeDNS, acme.ProblemTypeUnauthorized, acme.ProblemTypeIncorrectResponse:
		if common {
			return words.Of("%[1]s says that it does not find the record %[2]s in the DNS. Ask whoever runs your server to type: porchlight-control check", authority, controlapi.ChallengePrefix+root)
		}
	}
	switch kind {
	case acme.ProblemTypeDNS:
		return words.Of("%[1]s says that it finds no address of %[2]s. That is set in the DNS: ask whoever runs your server.", authority, name)
	case acme.ProblemTypeConnection, acme.ProblemTypeUnauthorized, acme.ProblemTypeTLS, acme.ProblemTypeIncorrectResponse:
		return words.Of("%[1]s says that %[2]s does not lead to this computer. Ask whoever runs your server where it leads.", authority, name)
	case acme.ProblemTypeCAA:
		return words.Of("The DNS of %[2]s does not let %[1]s give certificates (CAA). Ask whoever runs your server to allow it.", authority, name)
	case acme.ProblemTypeRateLimited:
		return words.Of("%s gives no more certificates here for now. It will by itself, within a week at most.", authority)
	}
	if p.Status >= http.StatusInternalServerError || kind == acme.ProblemTypeServerInternal {
		return words.Of("%s has a fault of its own. There is nothing to do unless that lasts.", authority)
	}
	detail := oneline.Printable(p.Detail)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + "…"
	}
	return words.Of("%[1]s says: “%[2]s”.", authority, strings.TrimSuffix(detail, "."))
}

// limited says whether an authority counts the tries: one too many makes it longer.
func limited(err error) bool {
	problem, ok := errors.AsType[acme.Problem](err)
	return ok && problem.Type == acme.ProblemTypeRateLimited
}

// CAAName is what records CAA call the authority of an ACME directory; empty where that is
// not known.
func CAAName(directory string) string {
	if authorityOf(directory) == "Let's Encrypt" {
		return "letsencrypt.org"
	}
	return ""
}

// authorityOf is how people call the authority of an ACME directory.
func authorityOf(directory string) string {
	u, err := url.Parse(directory)
	if directory == "" || err == nil && strings.HasSuffix(u.Hostname(), ".letsencrypt.org") {
		return "Let's Encrypt"
	}
	if err != nil {
		return directory
	}
	return u.Host
}
