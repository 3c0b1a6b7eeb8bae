package control

import (
	"strings"
	"time"
)

// The rows of the store. Values are JSON; secrets appear only as hashes.
//
//	account/ID                      account
//	account-email/EMAIL             account id
//	account-domain/DOMAIN/EMAIL     account id
//	account-below/DOMAIN/EMAIL      account id: by the domain from its end, net.example.mail.
//	computer/ID                     computer
//	computer-name/NAME              computer id
//	owned-computer/ACCOUNT/ID       nothing: the index of computer by owner
//	usage/COMPUTER/MONDAY/NODE      usageWeek, and usage-sum/MONDAY/NODE of all computers
//	certificate-ends/TIME/COMPUTER  nothing: the index of computer.CertificateEnds by time
//	former-name/NAME                formerName: whose name it was, when no longer
//	kept-name/ACCOUNT/NAME          nothing: the names kept back for an account
//	computer-apps/ID                []controlapi.App
//	computer-seen/ID                time.Time: when its agent was last here
//	computer-domains/ID             []domain: its own domains
//	domain/NAME                     domainHolder: whose an own domain is
//	domain-due/TIME/COMPUTER/NAME   nothing: the index of domain by when it is looked at
//	certifying/COMPUTER             certifying: what the DNS says of it
//	challenge-due/TIME/COMPUTER     its short name: the index of certifying by when challenges are over
//	challenge-check                 challenge: an operator's, to see whether it is seen
//	credential/HASH                 computer id
//	ended-credential/EVENT/ID       computer id, for other nodes, for a while
//	enrolment/DEVICEHASH            enrolment
//	user-code/HASH                  hash of the device code
//	person/COMPUTER/ACCOUNT         person
//	ends/TIME/COMPUTER/ACCOUNT/APP  nothing: the index of person.Until by time
//	ended/TIME/COMPUTER/ACCOUNT/APP nothing: the index of person.Ended by time
//	membership/ACCOUNT/COMPUTER     nothing: the index of person by account
//	version/COMPUTER                opaque, new whenever the computer's snapshot changed
//	untold                          the version of the last change that no node was told of
//	change/COMPUTER                 int64: how often that was, in this line
//	line                            opaque: names the line, see Snapshot.Line; ended by a restore
//	audit/NODE/NUMBER, audit-end/NODE, audit-checkpoint/NODE
//	                                of package audit: its chains, where each ends, and begins
//	operator/ACCOUNT                Operator
//	admin-token/ID                  adminToken
//	index-made/INDEX                made: how far rows of before have their keys in an index
//	operator-session/HASH           operatorSession
//	suspended/KIND/ID               Suspension
//	session/HASH                    session
//	account-session/ACCOUNT/HASH    nothing: the index of session by account
//	passkey/HASH                    passkey, by its credential id
//	account-passkey/ACCOUNT/HASH    nothing: the index of passkey by account
//	computer-passkeys/COMPUTER      []controlapi.AddedPasskey: its owner's new ones, for a while
//	recovery/EMAILHASH              recovery: the codes of an account that may sign in without mail
//	recovering/ACCOUNT              recovering: what the operator began
//	passkey-answered/HASH           nothing: a challenge, or a state, that was answered, for a while
//	login/HASH                      login, by issuer and subject
//	account-login/ACCOUNT/HASH      nothing: the index of login by account
//	login-session/HASH              account id: of a session at a provider, for as long as one here
//	logout-used/HASH                nothing: a provider's logout token that came, for a while
//	signin/LINKHASH                 signIn
//	signin-browser/BROWSERHASH      link hash
//	signin-tries/BROWSERHASH        codes typed
//	invitation/LINKHASH             invitation
//	used-invitation/LINKHASH        usedInvitation, for a while
//	invitation-name/NAME            link hash: of an invitation's other address
//	person-invitation/COMPUTER/ACCOUNT/LINKHASH  nothing: the index of invitation by person
//	visit/HASH                      visit
//	client-document/HASH            client that describes itself at its id
//	client-hosts                    []AllowedHost: where such may be
//	client/ID                       client
//	client-name/NAME/ID, client-id/ID/ID  client id: the indexes of both kinds, in small letters
//	client-keys/HASH                fetchedKeys: those of a client whose document says where
//	authorization/HASH              authorization
//	assertion/HASH                  nothing: a client's assertion that was used, for a while
//	grant/ID                        grant
//	account-grant/ACCOUNT/ID, computer-grant/COMPUTER/ID, client-grant/CLIENT/ID
//	                                nothing: the indexes of grants not revoked
//	revoked-grant/COMPUTER/ID       controlapi.RevokedGrant, while its tokens live
//	password/COMPUTER/ACCOUNT/ID    appPassword
//	password-form/ACCOUNT/HASH      nothing: forms that have made an app password
//	knock/COMPUTER/ACCOUNT/APP      knock
//	knock-offer/COMPUTER/ACCOUNT/APP    knockOffer
//	knock-refused/COMPUTER/ACCOUNT/APP  time.Time: since when this person is not heard there
//	knock-muted/COMPUTER/ACCOUNT    time.Time: since when this person is not heard
//	knock-asked/ACCOUNT/HASH        knockAsked: what the page knows of who asked
//	computer-knocks/ID              controlapi.KnocksFrom
//	budget/KIND/HASH                window
//	familiar/EMAILHASH              familiarNetworks: where mails to it have signed in
//	keys                            storedKeys
//	outbox/TIME-ID, mail/TIME-ID, mail-failed/TIME-ID
//	                                of package mail: mails kept, to be delivered, and given up
//	mail-failed-about/COMPUTER/TIME-ID
//	                                of package mail: whom such a mail did not reach
//	relay-node/NODE                 of package relay: its nodes
//	acme/KEY, acme-lock/NAME        of package certstore: ACME's account, certificates
//	                                and keys, sealed, and who has a lock
//	schema                          of package kv: how many migrations the rows have been through
//	schema-lease                    of package kv: who brings them up to date now
func keyAccount(id string) string         { return "account/" + id }
func keyAccountEmail(email string) string { return "account-email/" + email }
func keyComputer(id string) string        { return "computer/" + id }
func keyComputerName(name string) string  { return "computer-name/" + name }
func keyFormerName(name string) string    { return "former-name/" + name }
func keyKeptNames(account string) string  { return "kept-name/" + account + "/" }
func keyKeptName(account, name string) string {
	return keyKeptNames(account) + name
}
func keyComputerSeen(id string) string    { return "computer-seen/" + id }
func keyComputerApps(id string) string    { return "computer-apps/" + id }
func keyComputerDomains(id string) string { return "computer-domains/" + id }
func keyDomain(name string) string        { return "domain/" + name }
func keyDomainDue(at time.Time, computer, name string) string {
	return keyDomainsDue + at.UTC().Format(endTime) + "/" + computer + "/" + name
}
func keyCertifying(computer string) string { return "certifying/" + computer }
func keyChallengeDue(at time.Time, computer string) string {
	return keyChallengesDue + at.UTC().Format(endTime) + "/" + computer
}
func keyCredential(hash string) string  { return "credential/" + hash }
func keyEnrolment(hash string) string   { return "enrolment/" + hash }
func keyUserCode(hash string) string    { return "user-code/" + hash }
func keyPersons(computer string) string { return "person/" + computer + "/" }
func keyPerson(computer, account string) string {
	return keyPersons(computer) + account
}
func keyMemberships(account string) string { return "membership/" + account + "/" }
func keyMembership(account, computer string) string {
	return keyMemberships(account) + computer
}
func keyChange(computer string) string      { return "change/" + computer }
func keyVersion(computer string) string     { return "version/" + computer }
func keyOperator(account string) string     { return "operator/" + account }
func keyOperatorSession(hash string) string { return "operator-session/" + hash }
func keySuspended(kind SuspensionKind, id string) string {
	if kind == SuspendClient {
		id = clientRest(id)
	}
	return keySuspensions + string(kind) + "/" + id
}
func keySession(hash string) string              { return "session/" + hash }
func keyAccountSessions(account string) string   { return "account-session/" + account + "/" }
func keyAccountSession(account, h string) string { return keyAccountSessions(account) + h }
func keyPasskey(hash string) string              { return "passkey/" + hash }
func keyAccountPasskeys(account string) string   { return "account-passkey/" + account + "/" }
func keyAccountPasskey(account, h string) string { return keyAccountPasskeys(account) + h }
func keyComputerPasskeys(id string) string       { return "computer-passkeys/" + id }
func keyPasskeyAnswered(hash string) string      { return "passkey-answered/" + hash }
func keyRecovery(email string) string            { return "recovery/" + hashOf(purposeRecovery, email) }
func keyRecovering(account string) string        { return keysRecovering + account }
func keyLogin(hash string) string                { return "login/" + hash }
func keyAccountLogins(account string) string     { return "account-login/" + account + "/" }
func keyAccountLogin(account, h string) string   { return keyAccountLogins(account) + h }
func keyLoginSession(hash string) string         { return "login-session/" + hash }
func keyLogoutUsed(hash string) string           { return "logout-used/" + hash }
func keySignIn(linkHash string) string           { return "signin/" + linkHash }
func keySignInBrowser(hash string) string        { return "signin-browser/" + hash }
func keySignInTries(hash string) string          { return "signin-tries/" + hash }
func keyInvitation(linkHash string) string       { return "invitation/" + linkHash }
func keyUsedInvitation(linkHash string) string   { return "used-invitation/" + linkHash }
func keyInvitationName(name string) string       { return "invitation-name/" + name }
func keyPersonInvitations(computer, account string) string {
	return "person-invitation/" + computer + "/" + account + "/"
}
func keyPersonInvitation(computer, account, linkHash string) string {
	return keyPersonInvitations(computer, account) + linkHash
}
func keyVisit(hash string) string        { return "visit/" + hash }
func keyBudget(kind, hash string) string { return "budget/" + kind + "/" + hash }
func keyFamiliar(email string) string    { return "familiar/" + hashOf(purposeFamiliar, email) }

// keyClient is the row of a client, registered or described at its id, which as an address
// is too long for a key, and another's may begin with it.
func keyClient(id string) string {
	if isAddress(id) {
		return keyDocuments + clientRest(id)
	}
	return keyClients + id
}

func isAddress(clientID string) bool { return strings.HasPrefix(clientID, "https://") }

func clientRest(id string) string {
	if isAddress(id) {
		return hashOf(purposeDocument, id)
	}
	return id
}
func keyAuthorization(hash string) string      { return "authorization/" + hash }
func keyClientKeys(id string) string           { return "client-keys/" + hashOf(purposeAssertion, id) }
func keyAssertion(hash string) string          { return "assertion/" + hash }
func keyGrant(id string) string                { return "grant/" + id }
func keyAccountGrants(account string) string   { return "account-grant/" + account + "/" }
func keyComputerGrants(computer string) string { return "computer-grant/" + computer + "/" }
func keyClientGrants(client string) string     { return "client-grant/" + clientRest(client) + "/" }
func keyRevokedGrants(computer string) string  { return "revoked-grant/" + computer + "/" }

func keyPasswords(computer string) string { return "password/" + computer + "/" }
func keyPersonPasswords(computer, account string) string {
	return keyPasswords(computer) + account + "/"
}
func keyPassword(computer, account, id string) string {
	return keyPersonPasswords(computer, account) + id
}
func keyPasswordForm(account, hash string) string { return "password-form/" + account + "/" + hash }

// endTime is how the indexes of ends write a time: as it sorts.
const endTime = "20060102T150405Z"

func keyEnd(prefix string, at time.Time, computer, account, app string) string {
	return prefix + at.UTC().Format(endTime) + "/" + computer + "/" + account + "/" + app
}

func keyKnocks(computer string) string        { return "knock/" + computer + "/" }
func keyKnockOffers(computer string) string   { return "knock-offer/" + computer + "/" }
func keyKnocksRefused(computer string) string { return "knock-refused/" + computer + "/" }
func keyKnocksMuted(computer string) string   { return "knock-muted/" + computer + "/" }
func keyKnocksAsked(account string) string    { return "knock-asked/" + account + "/" }
func keyComputerKnocks(id string) string      { return "computer-knocks/" + id }

// knockRest is what follows the computer in the keys of a person's knock at an app.
func knockRest(account, app string) string {
	if app == "" {
		app = "." // the launcher; no app has this id
	}
	return account + "/" + app
}

const (
	keySuspensions = "suspended/"
	keyKeys        = "keys"
	keyClients     = "client/"
	// keyDocuments are clients that describe themselves, keyHosts where they may.
	keyDocuments = "client-document/"
	keyHosts     = "client-hosts"
	keyEnds      = "ends/"
	keyEnded     = "ended/"

	keyDomainsDue = "domain-due/"

	keyCertificateEnds = "certificate-ends/"
	keyChallengesDue   = "challenge-due/"
	keyChallengeCheck  = "challenge-check"

	keysRecovering = "recovering/"

	keyEndedCredentials = "ended-credential/"
	keyUntold           = "untold"
	// keyLine names the line in which changes are counted: from the first start, or since
	// rows were restored or an operator began another.
	keyLine = "line"
)

// Account is somebody who can sign in. Accounts of owners and of members do not
// differ; what they may reach is written per computer.
type Account struct {
	ID        string    `json:"id"`    // opaque and stable: sub, X-Service-User
	Email     string    `json:"email"` // canonical, see ParseEmail
	CreatedAt time.Time `json:"createdAt"`
	// MayEnrol is set for accounts the operator made or that own a computer;
	// see Enrolment.MayEnrol for the others.
	MayEnrol bool `json:"mayEnrol,omitempty"`
	// Suspended is since when the operator has ended what it may; zero while they have not.
	Suspended time.Time `json:"suspended,omitzero"`
	// MailOff says that no mail signs in, see Recovery.
	MailOff bool `json:"mailOff,omitempty"`
	// NotBefore is when its person last said that somebody else had been in: what was allowed
	// before then, and is not taken up yet, is void.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// computer as stored. The device credential is kept as a hash only.
type computer struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	OwnerID        string    `json:"ownerId"`        // account id
	CredentialHash string    `json:"credentialHash"` // "" while it is not connected
	CreatedAt      time.Time `json:"createdAt"`
	ConnectedAt    time.Time `json:"connectedAt,omitzero"` // when it got that credential
	// Machine and Platform are what it called itself when it was enrolled.
	Machine  string `json:"machine,omitempty"`
	Platform string `json:"platform,omitempty"`
	// Former says that the name was another account's before.
	Former bool `json:"former,omitempty"`
	// AppGrants says that its agent, as it was here last, knows grants for some apps.
	AppGrants bool `json:"appGrants,omitempty"`
	// TellOff says that people with an app here may know since when it is off, see
	// controlapi.Apps.
	TellOff bool `json:"tellOff,omitempty"`
	// Fills is that of controlapi.Apps.
	Fills []string `json:"fills,omitempty"`
	// CertificateEnds is that of controlapi.Apps.
	CertificateEnds time.Time `json:"certificateEnds,omitzero"`
	// Grouped says that some row of a person may have a ByGroup.
	Grouped bool `json:"grouped,omitempty"`
	// Suspended is since when nothing goes there, its own or its owner's suspension.
	Suspended time.Time `json:"suspended,omitzero"`
	// Recovering is until when the last recovery of its owner's waited, or waits: whether it
	// does, the account's row says.
	Recovering time.Time `json:"recovering,omitzero"`
}

// computerByName finds a computer. Rows of it that are read next can be named: they
// come in the same round trip.
func computerByName(tx *txn, short string, next ...func(id string) string) (computer, bool) {
	id, found := get[string](tx, keyComputerName(short))
	if !found {
		return computer{}, false
	}
	keys := []string{keyComputer(id)}
	for _, key := range next {
		keys = append(keys, key(id))
	}
	tx.getAll(keys...)
	return get[computer](tx, keyComputer(id))
}

// findByName is computerByName for a computer that has to be there, as find is get.
func findByName(tx *txn, short string, none error, next ...func(id string) string) (computer, error) {
	c, found := computerByName(tx, short, next...)
	if !found {
		return computer{}, none
	}
	return c, nil
}
