package web

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The pages of connecting a computer: type its code, look at who asks, choose a
// name; where the name belongs to a computer already connected, once more. Each
// step is a post that carries what the steps before it decided, and only the
// last one changes anything. All of them want somebody who has just signed in.

// deviceRow is the computer that asks, in words.
type deviceRow struct {
	Machine   string
	Platform  string
	Client    string // address it asked from, "" where it is not known
	Elsewhere bool   // whether that is another address than this browser's
	Age       string // since it asked
}

func toDevice(code string) destination {
	to := destination{path: controlapi.PathDevice, purpose: words.Of("to connect a computer")}
	if code != "" {
		to.path += "?" + url.Values{"code": {code}}.Encode()
	}
	return to
}

// deviceForm shows the field for the code, filled in where the address has one;
// a code in an address is nobody's decision.
func (h *handler) deviceForm(w http.ResponseWriter, r *http.Request) error {
	code, err := control.ParseUserCode(r.URL.Query().Get("code"))
	if err != nil {
		code = ""
	}
	session, ok, err := h.freshly(w, r, toDevice(code))
	if !ok {
		return err
	}
	if err := h.svc.Enrolment.MayEnrol(session.Account); err != nil {
		return h.deviceRefused(w, r, session, err)
	}
	return h.showDevice(w, r, http.StatusOK, session, page{Code: code})
}

// deviceDecide goes on with a posted step.
func (h *handler) deviceDecide(w http.ResponseWriter, r *http.Request, f url.Values) error {
	code, wrong := control.ParseUserCode(f.Get("code"))
	session, ok, err := h.freshly(w, r, toDevice(code))
	if !ok {
		return err
	}
	again := page{Code: f.Get("code")}
	if wrong != nil {
		again.Problem = problemOf(languageOf(r), wrong)
		return h.showDevice(w, r, http.StatusNotFound, session, again)
	}
	switch f.Get("decision") {
	case "":
		err = h.showAsking(w, r, http.StatusOK, session, page{Code: code})
	case "deny":
		if err = h.svc.Enrolment.Deny(r.Context(), session.Account, code, clientAddr(r)); err == nil {
			return seeOther(w, r, "/device/done")
		}
	case "allow":
		err = h.connect(w, r, session, code, f)
	default:
		err = invalid("This form was not sent by its page. Open the page again.")
	}
	switch {
	case control.IsRefusal(err, controlapi.CodeNotFound):
		again.Problem = problemOf(languageOf(r), err)
		return h.showDevice(w, r, http.StatusNotFound, session, again)
	case control.IsRefusal(err, controlapi.CodeForbidden):
		return h.deviceRefused(w, r, session, err)
	}
	return err
}

// connect confirms the enrolment, or asks once more.
func (h *handler) connect(w http.ResponseWriter, r *http.Request, session control.Session, code string, f url.Values) error {
	name := f.Get("name")
	// The step that asks for a replacement names what it replaces, so that a
	// name changed after it asks again.
	replace := f.Get("replace") != "" && f.Get("replace") == name
	done, err := h.svc.Enrolment.Confirm(r.Context(), session, code, name, replace, clientAddr(r))
	if control.IsRefusal(err, controlapi.CodeInvalid) {
		return h.showAsking(w, r, http.StatusBadRequest, session, page{Code: code, Name: name, Problem: problemOf(languageOf(r), err)})
	}
	if err != nil {
		return err
	}
	if done.Replaces {
		return h.showReplace(w, r, session, code, done.Computer)
	}
	return seeOther(w, r, "/device/done?"+url.Values{"computer": {name}}.Encode())
}

// deviceDone says how it ended. It names a computer only to its owner, so that
// the address cannot be made to say anything else.
func (h *handler) deviceDone(w http.ResponseWriter, r *http.Request, session control.Session) error {
	p := page{Title: languageOf(r).Say("Nothing was connected"), Email: session.Account.Email}
	memberships, err := h.svc.People.Memberships(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.Role == controlapi.RoleOwner && m.Computer.Name == r.URL.Query().Get("computer") {
			p.Title, p.Host = languageOf(r).Say("Connected"), m.Computer.Host
		}
	}
	return h.show(w, r, http.StatusOK, "device-done", p)
}

// freshly is the session of somebody who has just signed in; who has not is sent
// to do so, and from there to the page given. Where ok is false the answer is
// written already, or is err.
func (h *handler) freshly(w http.ResponseWriter, r *http.Request, back destination) (session control.Session, ok bool, err error) {
	session, ok, err = h.current(w, r)
	if err != nil {
		return control.Session{}, false, err
	}
	fresh := false
	if ok {
		if fresh, err = h.svc.Sessions.Fresh(r.Context(), session); err != nil {
			return control.Session{}, false, err
		}
	}
	if !fresh {
		return control.Session{}, false, seeOther(w, r, signInPath("/signin", back))
	}
	return session, true, nil
}

func (h *handler) showDevice(w http.ResponseWriter, r *http.Request, status int, session control.Session, p page) error {
	p.Title, p.Email = languageOf(r).Say("Connect a computer"), session.Account.Email
	return h.show(w, r, status, "device", p)
}

func (h *handler) showAsking(w http.ResponseWriter, r *http.Request, status int, session control.Session, p page) error {
	asking, err := h.svc.Enrolment.LookAt(r.Context(), session.Account, p.Code, clientAddr(r))
	if err != nil {
		return err
	}
	if p.Problem == "" {
		p.Name = asking.Name
	}
	p.Title, p.Email = languageOf(r).Say("Connect this computer?"), session.Account.Email
	p.Domain = h.svc.HostSuffix()
	p.Device = h.deviceRow(r, asking)
	return h.show(w, r, status, "device-confirm", p)
}

func (h *handler) showReplace(w http.ResponseWriter, r *http.Request, session control.Session, code string, c controlapi.Computer) error {
	asking, err := h.svc.Enrolment.LookAt(r.Context(), session.Account, code, clientAddr(r))
	if err != nil {
		return err
	}
	return h.show(w, r, http.StatusOK, "device-replace", page{
		Title: languageOf(r).Say("Replace %s?", c.Host), Email: session.Account.Email, Code: code, Name: c.Name, Host: c.Host,
		Device: h.deviceRow(r, asking),
	})
}

func (h *handler) deviceRow(r *http.Request, a control.Asking) deviceRow {
	row := deviceRow{
		Machine: cmp.Or(a.Machine, languageOf(r).Say("A computer without a name")), Platform: platformName(a.Platform),
		Age: ago(languageOf(r), h.now().Sub(a.BeganAt)),
	}
	if a.Client.IsValid() {
		row.Client, row.Elsewhere = a.Client.String(), a.Client != clientAddr(r)
	}
	return row
}

// deviceRefused tells somebody that their account may not connect computers.
func (h *handler) deviceRefused(w http.ResponseWriter, r *http.Request, session control.Session, err error) error {
	return h.show(w, r, http.StatusForbidden, "error", page{
		Title: languageOf(r).Say("This address can’t connect computers"), Email: session.Account.Email, Problem: problemOf(languageOf(r), err), Back: "/account",
	})
}

// platformName is how people call what Go calls goos.
func platformName(goos string) string {
	known := map[string]string{"darwin": "macOS", "linux": "Linux", "windows": "Windows", "freebsd": "FreeBSD"}
	return cmp.Or(known[goos], goos)
}

// ago puts an age into words, coarse and rounded down.
func ago(l words.Language, d time.Duration) string {
	switch n := int(d / time.Minute); {
	case n == 0:
		return l.Say("less than a minute ago")
	case n < 60:
		return l.Count(n, "%d minute ago", "%d minutes ago")
	default:
		return l.Count((n+59)/60, "%d hour ago", "%d hours ago")
	}
}

// Enrolling, as computers do it (controlapi, enrol.go). The first two need no
// credential: getting one is what they are for.

func (h *handler) enrol(w http.ResponseWriter, r *http.Request) error {
	var body controlapi.EnrolRequest
	if err := readJSONUpTo(maxAsk, w, r, &body); err != nil {
		return err
	}
	if isBefore(r) {
		return controlapi.Outdated()
	}
	started, err := h.svc.Enrolment.Begin(r.Context(), body, clientAddr(r))
	return reply(w, started, err)
}

func (h *handler) pollEnrolment(w http.ResponseWriter, r *http.Request) error {
	var body controlapi.EnrolPoll
	if err := readJSONUpTo(maxAsk, w, r, &body); err != nil {
		return err
	}
	if isBefore(r) { // the code for which it waits no longer
		return &controlapi.Error{Code: controlapi.CodeInvalid, Message: controlapi.SayOutdated}
	}
	enrolled, err := h.svc.Enrolment.Poll(r.Context(), body.DeviceCode)
	return reply(w, enrolled, err)
}

// endCredential ends the credential it is asked with.
func (h *handler) endCredential(w http.ResponseWriter, r *http.Request, _ controlapi.Computer) error {
	if err := h.svc.Agents.EndCredential(r.Context(), bearer(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
