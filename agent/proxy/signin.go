package proxy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

const (
	nonceLife     = 10 * time.Minute
	maxNonces     = 4 // sign-ins under way in one browser on one host
	maxRestarts   = 2 // of a sign-in whose nonce the browser did not bring back
	redeemTimeout = 15 * time.Second
	// awaitSnapshot is how long a visitor who has just signed in waits for the
	// snapshot that knows them: one poll cycle and a little.
	awaitSnapshot = 5 * time.Second
)

// The sign-in keeps nothing here. A random nonce stays in the browser; the
// state is its digest, so that only the browser that began can finish; the PKCE
// verifier is made from it with our key, so that the browser cannot redeem the
// code by itself.

// nonceState is the state parameter: the digest of the nonce, and how often
// this sign-in was begun again. The number is nobody's secret: who changes it
// only spoils their own sign-in.
func nonceState(nonce []byte, restarts int) string {
	digest := sha256.Sum256(nonce)
	return hex.EncodeToString(digest[:]) + string(rune('0'+restarts))
}

// parseState returns the digest's hexadecimal form and the restarts.
func parseState(state string) (digest string, restarts int, ok bool) {
	const n = 2 * sha256.Size
	if len(state) != n+1 || state[n] < '0' || state[n] > '0'+maxRestarts {
		return "", 0, false
	}
	for i := range n {
		if c := state[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", 0, false
		}
	}
	return state[:n], int(state[n] - '0'), true
}

// verifier is the PKCE code verifier (RFC 7636) that belongs to a nonce.
func (p *Proxy) verifier(nonce []byte) string {
	mac := hmac.New(sha256.New, p.config.Key)
	mac.Write([]byte("visit\x00"))
	mac.Write(nonce)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// nonceCookie makes the value of a nonce cookie of the nonce and where to return
// to; parseNonce reads it.
func nonceCookie(nonce []byte, back string) string {
	return base64.RawURLEncoding.EncodeToString(nonce) + "." + base64.RawURLEncoding.EncodeToString([]byte(back))
}

func parseNonce(value string) (nonce []byte, back string, ok bool) {
	first, second, found := strings.Cut(value, ".")
	nonce, err := base64.RawURLEncoding.DecodeString(first)
	if !found || err != nil || len(nonce) != 32 {
		return nil, "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(second)
	if err != nil {
		return nil, "", false
	}
	return nonce, safeReturn(string(raw)), true
}

// bounce sends a browser to the control plane to sign in and come back.
func (p *Proxy) bounce(h http.Header, r *http.Request, vhost virtualHost, back string, restarts int) *answer {
	auth := strings.TrimRight(p.config.AuthURL(), "/")
	if auth == "" {
		return notConnected(vhost)
	}
	nonce := make([]byte, 32)
	rand.Read(nonce)
	state := nonceState(nonce, restarts)
	p.dropNonces(h, r)
	setCookie(h, p.cookies.nonce+state[:8], nonceCookie(nonce, back), nonceLife)
	challenge := sha256.Sum256([]byte(p.verifier(nonce)))
	query := url.Values{
		controlapi.ParamComputer:            {vhost.root.Name},
		controlapi.ParamApp:                 {vhost.app.ID},
		controlapi.ParamRedirectURI:         {vhost.origin + controlapi.CallbackPath},
		controlapi.ParamState:               {state},
		controlapi.ParamCodeChallenge:       {base64.RawURLEncoding.EncodeToString(challenge[:])},
		controlapi.ParamCodeChallengeMethod: {"S256"},
	}
	if proofs := proofsFor(&vhost.app.Options); proofs != "" {
		query.Set(controlapi.ParamProof, proofs)
	}
	return redirect(auth + controlapi.PathVisit + "?" + query.Encode())
}

// proofsFor are the ways of having signed in that an app takes, for controlapi.ParamProof;
// empty for all.
func proofsFor(o *agentapi.AppOptions) string {
	if !o.OnlyPasskey {
		return ""
	}
	proofs := string(controlapi.ProofPasskey)
	for _, proof := range []controlapi.Proof{controlapi.ProofCode, controlapi.ProofProvider} {
		if access.ProofTaken(proof, o) {
			proofs += "," + string(proof)
		}
	}
	return proofs
}

// dropNonces takes the oldest nonce cookies away when the browser holds many.
// Browsers send cookies of one path oldest first (RFC 6265, 5.4).
func (p *Proxy) dropNonces(h http.Header, r *http.Request) {
	var names []string
	eachCookie(r.Header["Cookie"], func(name, _ string) bool {
		if suffix, ok := strings.CutPrefix(name, p.cookies.nonce); ok && len(suffix) == 8 && isHex(suffix) {
			names = append(names, name)
		}
		return len(names) < 64
	})
	for i := 0; i <= len(names)-maxNonces; i++ {
		setCookie(h, names[i], "", 0)
	}
}

// callback takes a browser back from the control plane.
func (p *Proxy) callback(h http.Header, r *http.Request, vhost virtualHost) *answer {
	if r.Method != http.MethodGet {
		return wrongMethod(r, http.MethodGet)
	}
	query := r.URL.Query()
	digest, restarts, ok := parseState(query.Get(controlapi.ParamState))
	if !ok {
		return signInFailed(vhost, words.Of("This page is only a step of signing in."))
	}
	name := p.cookies.nonce + digest[:8]
	value, _ := cookieValue(r.Header, name)
	nonce, back, ok := parseNonce(value)
	if ok {
		have := sha256.Sum256(nonce)
		ok = hmac.Equal([]byte(hex.EncodeToString(have[:])), []byte(digest))
	}
	if !ok {
		return p.restart(h, r, vhost, "/", restarts, words.Of("The browser did not keep the cookie that signing in needs. Allow cookies for this address."))
	}
	setCookie(h, name, "", 0)
	if query.Get("error") != "" || query.Get(controlapi.ParamCode) == "" {
		return signInFailed(vhost, words.Of("Signing in was not finished."))
	}
	from := networkOf(r.RemoteAddr)
	if p.wrong.Take(p.now(), from) > 0 {
		return tooManyWrong(vhost)
	}
	ctx, cancel := context.WithTimeout(r.Context(), redeemTimeout)
	defer cancel()
	visitor, err := p.config.Redeem(ctx, controlapi.Redeem{
		Code:         query.Get(controlapi.ParamCode),
		CodeVerifier: p.verifier(nonce),
		RedirectURI:  vhost.origin + controlapi.CallbackPath,
	})
	if !wrongCode(err) && r.Context().Err() == nil { // a visitor who did not wait has cost the request all the same
		p.wrong.GiveBack(from)
	}
	if err != nil {
		return p.redeemFailed(h, r, vhost, back, restarts, err)
	}
	if visitor.AppID != vhost.app.ID || visitor.AccountID == "" {
		p.log.Warn("a sign-in for another app was brought here", "app", vhost.app.Name)
		return signInFailed(vhost, words.Of("That sign-in was for another address."))
	}
	if !access.ProofTaken(visitor.Proof, &vhost.app.Options) { // the server does not ask for it yet
		return sheet(http.StatusForbidden, vhost.shown(), words.Of("This app asks for a passkey"),
			words.Of("You signed in without one. The server that signs people in may be too old to ask for it."), words.Of("Try again"))
	}
	return p.welcome(h, r, vhost, visitor.AccountID, visitor.Epoch, visitor.Proof, back)
}

// restart begins a sign-in again, but not for ever.
func (p *Proxy) restart(h http.Header, r *http.Request, vhost virtualHost, back string, restarts int, trouble words.Sentence) *answer {
	if restarts >= maxRestarts {
		return signInFailed(vhost, trouble)
	}
	return p.bounce(h, r, vhost, back, restarts+1)
}

func wrongCode(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code == controlapi.CodeInvalidGrant
}

func (p *Proxy) redeemFailed(h http.Header, r *http.Request, vhost virtualHost, back string, restarts int, err error) *answer {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	switch {
	case wrongCode(err):
		return p.restart(h, r, vhost, back, restarts, words.Of("The sign-in was too old or had been used already."))
	case ok && refusal.Code == controlapi.CodeForbidden:
		p.happened(agentapi.ActivityTurnedAway, vhost, access.Identity{})
		return p.noAccess(vhost, "", "")
	default:
		p.log.Warn("a visitor's sign-in could not be checked", "app", vhost.app.Name, "err", err)
		return unreachable(vhost)
	}
}

// welcome gives a browser a session and brings it to where it wanted to go. A
// session it has already is kept when it is the same person's, proven in the same way, so
// that two tabs that sign in at once do not end each other's.
func (p *Proxy) welcome(h http.Header, r *http.Request, vhost virtualHost, accountID string, epoch int64, proof controlapi.Proof, back string) *answer {
	if old, has := cookieValue(r.Header, p.cookies.session); has {
		if id, _, ok := p.config.Access.SessionAt(vhost.own, old, vhost.app.ID); ok {
			if id.AccountID == accountID && id.Epoch == epoch && id.Proof == proof {
				setCookie(h, p.cookies.session, old, access.SessionLife)
				p.markApp(h, vhost.app.ID)
				return redirect(vhost.origin + back)
			}
			if _, err := p.config.Access.SignOut(id.SessionKey); err != nil {
				p.log.Error("the session before this one could not be ended", "err", err)
			}
		}
	}
	cookie, err := p.config.Access.NewSessionAt(vhost.own, vhost.app.ID, accountID, epoch, proof)
	if err != nil {
		p.log.Error("a session could not be made", "app", vhost.app.Name, "err", err)
		return refuse(http.StatusInternalServerError, words.Of("This computer cannot keep a sign-in right now. Its disk may be full."))
	}
	ctx, cancel := context.WithTimeout(r.Context(), awaitSnapshot)
	defer cancel()
	p.config.Access.AwaitAllowed(ctx, access.Identity{AccountID: accountID, Epoch: epoch, Proof: proof}, vhost.app.ID)
	setCookie(h, p.cookies.session, cookie, access.SessionLife)
	p.markApp(h, vhost.app.ID)
	return redirect(vhost.origin + back)
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}
