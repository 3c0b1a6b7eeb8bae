package ownersecret

import (
	"context"
	"errors"
)

// Ensure returns the secret s keeps, and makes one at the first start. It makes
// one only on ErrNotFound: any other failure may hide a secret that is there,
// and replacing that would lock out the programs that have it.
func Ensure(ctx context.Context, s Store) (string, error) {
	secret, err := s.Get(ctx)
	if !errors.Is(err, ErrNotFound) {
		return secret, err
	}
	secret = New()
	if err := s.Set(ctx, secret); err != nil {
		return "", err
	}
	return secret, nil
}
