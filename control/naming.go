package control

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Naming is how the hosts of a control plane are called. Domain and AuthHost are
// required.
type Naming struct {
	// Domain is the parent of every computer's root host, for example
	// "localhost" or "porch.example".
	Domain string `json:"domain"`
	// AuthHost is where the pages and the agent interface are served, without
	// the port, for example "control.localhost".
	AuthHost string `json:"authHost"`
	// PublicPort is the port visitors use; hosts and addresses carry it unless
	// it is 443. Zero means 443.
	PublicPort int `json:"publicPort"`
}

// AuthHostPort is the host of the control plane, with the port unless it is 443.
func (n Naming) AuthHostPort() string { return n.withPort(n.AuthHost) }

// AuthURL is the address of the pages, OAuth and the agent interface.
func (n Naming) AuthURL() string { return "https://" + n.AuthHostPort() }

// HostSuffix is what follows a computer's short name in its root host, with the
// leading dot and with the port unless it is 443.
func (n Naming) HostSuffix() string { return n.withPort("." + n.Domain) }

// Local says whether this control plane lives under localhost, where nobody but
// this computer can reach it.
func (n Naming) Local() bool {
	return n.AuthHost == "localhost" || strings.HasSuffix(n.AuthHost, ".localhost")
}

func (n Naming) withPort(host string) string {
	if n.PublicPort == 443 || n.PublicPort == 0 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(n.PublicPort))
}

func (n Naming) check() error {
	switch {
	case !isHostName(n.Domain):
		return fmt.Errorf("%q cannot be the parent domain of computers", n.Domain)
	case !isHostName(n.AuthHost) || n.AuthHost == n.Domain || isAppHost(n.AuthHost, n.Domain):
		return fmt.Errorf("%q cannot be the host of the control plane", n.AuthHost)
	case n.PublicPort < 0 || n.PublicPort > 65535:
		return fmt.Errorf("%d is not a port", n.PublicPort)
	}
	return nil
}

// isHostName accepts lower-case DNS names such as "localhost" or
// "porch.example": what may be concatenated into hosts, addresses and policies.
func isHostName(name string) bool {
	if name == "" || len(name) > 200 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !controlapi.ValidLabel(label) {
			return false
		}
	}
	return true
}

// isAppHost says whether host could be an app's, NAME.COMPUTER.DOMAIN, or be
// below one. The relay would otherwise have two owners for one name.
func isAppHost(host, domain string) bool {
	below, ok := strings.CutSuffix(host, "."+domain)
	return ok && strings.Contains(below, ".")
}

// A computer's name is a host of the service's own domain, NAME.DOMAIN. So some
// names are nobody's: those that programs and people take for the service's own.
// And a name that another account had is kept back for a while: browsers still
// hold what that account's apps left there.

const (
	// keepName is how long the name of a removed computer is kept back for the
	// account that had it.
	keepName = 90 * 24 * time.Hour
	// maxKeptNames is how many names are kept back for one account: making and
	// removing computers is not to use up everybody's names.
	maxKeptNames = maxComputers
)

// ValidShortName refuses names no computer can have. The rules are those of app
// names (P9, P10), because both become labels of one host; the control plane's
// own host is reserved as well. A computer that is new may not take every name
// that is valid: see takeName.
func (n Naming) ValidShortName(name string) error {
	if !controlapi.ValidLabel(name) {
		return refuse(controlapi.CodeInvalid,
			"A computer's name has 1 to 63 characters: lower-case letters, digits and hyphens.")
	}
	if controlapi.Reserved(name) || name+"."+n.Domain == n.AuthHost {
		return controlapi.Refuse(controlapi.CodeInvalid, words.Of(`The name "%s" is reserved. Choose another one.`, name))
	}
	return nil
}

// serviceNames are the mailboxes and services of RFC 2142, names that programs
// look up by themselves in the domain they are in, and names that a person would
// take for the service's own and trust with a password.
var serviceNames = strings.Fields(`
	abuse hostmaster info list list-request marketing noc news postmaster sales security support usenet uucp webmaster
	autoconfig autodiscover broadcasthost imaps ipp isatap kerberos ldap local localdomain localhost mailer-daemon
	mta-sts ntp openpgpkey pop3s sftp smtps ssh wpad webmail
	account accounts admin administrator api auth billing id identity idp login logout no-reply noreply oauth oidc
	password passwords pay payment payments register root saml secure signin signup ssl ssladmin ssladministrator
	sslwebmaster sso sysadmin system tls verify
	about app apps assets blog cdn contact control dashboard docs download downloads gateway help legal
	porchlight privacy proxy static status terms vpn`)

// serversPattern are names of servers of which there may be several: ns1, mx2, and a
// node's tunnel address such as relay1.
var serversPattern = regexp.MustCompile(`^(dns|ftp|imap|mail|mx|node|ns|pop|pop3|relay|smtp|www)[0-9]*$`)

// looksLikeService says whether no computer may take a name any more. The hyphens
// in third and fourth place are kept for encodings such as xn-- (RFC 5891, section
// 4.2.3.1), which browsers show as other letters.
func looksLikeService(name string) bool {
	return slices.Contains(serviceNames, name) || serversPattern.MatchString(name) || len(name) >= 4 && name[2:4] == "--"
}

// formerName is the last account that gave up a computer's name. It has no end:
// a browser may hold an app's service worker for as long as it likes. There is at
// most one for each name.
type formerName struct {
	AccountID string `json:"accountId"`
	EmailHash string `json:"emailHash"` // keyed, for an account that is made again
	// KeptUntil is when others may take the name.
	KeptUntil time.Time `json:"keptUntil,omitzero"`
	// Mixed says that even before that account it was another's.
	Mixed bool `json:"mixed,omitempty"`
	// Suspended is the id of the computer that was removed while the operator had suspended
	// it: nobody takes its name before that is resumed.
	Suspended string `json:"suspended,omitempty"`
}

const purposeFormer = "former owner of a name"

// freeName keeps the name of a computer that is being removed back for its
// account.
func (s *core) freeName(tx *txn, c computer) {
	owner, _ := get[Account](tx, keyAccount(c.OwnerID))
	row := formerName{AccountID: c.OwnerID, EmailHash: s.emailHash(owner.Email), Mixed: c.Former}
	if tx.suspendedItself(c.ID) {
		row.Suspended = c.ID
	}
	if kept := tx.scan(keyKeptNames(c.OwnerID), "", maxKeptNames); len(kept) < maxKeptNames {
		row.KeptUntil = tx.now.UTC().Add(keepName)
		tx.put(keyKeptName(c.OwnerID, c.Name), struct{}{}, keepName)
	}
	tx.put(keyFormerName(c.Name), row, 0)
}

// takeName says whether a name that no computer has was another account's before.
// It refuses with CodeInvalid a name that this account may not take.
func (s *core) takeName(tx *txn, name string, owner Account) (former bool, err error) {
	if looksLikeService(name) && !s.cfg.Local() { // under localhost there are no others to mislead
		return false, controlapi.Refuse(controlapi.CodeInvalid, words.Of(`The name "%[1]s" is kept for services of %[2]s itself. Choose another one.`, name, s.cfg.Domain))
	}
	row, found := get[formerName](tx, keyFormerName(name))
	if !found {
		return false, nil
	}
	if row.Suspended != "" && tx.suspendedItself(row.Suspended) {
		return false, tx.refuseSuspended()
	}
	same := row.AccountID == owner.ID
	if !same && row.EmailHash != s.emailHash(owner.Email) && tx.now.Before(row.KeptUntil) {
		return false, controlapi.Refuse(controlapi.CodeInvalid, words.Of(`The name "%[1]s" was another account's and is kept back for it until %[2]s. Choose another one.`,
			name, words.Day{Day: row.KeptUntil, Year: true}))
	}
	tx.delete(keyKeptName(row.AccountID, name))
	return row.Mixed || !same, nil
}

func (s *core) emailHash(email string) string {
	return fmt.Sprintf("%x", s.mark(purposeFormer, email))
}

// validText says whether what somebody called something, an app's label or an app
// password's name, may be shown to people, with as many characters as most. An
// agent checks its labels by rules that are no wider; this is for one that does
// not, because what it reports is read on pages and in mails of this service.
func validText(text string, most int) bool {
	if text != strings.TrimSpace(text) || !utf8.ValidString(text) || utf8.RuneCountInString(text) > most {
		return false
	}
	seen := false
	for _, r := range text {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || steersText(r) {
			return false
		}
		seen = seen || unicode.IsGraphic(r) && !unicode.IsSpace(r)
	}
	return seen
}

// steersText is true for characters that change the direction of the text around
// them, with which a label could pass for another, or rewrite the sentence it
// stands in.
func steersText(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}
