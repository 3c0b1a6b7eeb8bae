package proxy

import (
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/devices"
	"porchlight/agent/proxy/gate"
	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
	"porchlight/internal/words"
)

// The pages where somebody makes certificates for devices of theirs, at the root host, and
// where a device fetches one. Nobody but this computer sees a private key. They want the
// session of somebody who has just come from signing in: no certificate, password or token
// makes another.

const (
	pathDevices      = ourPath + "devices"
	pathDevice       = ourPath + "device"
	pathDeviceScript = ourPath + "device.js"

	// madeFor is how old a session may be that makes a certificate.
	madeFor = 15 * time.Minute
)

// Devices makes and ends certificates; *people.People is one.
type Devices interface {
	DeviceOf(who controlapi.Person, w devices.Wanted) (devices.Made, error)
	EndDevice(id, accountID string) (agentapi.Closed, error)
	DeviceLink(file []byte) string
	FetchDevice(secret string) (file []byte, ok bool)
}

var (
	//go:embed assets/devices.html
	devicesSource string
	//go:embed assets/device.js
	deviceScript string

	// newDevices is how fast one person makes certificates.
	newDevices = bounds.Bucket{Size: 20, Refill: time.Minute}
)

// devicesPage is what the page of one's own devices is drawn from.
type devicesPage struct {
	Action  string
	Rows    []deviceRow
	Apps    []deviceApp
	Typed   string
	Problem words.Sentence
}

type deviceRow struct {
	ID, Name, Apps string
	Until          words.Day
}

type deviceApp struct {
	Name, Label, Host string
	Chosen            bool
}

// madePage shows a certificate that was just made, and fetchPage has a device fetch it.
type (
	madePage struct {
		Name, Code, Link, Action, Secret, Back string
		QR                                     template.HTML
	}
	fetchPage struct{ Action, Script string }
)

// ownDevices answers the page where visitors make certificates.
func (p *Proxy) ownDevices(w http.ResponseWriter, r *http.Request, vhost virtualHost) *answer {
	if !vhost.launcher() || p.config.Devices == nil {
		return nothingHere()
	}
	if !reads(r) && r.Method != http.MethodPost {
		return wrongMethod(r, "GET, HEAD, POST")
	}
	id, who, a := p.justSignedIn(w.Header(), r, vhost)
	switch {
	case a != nil:
		return a
	case reads(r):
		return p.showDevices(vhost, id, who, &devicesPage{})
	case elsewhere(r, vhost.origin):
		return foreign()
	}
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	if err := r.ParseForm(); err != nil {
		return refuse(http.StatusBadRequest, words.Of("The form could not be read."))
	}
	if revoked := r.PostForm.Get("revoke"); revoked != "" {
		_, err := p.config.Devices.EndDevice(revoked, who.AccountID)
		if agentapi.CodeOf(err) == agentapi.CodeInternal {
			return refuse(http.StatusInternalServerError, said(err))
		}
		return redirect(vhost.origin + pathDevices)
	}
	return p.makeDevice(r, vhost, id, who)
}

// justSignedIn is who has a session of the launcher that is new enough; everybody else signs
// in first.
func (p *Proxy) justSignedIn(h http.Header, r *http.Request, vhost virtualHost) (access.Identity, controlapi.Person, *answer) {
	none := controlapi.Person{}
	id, _, ok := p.bySession(r, &vhost)
	if !ok {
		return id, none, p.signIn(h, r, vhost)
	}
	if began, _ := p.config.Access.SessionBegan(id.SessionKey); p.now().Sub(began).Abs() > madeFor {
		if _, err := p.config.Access.SignOut(id.SessionKey); err != nil {
			p.log.Error("a session could not be ended", "err", err)
			return id, none, refuse(http.StatusInternalServerError, words.Of("This computer could not end the session. Its disk may be full."))
		}
		return id, none, p.signIn(h, r, vhost)
	}
	if d := p.config.Access.Decide(id, ""); !d.Allowed {
		return id, none, p.denied(h, r, vhost, id, d)
	}
	people := p.config.Access.Snapshot().People
	i := slices.IndexFunc(people, func(row controlapi.Person) bool { return row.AccountID == id.AccountID })
	if i < 0 {
		return id, none, stale(vhost)
	}
	gate.ConnOf(r).LetIn(h)
	return id, people[i], nil
}

// showDevices draws the page, again with what was typed where that was refused.
func (p *Proxy) showDevices(vhost virtualHost, id access.Identity, who controlapi.Person, page *devicesPage) *answer {
	page.Action = pathDevices
	chosen := map[string]bool{}
	for _, app := range page.Apps {
		chosen[app.Name] = true
	}
	page.Apps = nil
	for _, app := range p.opens(id) {
		if app.TCP || !id.Taken(&app.Options) || !(access.Identity{DeviceID: app.ID}).Taken(&app.Options) {
			continue // it would not be let in
		}
		page.Apps = append(page.Apps, deviceApp{app.Name, app.Label, strings.TrimPrefix(originOf(app.Name, vhost.root), "https://"), chosen[app.Name]})
	}
	if len(page.Apps) == 1 {
		page.Apps[0].Chosen = true
	}
	labels := map[string]string{}
	if p.config.List != nil {
		for _, app := range p.config.List() {
			labels[app.ID] = app.Label
		}
	}
	for _, d := range p.config.Access.Devices() {
		if d.AccountID != who.AccountID {
			continue
		}
		var opens []string
		for _, app := range d.Apps {
			if labels[app] != "" {
				opens = append(opens, labels[app])
			}
		}
		page.Rows = append(page.Rows, deviceRow{d.ID, d.Name, strings.Join(opens, ", "), words.Day{Day: d.NotAfter.Local(), Year: true}})
	}
	status := http.StatusOK
	if !page.Problem.IsZero() {
		status = http.StatusBadRequest
	}
	return &answer{Status: status, Host: vhost.shown(), Title: words.Of("Devices"), Text: one(page.Problem), Email: who.Email, Devices: page}
}

// makeDevice makes what the form asks for, of what its person may open.
func (p *Proxy) makeDevice(r *http.Request, vhost virtualHost, id access.Identity, who controlapi.Person) *answer {
	wanted := devices.Wanted{Name: strings.TrimSpace(r.PostForm.Get("name")), Old: r.PostForm.Get("old") != ""}
	page := &devicesPage{Typed: wanted.Name}
	for _, name := range r.PostForm["app"] {
		page.Apps = append(page.Apps, deviceApp{Name: name})
		app, live := p.lookup(name)
		if !live || app.TCP || !p.config.Access.Decide(id, app.ID).Allowed || !id.Taken(&app.Options) {
			return refuse(http.StatusForbidden, words.Of("You cannot open that app any more."))
		}
		if !slices.Contains(wanted.Apps, app.ID) {
			wanted.Apps = append(wanted.Apps, app.ID)
		}
	}
	if wait := p.making.Take(p.now(), who.AccountID); wait > 0 {
		return refuse(http.StatusTooManyRequests, words.Of("You made very many certificates. Those there are still work; another can be made later."))
	}
	made, err := p.config.Devices.DeviceOf(who, wanted)
	switch code := agentapi.CodeOf(err); {
	case code == agentapi.CodeInvalid || code == agentapi.CodeConflict:
		page.Problem = said(err)
		return p.showDevices(vhost, id, who, page)
	case err != nil:
		p.log.Error("a device's certificate could not be made", "err", err)
		return refuse(http.StatusInternalServerError, words.Of("This computer could not keep that. Its disk may be full."))
	}
	link := p.config.Devices.DeviceLink(made.File)
	_, secret, _ := strings.Cut(link, "#")
	return &answer{
		Status: http.StatusOK, Host: vhost.shown(), Title: words.Of("Your new certificate"), Text: one(words.Of("The code is shown only this once.")),
		Made: &madePage{wanted.Name, made.Code, link, pathDevice, secret, pathDevices, qrOf(vhost.host, link)},
	}
}

// said is the sentence of a refusal.
func said(err error) words.Sentence {
	if e, ok := errors.AsType[*agentapi.Error](err); ok && !e.Words.IsZero() {
		return e.Words
	}
	return words.Plain(err.Error())
}

// fetchDevice gives the file of a link to whoever has its secret, once. A page that reads it
// takes nothing: that is for the button.
func (p *Proxy) fetchDevice(w http.ResponseWriter, r *http.Request, vhost virtualHost) *answer {
	switch {
	case !vhost.launcher() || p.config.Devices == nil:
		return nothingHere()
	case reads(r):
		return &answer{
			Status: http.StatusOK, Host: vhost.shown(), Title: words.Of("A certificate for this device"),
			Text:  one(words.Of("It can be fetched once. Have the code at hand: the device asks for it.")),
			Fetch: &fetchPage{pathDevice, vhost.origin + pathDeviceScript},
		}
	case r.Method != http.MethodPost:
		return wrongMethod(r, "GET, HEAD, POST")
	case elsewhere(r, vhost.origin):
		return foreign()
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	file, ok := p.config.Devices.FetchDevice(r.PostFormValue("secret"))
	if !ok {
		return sheet(http.StatusNotFound, vhost.shown(), words.Of("This link is over"),
			words.Of("It works once, and for ten minutes. Make another certificate, and revoke that one."), words.Of("Go to the start page"))
	}
	return &answer{
		header: http.Header{
			"Content-Type":           {"application/x-pkcs12"},
			"Content-Disposition":    {`attachment; filename="porchlight.p12"`},
			"Cache-Control":          {"no-store"},
			"X-Content-Type-Options": {"nosniff"},
		},
		send: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file) },
	}
}
