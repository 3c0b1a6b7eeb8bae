package control

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/control/controlapi"
)

// errReplay is a refresh token of a grant that is not its valid one.
var errReplay = errors.New("used refresh token")

// Refresh uses a refresh token up and hands out the next pair. A client that
// gives no id is the token's, which its secret proves. It refuses with
// CodeInvalidClient; with CodeAccessDenied for every token of a grant that was
// revoked, or whose person cannot reach the computer any more; and with
// CodeInvalidGrant for a token that is unknown, too old, another client's, used
// before, or of a grant that was dropped. None of these changes anything. With resources
// the grant is narrowed to what they name, for good (RFC 8707), and it refuses with
// CodeInvalidTarget what is not in it.
//
// It is what a service with many clients does most, so it is one transaction,
// and with PostgreSQL two round trips: the rows it looks at, and the row it
// changes with the commit.
func (s *Grants) Refresh(ctx context.Context, cred Credentials, token string, resources ...string) (Tokens, error) {
	cred, err := s.clients.prove(ctx, cred, true)
	if err != nil {
		return Tokens{}, err
	}
	id, wellFormed := grantOfToken(token)
	if !wellFormed {
		id = ""
	}
	hash, secret, other := hashOf(purposeRefresh, token), newToken(), controlapi.LimitedGrantID(newID())

	var g grant
	var c computer
	var next string
	err = s.update(ctx, func(tx *txn) (err error) {
		s.readAhead(tx, cred, id, len(resources) > 0)
		if g, err = tx.refreshed(cred, id, hash); err != nil {
			return err
		}
		if c, err = tx.stillReached(g); err != nil {
			return err
		}
		if err = s.narrow(tx, c, &g, other, resources); err != nil {
			return err
		}
		next = refreshToken(g.ID, secret)
		g.RefreshHash = hashOf(purposeRefresh, next)
		tx.putGrant(g)
		return nil
	})
	if errors.Is(err, errReplay) {
		s.log.Warn("a used refresh token was presented again", "grant", g.ID, "client", g.ClientID)
		return Tokens{}, noGrant(whyTokenUsed)
	}
	if err != nil {
		return Tokens{}, err
	}
	s.parties.note(g)
	return s.tokens(g, c, next)
}

// refreshed is the grant with that id, "" for none, whose valid refresh token this is the
// hash of, shown by its own client. With errReplay it returns the grant, too.
func (t *txn) refreshed(cred Credentials, id, hash string) (g grant, err error) {
	var found bool
	if id != "" {
		g, found = get[grant](t, keyGrant(id))
	}
	if cred.ID == "" && cred.Secret != "" {
		if !found {
			return g, noGrant(whyNoToken)
		}
		cred.ID = g.ClientID
	}
	client, err := authenticateClient(t, cred)
	switch {
	case err != nil:
		return g, err
	case !found || g.ClientID != client.ID:
		return g, noGrant(whyNoToken)
	case g.Dropped:
		return g, noGrant(whyDropped)
	case !g.RevokedAt.IsZero(), controlapi.IsLimitedGrant(g.ID) && len(g.Apps) == 0:
		return g, accessEnded() // also where a program that does not know of apps wrote the row
	case subtle.ConstantTimeCompare([]byte(g.RefreshHash), []byte(hash)) != 1:
		return g, errReplay
	}
	return g, nil
}

// stillReached is the computer that the person of a grant can still reach.
func (t *txn) stillReached(g grant) (computer, error) {
	c, found := get[computer](t, keyComputer(g.ComputerID))
	if err := cmp.Or(t.refuseSuspendedClient(g.ClientID), t.refuseSuspendedAt(c, g.AccountID)); err != nil {
		return c, err
	}
	if !found || !mayReach(t, g.ComputerID, g.AccountID) {
		return c, accessEnded()
	}
	return c, nil
}

// narrow leaves a grant no more than these resources name. One that was for every app is a
// new one from then on, with the id other, which says so.
func (s *Grants) narrow(tx *txn, c computer, g *grant, other string, resources []string) error {
	apps, asked, err := s.narrowed(tx, c, g.AccountID, g.ClientID, g.Apps, g.Asked, resources)
	switch {
	case err != nil:
		return err
	case len(apps) > 0 && !c.AppGrants:
		return noGrant(whyOldAgent)
	case len(apps) > 0 && len(g.Apps) == 0:
		g.Narrowed = other
		tx.put(keyGrant(g.ID), *g, grantLife)
		tx.dropGrant(g.ID)
		g.ID, g.IndexedAt, g.Narrowed = other, time.Time{}, ""
	case len(apps) < len(g.Apps):
		tx.touch(g.ComputerID)
	}
	g.Apps, g.Asked = apps, asked
	return nil
}

// Revoke ends the grant of a refresh or access token at the wish of its own client (RFC
// 7009), and no other: those are of the person's other devices. It refuses with
// CodeInvalidClient alone. A token that is unknown, used, over or another client's
// changes nothing, and the answer does not tell.
func (s *Grants) Revoke(ctx context.Context, cred Credentials, token string) error {
	cred, err := s.clients.prove(ctx, cred, false)
	if err != nil {
		return err
	}
	id, refresh := grantOfToken(token)
	if !refresh {
		id = s.grantOfAccess(token)
	}
	hash := hashOf(purposeRefresh, token)
	return s.update(ctx, func(tx *txn) error {
		client, err := authenticateClient(tx, cred)
		if err != nil {
			return err
		}
		g, found := get[grant](tx, keyGrant(id))
		if found && g.ClientID == client.ID && (!refresh || subtle.ConstantTimeCompare([]byte(g.RefreshHash), []byte(hash)) == 1) {
			tx.revokeGrant(id)
		}
		return nil
	})
}

// grantOfAccess is the grant of an access token that still holds, or "". The id alone
// proves nothing: only what we signed is believed.
func (s *Grants) grantOfAccess(token string) string {
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(s.now), jwt.WithExpirationRequired(), jwt.WithIssuer(controlapi.TokenIssuer))
	for _, key := range s.keyRing.Load().verifying(s.now()) {
		var claims controlapi.AccessClaims
		if _, err := parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return key.private.Public(), nil }); err == nil {
			return claims.Grant
		}
	}
	return ""
}

// readAhead reads in one go what a refresh is going to look at, as far as it can
// be told before the grant is known.
func (s *Grants) readAhead(tx *txn, cred Credentials, grantID string, apps bool) {
	keys := []string{keyGrant(grantID)}
	of, known := s.parties.of(grantID)
	if known {
		keys = append(keys, keyComputer(of.computer), keyPerson(of.computer, of.account))
	}
	if known && apps {
		keys = append(keys, keyComputerApps(of.computer))
	}
	if cred.ID == "" {
		cred.ID = of.client
	}
	if cred.ID != "" {
		keys = append(keys, keyClient(cred.ID), keySuspended(SuspendClient, cred.ID))
	}
	if isAddress(cred.ID) {
		keys = append(keys, keyHosts)
	}
	tx.getAll(keys...)
}
