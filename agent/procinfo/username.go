package procinfo

import (
	"errors"
	"os/user"
	"sync"
	"time"
)

const (
	nameLasts = 10 * time.Minute
	maxNames  = 1000
)

// names remembers login names: they are asked for on the way of requests, and a
// directory service can take its time.
var names struct {
	sync.Mutex
	of map[string]knownName
}

type knownName struct {
	name string
	at   time.Time
}

// UserName is the login name of a user, or the number of one without.
func UserName(uid string) string {
	names.Lock()
	known, ok := names.of[uid]
	names.Unlock()
	if ok && time.Since(known.at) < nameLasts {
		return known.name
	}
	name := uid
	u, err := user.LookupId(uid)
	var nobody user.UnknownUserIdError
	switch {
	case err == nil:
		name = u.Username
	case !errors.As(err, &nobody):
		return name // cannot be told now
	}
	names.Lock()
	defer names.Unlock()
	if names.of == nil || len(names.of) >= maxNames {
		names.of = map[string]knownName{}
	}
	names.of[uid] = knownName{name, time.Now()}
	return name
}
