package control

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
)

// A computer's name is a host of the service's own domain, NAME.DOMAIN. So some
// names are nobody's: those that programs and people take for the service's own.
// And a name that another account had is kept back for a while: browsers still
// hold what that account's apps left there.

const (
	// KeepName is how long the name of a removed computer is kept back for the
	// account that had it.
	KeepName = 90 * 24 * time.Hour
	// maxKeptNames is how many names are kept back for one account: making and
	// removing computers is not to use up everybody's names.
	maxKeptNames = MaxComputers
)

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
	porchlight privacy proxy relay static status terms vpn`)

// serversPattern are names of servers of which there may be several: ns1, mx2.
var serversPattern = regexp.MustCompile(`^(dns|ftp|imap|mail|mx|ns|pop|pop3|smtp|www)[0-9]*$`)

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
}

const purposeFormer = "former owner of a name"

// freeName keeps the name of a computer that is being removed back for its
// account.
func (s *Service) freeName(tx *txn, c computer) error {
	owner, _, err := get[Account](tx, keyAccount(c.OwnerID))
	if err != nil {
		return err
	}
	row := formerName{AccountID: c.OwnerID, EmailHash: s.emailHash(owner.Email), Mixed: c.Former}
	kept, err := tx.Scan(keyKeptNames(c.OwnerID), "", maxKeptNames)
	if err != nil {
		return err
	}
	if len(kept) < maxKeptNames {
		row.KeptUntil = tx.now.UTC().Add(KeepName)
		if err := put(tx, keyKeptName(c.OwnerID, c.Name), struct{}{}, KeepName); err != nil {
			return err
		}
	}
	return put(tx, keyFormerName(c.Name), row, 0)
}

// takeName says whether a name that no computer has was another account's before.
// It refuses with CodeInvalid a name that this account may not take.
func (s *Service) takeName(tx *txn, name string, owner Account) (former bool, err error) {
	if looksLikeService(name) && !s.Local() { // under localhost there are no others to mislead
		return false, refuse(controlapi.CodeInvalid, "The name \""+name+"\" is kept for services of "+s.cfg.Domain+" itself. Choose another one.")
	}
	row, found, err := get[formerName](tx, keyFormerName(name))
	if err != nil || !found {
		return false, err
	}
	same := row.AccountID == owner.ID
	if !same && row.EmailHash != s.emailHash(owner.Email) && tx.now.Before(row.KeptUntil) {
		return false, refuse(controlapi.CodeInvalid, fmt.Sprintf("The name %q was another account's and is kept back for it until %s. Choose another one.",
			name, row.KeptUntil.Format("2 January 2006")))
	}
	return row.Mixed || !same, tx.Delete(keyKeptName(row.AccountID, name))
}

func (s *Service) emailHash(email string) string {
	return fmt.Sprintf("%x", s.seal(purposeFormer, email))
}
