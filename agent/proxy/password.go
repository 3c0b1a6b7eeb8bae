package proxy

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// App passwords: programs that are no browsers say who they are by Basic (RFC 7617),
// with a person's mail address and a password of theirs for this one app, or by the
// password alone in a field of its own (key.go). Sent by Basic, an access
// token and a session come first; the password of a request that has one of those is
// not looked at. To an app, whatever carries one of ours is as if it were not there;
// its own user names and passwords pass.

// byPassword finds out who asks by an app password. present is false for a request
// without one.
func (p *Proxy) byPassword(r *http.Request, vhost virtualHost) (id access.Identity, present bool, a *answer) {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return access.Identity{}, false, nil
	}
	id, present, err := p.config.Access.Password(values, vhost.app.ID)
	if err == nil {
		return id, present, nil
	}
	return access.Identity{}, true, p.passwordRefused(r, &vhost, false, err)
}

// passwordRefused counts an app password that is worth nothing here, and answers it. key
// says that it stood in headerKey.
func (p *Proxy) passwordRefused(r *http.Request, vhost *virtualHost, key bool, err error) *answer {
	if p.config.Access.Snapshot().Version == "" {
		return stale(*vhost) // it is not known yet which there are
	}
	p.happened(agentapi.ActivityPasswordRefused, *vhost, access.Identity{})
	if wait := p.guesses.Take(p.now(), networkOf(r.RemoteAddr)); wait > 0 {
		return tooManyGuesses(wait)
	}
	p.log.Debug("an app password was refused", "app", vhost.app.Name, "err", err)
	return p.wrongPassword(r, vhost, key)
}

// happened has the activity count an attempt that was refused.
func (p *Proxy) happened(kind string, vhost virtualHost, who access.Identity) {
	p.config.Activity.Add(agentapi.Activity{Kind: kind, Email: who.Email, AccountID: who.AccountID, App: vhost.app.Label, Name: vhost.app.Name})
}

// wrongPassword answers an app password that is worth nothing here.
func (p *Proxy) wrongPassword(r *http.Request, vhost *virtualHost, key bool) *answer {
	why := words.Of("This app password is not valid here. Its user name is your mail address, and it opens only the app it was made for. It may have been revoked.")
	if key {
		why = words.Of("The app password in X-Porchlight-Key is not valid here. It opens only the app it was made for, and may have been revoked.")
	}
	return refuse(http.StatusUnauthorized, why).with("Www-Authenticate", p.challenges(r, vhost, "")...)
}

// challenges are the ways to say who one is. Basic is named only where a program could
// have a password, and to no browser, which would ask its user for one: every browser
// of today sends some Sec-Fetch field with every request to an https address.
// wrong is of an access token, see bearerChallenge.
func (p *Proxy) challenges(r *http.Request, vhost *virtualHost, wrong string) []string {
	bearer := bearerChallenge(r, vhost, wrong)
	if !p.config.Access.HasPasswords(vhost.app.ID) || sentByBrowser(r) {
		return []string{bearer}
	}
	return []string{`Basic realm="` + vhost.host + `", charset="UTF-8"`, bearer}
}

// sentByBrowser says whether a request has one of the fields that a browser adds, which
// no page can leave out and no program has by accident.
func sentByBrowser(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return false
}

// tooManyGuesses is 429: many wrong passwords came from this network.
func tooManyGuesses(wait time.Duration) *answer {
	return refuse(http.StatusTooManyRequests, words.Of("Many wrong app passwords came from your network. This one is wrong, too.")).
		with("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}
