package control

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
)

// Visits. An agent sends a browser without a session here (RFC 6749 and RFC
// 7636 in shape); this side says who is there, and whether they may, before any
// code exists, so that the owner of the computer learns nothing of strangers.

// Visits are people on their way to an app.
type Visits struct {
	*core
	domains *Domains
}

// visitLife is how long a visitor's code can be redeemed.
const visitLife = 60 * time.Second

// VisitRequest is a well-formed request for a visitor's code. Whether the
// computer and the app exist is not known yet.
type VisitRequest struct {
	Computer    string // short name
	App         string // app id, empty for the launcher
	RedirectURI string
	Host        string // of RedirectURI, with its port: what the visitor sees
	// Own is the own domain that Host is, and AppHost the app's host it stands for; empty of
	// a host of the computer's.
	Own, AppHost string
	State        string
	// Proofs are the ways of having signed in that will do for the app; nil for all.
	Proofs    []controlapi.Proof
	Challenge string // base64url of a SHA-256, 43 characters
}

// Origin of the app, as it stands in a Content-Security-Policy.
func (v VisitRequest) Origin() string { return "https://" + v.Host }

var statePattern = regexp.MustCompile(`^[\x21-\x7e]{1,512}$`)

// maxVisitQuery bounds the query of PathVisit, in bytes.
const maxVisitQuery = 2048

// Parse reads the query of PathVisit. Every parameter must be there exactly
// once and be well formed, and the redirect URI must be the callback of a host
// of the computer named; anything else is refused with CodeInvalid. Nothing is
// looked up, so that the answer tells nothing about what exists, but own domains: what is
// proven there, the DNS says anyway, and nobody is sent to a name that is not.
func (s *Visits) Parse(ctx context.Context, rawQuery string) (VisitRequest, error) {
	malformed := refuse(controlapi.CodeInvalid, "This address is not complete. Go back to the app and open it again.")
	if len(rawQuery) > maxVisitQuery {
		return VisitRequest{}, malformed
	}
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return VisitRequest{}, malformed
	}
	for _, name := range []string{
		controlapi.ParamComputer, controlapi.ParamApp, controlapi.ParamRedirectURI, controlapi.ParamState,
		controlapi.ParamCodeChallenge, controlapi.ParamCodeChallengeMethod,
	} {
		// The launcher's app is empty, so its parameter may be left out.
		if n := len(q[name]); n != 1 && !(n == 0 && name == controlapi.ParamApp) {
			return VisitRequest{}, malformed
		}
	}
	v := VisitRequest{
		Computer:    q.Get(controlapi.ParamComputer),
		App:         q.Get(controlapi.ParamApp),
		RedirectURI: q.Get(controlapi.ParamRedirectURI),
		State:       q.Get(controlapi.ParamState),
		Challenge:   q.Get(controlapi.ParamCodeChallenge),
	}
	if v.Proofs, err = proofsOf(q[controlapi.ParamProof]); err != nil {
		return VisitRequest{}, malformed
	}
	rest, ok1 := strings.CutPrefix(v.RedirectURI, "https://")
	host, ok2 := strings.CutSuffix(rest, controlapi.CallbackPath)
	v.Host = host
	switch {
	case !ok1 || !ok2 || !s.placeFormed(v.Computer, v.App, host) && !s.ownDomain(ctx, &v),
		!statePattern.MatchString(v.State),
		!s256Pattern.MatchString(v.Challenge),
		q.Get(controlapi.ParamCodeChallengeMethod) != "S256":
		return VisitRequest{}, malformed
	}
	return v, nil
}

// ownDomain says whether a visit is to an own domain that is proven now, and notes which.
func (s *Visits) ownDomain(ctx context.Context, v *VisitRequest) bool {
	name := controlapi.HostName(v.Host)
	if v.Host != s.cfg.withPort(name) || !isHostName(name) || v.App == "" || !appIDPattern.MatchString(v.App) {
		return false
	}
	route, err := s.domains.Route(ctx, name)
	if err != nil || !route.Proven || route.Computer != v.Computer || route.AppID != v.App {
		return false
	}
	v.Own, v.AppHost = name, s.cfg.withPort(route.Host)
	return true
}

// placeFormed says whether a computer's short name, an app's id and a host can belong
// together: the host is the computer's or below it. Nothing is looked up.
func (s *core) placeFormed(short, appID, host string) bool {
	root := s.cfg.withPort(short + "." + s.cfg.Domain)
	name, below := strings.CutSuffix(host, "."+root)
	return s.cfg.ValidShortName(short) == nil && (host == root || below && controlapi.ValidLabel(name)) &&
		(appID == "" || appIDPattern.MatchString(appID))
}

// proofsOf reads the ways of having signed in that will do, as an agent writes them. What it
// writes of a later version nobody has shown here.
func proofsOf(written []string) (proofs []controlapi.Proof, err error) {
	if len(written) == 0 {
		return nil, nil
	}
	for name := range strings.SplitSeq(written[0], ",") {
		switch proof := controlapi.Proof(name); proof {
		case controlapi.ProofMail, controlapi.ProofPasskey, controlapi.ProofCode, controlapi.ProofProvider:
			proofs = append(proofs, proof)
		}
	}
	if len(written) > 1 || len(proofs) == 0 {
		return nil, errors.New("no way of signing in")
	}
	return proofs, nil
}

// ErrProof is of somebody who may open an app, and has signed in by none of the ways that
// will do for it.
var ErrProof = errors.New("another way of signing in is asked for")

// visit is an issued code, stored under its hash.
type visit struct {
	ComputerID  string `json:"computerId"`
	AccountID   string `json:"accountId"`
	AppID       string `json:"appId"`
	RedirectURI string `json:"redirectUri"`
	Challenge   string `json:"challenge"`
	// Own is the own domain that they are on the way to; empty for the app's own host.
	Own string `json:"own,omitempty"`
	// Proof is how the person showed who they are; absent: by mail.
	Proof controlapi.Proof `json:"proof,omitempty"`
	// Browser, Client and SignedIn are the id of the browser's session here, the address that
	// was made from, and when.
	Browser  string    `json:"browser,omitempty"`
	Client   string    `json:"client,omitempty"`
	SignedIn time.Time `json:"signedIn,omitzero"`
	// Epoch is the person's when the code was issued; absent in those of earlier versions.
	Epoch *int64 `json:"epoch,omitempty"`
}

// Begin answers a signed-in visitor with the address to send their browser to:
// the redirect URI with code and state. Somebody who may not open the app, a
// computer or app that does not exist, and a host that is not the app's are all
// refused alike, with CodeForbidden. Then somebody who signed in by a way that will not do
// is, with ErrProof.
func (s *Visits) Begin(ctx context.Context, v VisitRequest, session Session) (string, error) {
	account := session.Account
	if err := s.pace.spend(s.now(), budgetVisits.of(account.ID)); err != nil {
		return "", err
	}
	code := newToken()
	err := s.update(ctx, func(tx *txn) error {
		refused := refuse(controlapi.CodeForbidden, "This isn’t shared with you.")
		c, err := findByName(tx, v.Computer, refused, keyComputerApps, func(id string) string { return keyPerson(id, account.ID) })
		if err != nil {
			return err
		}
		p, err := find[person](tx, keyPerson(c.ID, account.ID), refused)
		if err != nil {
			return err
		}
		if !p.asOf(tx.now).mayOpen(v.App) || !s.hostIsApps(tx, c, v.App, cmp.Or(v.AppHost, v.Host)) || v.Own != "" && !s.provenIn(tx, v.Own, c.ID, v.App) {
			return refused
		}
		if !c.Suspended.IsZero() {
			return tx.refuseSuspended()
		}
		if v.Proofs != nil && !slices.Contains(v.Proofs, session.Proof) {
			return ErrProof
		}
		tx.put(keyVisit(hashOf(purposeVisit, code)), visit{
			ComputerID: c.ID, AccountID: account.ID, AppID: v.App,
			RedirectURI: v.RedirectURI, Own: v.Own, Challenge: v.Challenge, Proof: session.Proof,
			Browser: session.ID, Client: addressOf(session.Client), SignedIn: session.CreatedAt, Epoch: &p.Epoch,
		}, visitLife)
		return nil
	})
	if err != nil {
		return "", err
	}
	return v.RedirectURI + "?" + url.Values{
		controlapi.ParamCode:  {code},
		controlapi.ParamState: {v.State},
	}.Encode(), nil
}

// hostIsApps says whether the host of a visit is that of the app it names,
// which must be live; the launcher is at the root host and at portal.
func (s *core) hostIsApps(tx *txn, c computer, appID, host string) bool {
	root := s.computer(c).Host
	if appID == "" {
		return host == root || host == controlapi.Portal+"."+root
	}
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	i := slices.IndexFunc(apps, func(a controlapi.App) bool { return a.ID == appID })
	return i >= 0 && apps[i].Live && host == apps[i].Name+"."+root
}

// Redeem exchanges a visitor's code for who they are. Only the computer the
// code was issued for can use it, once, with the verifier of its challenge and
// the same redirect URI; everything else is refused with CodeInvalidGrant, and
// a code presented by its own computer is used up whatever else was wrong.
func (s *Visits) Redeem(ctx context.Context, computerID string, r controlapi.Redeem) (controlapi.Visitor, error) {
	refused := refuse(controlapi.CodeInvalidGrant, "This sign-in was used already, or took too long. Open the app again.")
	if len(r.Code) != tokenLen || !verifierPattern.MatchString(r.CodeVerifier) {
		return controlapi.Visitor{}, refused
	}
	key := keyVisit(hashOf(purposeVisit, r.Code))
	return updated(ctx, s.core, func(tx *txn) (controlapi.Visitor, error) {
		row, err := find[visit](tx, key, refused)
		if err != nil {
			return controlapi.Visitor{}, err
		}
		if row.ComputerID != computerID {
			return controlapi.Visitor{}, refused
		}
		tx.delete(key)
		tx.getAll(keyPerson(computerID, row.AccountID), keyComputer(computerID))
		// Their access may have ended since the code was issued.
		p, err := find[person](tx, keyPerson(computerID, row.AccountID), kept{refused})
		if err != nil {
			return controlapi.Visitor{}, err
		}
		if c, _ := get[computer](tx, keyComputer(computerID)); !c.Suspended.IsZero() {
			return controlapi.Visitor{}, kept{tx.refuseSuspended()}
		}
		if row.Epoch != nil && p.Epoch > *row.Epoch { // signed out since
			return controlapi.Visitor{}, kept{refused}
		}
		if row.Own != "" && !s.provenIn(tx, row.Own, computerID, row.AppID) {
			return controlapi.Visitor{}, kept{refused}
		}
		if !p.asOf(tx.now).mayOpen(row.AppID) || row.RedirectURI != r.RedirectURI || !proves(r.CodeVerifier, row.Challenge) {
			return controlapi.Visitor{}, kept{refused}
		}
		visitor := controlapi.Visitor{AccountID: p.AccountID, Email: p.Email, Role: p.Role, AppID: row.AppID, Epoch: p.Epoch, Proof: row.Proof}
		if p.Role == controlapi.RoleOwner { // which browsers others have is not the owner's business
			visitor.Browser, visitor.Client, visitor.SignedIn = row.Browser, row.Client, row.SignedIn
		}
		return visitor, nil
	})
}
