package control

import (
	"cmp"
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
)

// TokenScope is one thing that a token of the operator's may.
type TokenScope string

// What a token may. None may make operators, tokens, invitations, passkeys or clients.
const (
	ScopeRead    TokenScope = "read"    // what an Overview shows
	ScopeSuspend TokenScope = "suspend" // and resume
)

const (
	// TokenLife is how long a token lasts unless it is told, and maxTokenLife at most.
	TokenLife    = 90 * 24 * time.Hour
	maxTokenLife = 366 * 24 * time.Hour
	// maxTokens is how many there may be.
	maxTokens = 50
	// maxTokenName is how long a name may be, in characters.
	maxTokenName = 80
	tokenMark    = "pla_"

	keyAdminTokens = "admin-token/"
	byToken        = "token:"
)

// AdminToken lets a program administer the server. Only the command line makes it.
type AdminToken struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	Scopes    []TokenScope `json:"scopes"`
	CreatedAt time.Time    `json:"createdAt"`
	Ends      time.Time    `json:"ends"`
	UsedAt    time.Time    `json:"usedAt,omitzero"` // to within a day
}

// By is who acted with it, as audit rows and suspensions have it.
func (t AdminToken) By() string { return byToken + t.ID }

// adminToken as stored.
type adminToken struct {
	AdminToken
	Hash string `json:"hash"`
}

// AdminTokens are those of all programs.
type AdminTokens struct{ *core }

// Add makes a token and returns its secret, this once. life is zero for TokenLife.
func (s *AdminTokens) Add(ctx context.Context, name string, scopes []TokenScope, life time.Duration) (AdminToken, string, error) {
	name, life = strings.TrimSpace(name), cmp.Or(life, TokenLife)
	scopes = slices.Compact(slices.Sorted(slices.Values(scopes)))
	unknown := slices.ContainsFunc(scopes, func(s TokenScope) bool { return s != ScopeRead && s != ScopeSuspend })
	switch {
	case !validText(name, maxTokenName):
		return AdminToken{}, "", refuse(controlapi.CodeInvalid, "Name the token in 1 to 80 visible characters, by the program that uses it.")
	case len(scopes) == 0 || unknown:
		return AdminToken{}, "", refuse(controlapi.CodeInvalid, "What a token may is read, suspend or both.")
	case life < time.Minute || life > maxTokenLife:
		return AdminToken{}, "", refuse(controlapi.CodeInvalid, "A token lasts from a minute to 366 days.")
	}
	id, secret := newID(), newToken()
	token, err := updated(ctx, s.core, func(tx *txn) (AdminToken, error) {
		if len(tx.adminTokens()) >= maxTokens {
			return AdminToken{}, refuse(controlapi.CodeInvalid, "There are as many tokens as there can be. Remove one first.")
		}
		row := adminToken{AdminToken{ID: id, Name: name, Scopes: scopes, CreatedAt: tx.now.UTC(), Ends: tx.now.Add(life).UTC()}, hashOf(purposeAdminToken, id, secret)}
		tx.put(keyAdminTokens+id, row, life)
		tx.audited = append(tx.audited, audit.Event{Kind: "token-added", By: ByCommandLine, On: id})
		return row.AdminToken, nil
	})
	if err != nil {
		return AdminToken{}, "", err
	}
	return token, tokenMark + id + "." + secret, nil
}

// List lists the tokens that have not ended, the first made first, then by id.
func (s *AdminTokens) List(ctx context.Context) ([]AdminToken, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]AdminToken, error) {
		out := tx.adminTokens()
		slices.SortFunc(out, func(a, b AdminToken) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
		return out, nil
	})
}

// adminTokens are those that have not ended; their rows stay for an hour more.
func (t *txn) adminTokens() []AdminToken {
	out := []AdminToken{}
	for _, row := range each[adminToken](t, keyAdminTokens) {
		if t.now.Before(row.Ends) {
			out = append(out, row.AdminToken)
		}
	}
	return out
}

// Remove ends a token at once, as by whom it is kept. It refuses with CodeNotFound.
func (s *AdminTokens) Remove(ctx context.Context, id, by string) (AdminToken, error) {
	return updated(ctx, s.core, func(tx *txn) (AdminToken, error) {
		none := refuse(controlapi.CodeNotFound, "There is no token of that id.")
		if !idPattern.MatchString(id) {
			return AdminToken{}, none
		}
		row, err := find[adminToken](tx, keyAdminTokens+id, none)
		if err != nil {
			return AdminToken{}, err
		}
		tx.delete(keyAdminTokens + id)
		tx.audited = append(tx.audited, audit.Event{Kind: "token-removed", By: by, On: id})
		return row.AdminToken, nil
	})
}

// Use finds the token of a secret. It refuses with CodeUnauthorized whatever is no token, or
// one that ended, and with CodeForbidden one that may not do that, which it returns all the same.
func (s *AdminTokens) Use(ctx context.Context, presented string, scope TokenScope) (AdminToken, error) {
	none := refuse(controlapi.CodeUnauthorized, "That token is not valid. It may have ended: make another with porchlight-control token add.")
	id, secret, _ := strings.Cut(strings.TrimPrefix(presented, tokenMark), ".")
	if !strings.HasPrefix(presented, tokenMark) || !idPattern.MatchString(id) || len(secret) != tokenLen {
		return AdminToken{}, none
	}
	hash := hashOf(purposeAdminToken, id, secret)
	row, err := viewed(ctx, s.core, func(tx *txn) (adminToken, error) {
		row, err := find[adminToken](tx, keyAdminTokens+id, none)
		if err == nil && (subtle.ConstantTimeCompare([]byte(row.Hash), []byte(hash)) != 1 || !tx.now.Before(row.Ends)) {
			err = none
		}
		return row, err
	})
	if err != nil {
		return AdminToken{}, err
	}
	if !slices.Contains(row.Scopes, scope) {
		return row.AdminToken, refuse(controlapi.CodeForbidden, "This token may not do that.")
	}
	return row.AdminToken, s.noteUse(ctx, row.AdminToken)
}

// noteUse keeps on which day a token was used last.
func (s *AdminTokens) noteUse(ctx context.Context, token AdminToken) error {
	if s.now().Sub(token.UsedAt) < day {
		return nil
	}
	return s.update(ctx, func(tx *txn) error {
		row, found := get[adminToken](tx, keyAdminTokens+token.ID)
		if found && tx.now.Before(row.Ends) {
			row.UsedAt = tx.now.UTC()
			tx.put(keyAdminTokens+token.ID, row, row.Ends.Sub(tx.now))
		}
		return nil
	})
}
