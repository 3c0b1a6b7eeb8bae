package listening

import (
	"context"
	"encoding/base64"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/agent/upstream"
)

const (
	atOnce   = 4           // listeners that are asked at a time
	askFor   = time.Second // for each of the two questions
	maxRead  = 64 << 10    // bytes of an answer, with its head
	maxTitle = 80          // characters
)

// Look asks one listener for its title and icon: one GET / and at most one GET of an
// icon, without a cookie or an identity, and no redirect is followed. Before a byte is
// sent, the port has to be in the hands of the user that the list names. A program that
// does not answer, or not with a page, has no title, which is no error.
func (l *Listening) Look(ctx context.Context, look agentapi.Look) (agentapi.Looked, error) {
	one, program, err := l.mayLook(look)
	if err != nil {
		return agentapi.Looked{}, err
	}
	select {
	case l.slot <- struct{}{}:
		defer func() { <-l.slot }()
	case <-ctx.Done():
		return agentapi.Looked{}, ctx.Err()
	}
	found := l.ask(ctx, one)
	out := agentapi.Looked{Port: one.port, Title: found.title, Icon: base64.StdEncoding.EncodeToString(found.icon)}
	out.Name, out.Label = l.cfg.Suggest(found.title, named(program), portLabel(one.port))
	return out, nil
}

// mayLook finds the listener, and refuses one that may not be asked.
func (l *Listening) mayLook(look agentapi.Look) (one listener, program string, err error) {
	all := reachable(procinfo.AllBound())
	i := slices.IndexFunc(all, func(one listener) bool { return one.port == look.Port })
	if i < 0 {
		return one, "", agentapi.Errorf(agentapi.CodeConflict, "Port %d stopped listening.", look.Port)
	}
	one, program = all[i], all[i].Find().Program
	switch {
	case !l.cfg.Titles():
		err = agentapi.Errorf(agentapi.CodeConflict, "Titles and icons are switched off in the settings.")
	case one.port < firstPort || l.notOffered(one.port, program) != "":
		err = agentapi.Errorf(agentapi.CodeForbidden, "Port %d is not asked for a title: it is not known for pages.", one.port)
	case one.UserID == "" || one.UserID != l.cfg.Me && !look.Asked:
		err = agentapi.Errorf(agentapi.CodeForbidden, "Port %d is not a program of yours. It is asked for its title when you say so.", one.port)
	}
	return one, program, err
}

// found is what a listener says of itself.
type found struct {
	title string
	icon  []byte // a PNG drawn by us; nil for none
}

// ask asks for the first page, and for the icon that it names, or else the one that
// browsers ask for.
func (l *Listening) ask(ctx context.Context, one listener) (f found) {
	page, err := one.get(ctx, l.askFor, "/", "text/html")
	if err != nil || !page.says() {
		return f
	}
	icon := ""
	if page.status < 300 {
		f.title, icon = readPage(page, one.host())
	}
	if icon == "" {
		icon = "/favicon.ico"
	}
	if got, err := one.get(ctx, l.askFor, icon, "image/png, image/x-icon, image/jpeg"); err == nil && got.status == 200 && !got.cut {
		f.icon = redraw(got.body)
	}
	return f
}

// target is where the listener is reached. Whatever it speaks, it is asked in HTTP.
func (one listener) target() upstream.Target {
	t := upstream.Target{Port: one.port, Scheme: agentapi.UpstreamHTTP}
	if one.v6 {
		t.Address = upstream.IPv6
	}
	return t
}

// checks let nobody but the user who was found be asked.
func (one listener) checks() upstream.Checks {
	return upstream.Checks{Peer: func(agentapi.Listener) bool {
		return procinfo.ListenerSocket(one.target().IP(), one.port).UserID == one.UserID
	}}
}
