package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/access"
	"porchlight/agent/engine"
	"porchlight/agent/proxy/gate"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// serveLauncher answers the root host: the apps this visitor may open.
func (p *Proxy) serveLauncher(h http.Header, r *http.Request, vhost virtualHost) *answer {
	switch r.URL.Path {
	case "/":
	case pathWorker:
		return p.worker(r)
	default:
		return nothingHere()
	}
	if !reads(r) {
		return wrongMethod(r, "GET, HEAD")
	}
	id, renew, a := p.identify(h, r, &vhost)
	if a != nil {
		return a
	}
	if id.ByBrowser() && fetchedElsewhere(r, vhost.origin, false) {
		return foreign()
	}
	d := p.config.Access.Decide(id, "")
	if !d.Allowed {
		return p.denied(h, r, vhost, id, d)
	}
	gate.ConnOf(r).LetIn(h)
	if renew != "" {
		setCookie(h, p.cookies.session, renew, access.SessionLife)
	}
	return p.launcher(vhost, id, d, p.opens(id))
}

// opens are the live apps that somebody may open.
func (p *Proxy) opens(id access.Identity) (may []engine.App) {
	if p.config.List == nil {
		return nil
	}
	for _, app := range p.config.List() {
		if app.Live && !app.Paused && p.config.Access.Decide(id, app.ID).Allowed {
			may = append(may, app)
		}
	}
	return may
}

// launcher lists what a visitor may open; the owner's are all that are live.
func (p *Proxy) launcher(vhost virtualHost, id access.Identity, d access.Decision, apps []engine.App) *answer {
	a := &answer{
		Status: http.StatusOK, Launcher: true, Host: vhost.shown(), Title: words.Of("%s", vhost.shown()), Email: d.Email,
		Owner: d.Role == controlapi.RoleOwner, Auth: strings.TrimSpace(p.authOrigin()), SignOut: pathSignOut,
	}
	if p.keepsWorker() {
		a.Script, a.worker = vhost.origin+pathScript, vhost.origin+pathWorker
	}
	if a.Auth != "" && len(apps) > 0 {
		a.More = a.Auth + controlapi.PathPasswordPages + "?" + url.Values{controlapi.ParamComputer: {vhost.root.Name}}.Encode()
		a.MoreText = words.Of("App passwords")
		if p.config.Devices != nil {
			a.Own = pathDevices
		}
	}
	if owner, known := p.config.Access.Owner(); known && !a.Owner && len(apps) > 0 {
		a.Sharer = owner.Email
		if p.config.DisplayName != nil {
			a.Called = p.config.DisplayName()
		}
	}
	switch {
	case a.Owner && len(apps) == 0:
		a.Text = one(words.Of("None of your apps is published right now."))
	case a.Owner:
		a.Text = one(words.Counted(len(apps), "%d app is published here. Others see only what you share with them.", "%d apps are published here. Others see only what you share with them."))
	case len(apps) == 0:
		a.Fine = one(words.Of("If you were invited under another address, sign out and use that one."))
		if a.Ask, a.Short = p.asks(vhost, access.ReasonNotGiven), vhost.root.Name; a.Ask != nil {
			a.Fine = append(one(words.Of("%[1]s sees %[2]s, nothing else.", vhost.root.Name, d.Email)), a.Fine...)
		}
	default:
		a.Text = one(words.Counted(len(apps), "%d app is shared with you here.", "%d apps are shared with you here."))
		a.Fine = one(words.Of("Missing something? Ask the person who invited you."))
	}
	for _, app := range apps {
		first, _ := utf8.DecodeRuneInString(strings.TrimSpace(app.Label))
		origin := originOf(app.Name, vhost.root)
		row := launcherRow{
			Label: app.Label, Letter: string(unicode.ToUpper(first)),
			Host: strings.TrimPrefix(origin, "https://"), URL: origin + "/", Paused: app.Paused,
		}
		if end, ends := p.config.Access.EndOf(id, app.ID); ends {
			row.End, row.Until = end, lastDay(end.Local(), time.Now())
			a.Times = vhost.origin + pathTimes
		}
		a.Apps = append(a.Apps, row)
	}
	return a
}

// lastDay is the day on which something ends by the owner's calendar, with the time and
// the zone where that is not the end of the day. Midnight ends the day before.
func lastDay(end, now time.Time) words.Text {
	last := end.Add(-time.Second)
	day := words.Of("%s", words.Day{Day: last, Year: last.Year() != now.Year()})
	if last.Hour() == 23 && last.Minute() == 59 {
		return one(day)
	}
	return one(words.Of("%[1]s, %[2]s", day, end.Format("15:04 MST")))
}
