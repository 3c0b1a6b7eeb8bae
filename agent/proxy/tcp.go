package proxy

import (
	"net/http"

	"github.com/coder/websocket"

	"porchlight/agent/access"
	"porchlight/agent/carry"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Apps that are reached by TCP. Each connection to one is a WebSocket of porchlight reach, and
// a visit like any other: whatever ends a visit ends it. Who asks is known by an access token
// of that one client, which is good for nothing else: a cookie, a password or a key, which a
// browser or another program may have, opens no database.

// notThisWay answers what asks for an app in a way that is not that app's; nil where it is.
func notThisWay(r *http.Request, vhost *virtualHost, id access.Identity, webSocket bool) *answer {
	reaches := id.ClientID == controlapi.ReachClient
	switch {
	case vhost.app.TCP && reaches && webSocket && asksToReach(r) && controlapi.IsLimitedGrant(id.GrantID), !vhost.app.TCP && !reaches:
		return nil
	case !vhost.app.TCP:
		return refuse(http.StatusForbidden, words.Of("This is a web app. Open %s in a browser.", vhost.origin+"/"))
	}
	return &answer{
		Status: http.StatusUpgradeRequired, Host: vhost.shown(),
		Title: words.Of("%s is not for browsers", vhost.app.Label),
		Text:  one(words.Of("Programs reach it. On your own computer, type: %s", "porchlight reach "+vhost.shown())),
		Fine:  one(words.Of("Then point your program at the address that it prints.")),
		Link:  originOf("", vhost.root) + "/", LinkText: words.Of("See what you can open"),
		header: http.Header{"Upgrade": {"websocket"}},
	}
}

// asksToReach says whether a handshake is one of porchlight reach: whatever else it is, the
// app is not troubled with it.
func asksToReach(r *http.Request) bool {
	h := r.Header
	return r.Method == http.MethodGet && len(h["Origin"]) == 0 && first(h["Sec-Websocket-Protocol"]) == carry.Subprotocol &&
		first(h["Sec-Websocket-Version"]) == "13" && first(h["Sec-Websocket-Key"]) != ""
}

// reach carries a visit that was let in to an app that is reached by TCP. Who listens there
// was looked at before the visitor is told that there is a connection.
func (p *Proxy) reach(w http.ResponseWriter, r *http.Request, v *visit) {
	v.to = interim{ResponseWriter: w, p: p, visit: v}
	v.watch(0) // longer than any other visit
	conn, err := p.dialApp(v)
	if err != nil {
		p.forwardFailed(w, r, v, err)
		return
	}
	defer conn.Close()
	app, is := conn.(carry.Conn)
	if !is || !v.use(conn) || !v.hears() {
		panic(http.ErrAbortHandler) // access has ended
	}
	if p.config.OnAnswered != nil {
		p.config.OnAnswered(v.vhost.app.ID)
	}
	ws, err := websocket.Accept(&v.to, r, &websocket.AcceptOptions{Subprotocols: []string{carry.Subprotocol}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it was answered
	}
	defer v.part()
	if err := carry.Join(v, ws, app); err != nil {
		p.log.Debug("a connection was reset", "app", v.vhost.app.Name, "err", err)
	}
}
