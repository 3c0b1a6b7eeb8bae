package proxy

import (
	"net/http"
	"slices"
	"strings"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// identify finds out who asks; whom it does not know it answers by having them
// sign in. renew is a session cookie's value that is to be set again. h is the
// header of the answer.
func (p *Proxy) identify(h http.Header, r *http.Request, vhost *virtualHost) (id access.Identity, renew string, a *answer) {
	id, renew, present, a := p.known(r, vhost)
	if !present {
		a = p.signIn(h, r, *vhost)
	}
	return id, renew, a
}

// known is identify without signing in: present is false for a request that says nothing
// of who asks.
func (p *Proxy) known(r *http.Request, vhost *virtualHost) (id access.Identity, renew string, present bool, a *answer) {
	if _, has := r.Header[headerKey]; has {
		id, a := p.byKey(r, vhost)
		return id, "", true, a
	}
	if id, present, a := p.byToken(r, vhost); present {
		return id, "", true, a
	}
	if id, renew, ok := p.bySession(r, vhost); ok {
		return id, renew, true, nil
	}
	if id, present, a := p.byPassword(r, *vhost); present {
		return id, "", true, a
	}
	id, present, a = p.byCertificate(r, vhost)
	return id, "", present, a
}

// bySession finds out who asks by the cookie of a browser.
func (p *Proxy) bySession(r *http.Request, vhost *virtualHost) (id access.Identity, renew string, ok bool) {
	cookie, has := cookieValue(r.Header, p.cookies.session)
	if !has {
		return access.Identity{}, "", false
	}
	id, renewed, ok := p.config.Access.SessionAt(vhost.own, cookie, vhost.app.ID)
	if renewed {
		renew = cookie
	}
	return id, renew, ok
}

// byToken finds out who asks by an access token. One of a grant for some apps is worth
// nothing at any other name of the computer, and does not tell which of these there are.
func (p *Proxy) byToken(r *http.Request, vhost *virtualHost) (id access.Identity, present bool, a *answer) {
	if p.config.Bearer == nil {
		return access.Identity{}, false, nil
	}
	id, present, err := p.config.Bearer.Authenticate(r)
	switch {
	case err != nil:
		p.log.Debug("an access token was refused", "app", vhost.app.Name, "err", err)
		return access.Identity{}, true, invalidToken(r, vhost)
	case present && !p.config.Access.TakesTokens(vhost.own):
		p.log.Debug("an access token came to an own domain that is not proven", "app", vhost.app.Name)
		return access.Identity{}, true, invalidToken(r, vhost)
	case present && !p.config.Access.GrantOpens(r.Context(), id.GrantID, vhost.app.ID):
		p.log.Debug("an access token is for another app", "app", vhost.app.Name)
		a = invalidToken(r, vhost)
		a.anyName = true
		return access.Identity{}, true, a
	}
	return id, present, nil
}

// invalidTokenCode is RFC 6750's, section 3.1.
const invalidTokenCode = "invalid_token"

func bearsToken(authorization string) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	return strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != ""
}

// invalidToken answers an access token that is worth nothing here (RFC 6750,
// section 3.1).
func invalidToken(r *http.Request, vhost *virtualHost) *answer {
	return refuse(http.StatusUnauthorized, words.Of("This access token is not valid here.")).
		with("Www-Authenticate", bearerChallenge(r, vhost, invalidTokenCode))
}

// signIn sends a browser that loads a page to sign in and tells anything else.
// What was sent by a form is not sent again: the visitor comes back to the page
// the form was on.
func (p *Proxy) signIn(h http.Header, r *http.Request, vhost virtualHost) *answer {
	if navigation(r) || vhost.launcher() && passedOn(r) {
		back := r.URL.RequestURI()
		if !reads(r) {
			back = cameFrom(r, vhost.origin)
		}
		return p.bounce(h, r, vhost, safeReturn(back), 0)
	}
	wrong := ""
	if slices.ContainsFunc(r.Header["Authorization"], bearsToken) {
		wrong = invalidTokenCode // an app's own, which lets nobody in without a session
	}
	return &answer{
		Status: http.StatusUnauthorized,
		header: http.Header{"Www-Authenticate": p.challenges(r, &vhost, wrong)},
		json:   sentence{"Sign in first: open " + vhost.origin + "/ in a browser."},
	}
}

// notTaken answers somebody who may open an app, and is known by a way that it does not take.
func (p *Proxy) notTaken(h http.Header, r *http.Request, vhost virtualHost, id access.Identity) *answer {
	if id.BySession() || id.DeviceID != "" && navigation(r) {
		return p.signIn(h, r, vhost)
	}
	p.happened(agentapi.ActivityTurnedAway, vhost, id)
	return refuse(http.StatusForbidden, words.Of("This app asks for a passkey. Open %s in a browser.", vhost.origin+"/"))
}

// denied answers a visitor who is known but may not.
func (p *Proxy) denied(h http.Header, r *http.Request, vhost virtualHost, id access.Identity, d access.Decision) *answer {
	switch d.Reason {
	case access.ReasonSender: // revoked since the signature was looked at, or ended
		p.happened(agentapi.ActivityDeliveryRefused, vhost, access.Identity{})
		return senderEnded()
	case access.ReasonSessionOver, access.ReasonDevice:
		return p.signIn(h, r, vhost)
	case access.ReasonGrant: // revoked since the token was looked at
		return invalidToken(r, &vhost)
	case access.ReasonPassword: // the same of a password
		return p.wrongPassword(r, &vhost, id.ByKey)
	case access.ReasonDark: // closed while the request was on its way here
		return p.dark(vhost.host)
	case access.ReasonSuspended: // the same of the server's operator
		if why := p.config.Access.Suspended(); why != nil {
			return p.suspended(vhost.host, *why)
		}
		return stale(vhost) // resumed meanwhile
	case access.ReasonNoSnapshot, access.ReasonStale, access.ReasonBehind:
		return stale(vhost)
	default:
		p.happened(agentapi.ActivityTurnedAway, vhost, id)
		return p.noAccess(vhost, id.Email, d.Reason)
	}
}
