package access

import "porchlight/agent/store"

// Basic is a user name with a password.
type Basic struct{ User, Password string }

// OwnPassword is ownPassword, with what it read.
func OwnPassword(authorization string) (of Basic, ours bool) {
	basic, ours := ownPassword(authorization, nil, nil)
	return Basic{string(basic.user), string(basic.password)}, ours
}

// Remembered is how many tokens b holds.
func Remembered(b *Bearer) int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.cache)
}

// UseStore has what is kept from now on be kept there.
func (a *Access) UseStore(s *store.Store) { a.store = s }
