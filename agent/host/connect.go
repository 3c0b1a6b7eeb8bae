package host

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/remote"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

const (
	// askIn bounds what a control plane may take to begin an enrolment, and
	// endIn to end a credential while the owner waits.
	askIn = 15 * time.Second
	endIn = 5 * time.Second

	// maxOrigin is how long the address of a control plane may be, in bytes.
	maxOrigin = 300

	// note says what connecting does to what there is.
	note = "What you approved stays approved. The people you invited while this computer was on its own, and the remote clients you let in, do not come along: invite them again."
)

// ownNote says what a visitor of a computer with certificates of its own sees.
const ownNote = "That server brings its own certificate authority, so this computer makes its own certificates too: every visitor's browser warns until it trusts %s."

// attempt is a connection that waits to be confirmed.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Connect implements localapi.Connector. An attempt that waits already is given
// up for the new one.
func (h *Host) Connect(ctx context.Context, req agentapi.ConnectRequest) (agentapi.Connecting, error) {
	origin, client, err := h.serverAt(req.URL, &req.CA)
	if err != nil {
		return agentapi.Connecting{}, err
	}
	if last := h.lastServer(); req.Name == "" && last.AuthURL == origin && !slices.Contains(h.agent().ApprovedNames(), last.Name) {
		req.Name = last.Name
	}
	if req.ACMEDirectory == "" {
		req.ACMEDirectory = h.cfg.ACMEDirectory
	}
	if err := h.mayConnect(origin, req.Name); err != nil {
		return agentapi.Connecting{}, err
	}
	h.endAttempt()

	asking, cancel := context.WithTimeout(ctx, askIn)
	defer cancel()
	machine, _ := os.Hostname() // shown to the owner, who may do without
	enrolment, err := remote.BeginEnrolment(asking, client, controlapi.EnrolRequest{
		Machine:  machine,
		Platform: runtime.GOOS,
		Name:     req.Name,
		Apps:     h.agent().ApprovedNames(),
	})
	if err != nil {
		return agentapi.Connecting{}, refusalOf(origin, err)
	}
	waiting := agentapi.Connecting{
		State:                   agentapi.ConnectWaiting,
		AuthURL:                 origin,
		UserCode:                enrolment.UserCode,
		VerificationURL:         enrolment.VerificationURL,
		VerificationURLComplete: enrolment.VerificationURLComplete,
		ExpiresAt:               enrolment.ExpiresAt,
		Note:                    note,
	}
	if ownCertificates(req.CA, req.ACMEDirectory) {
		waiting.Note += " " + fmt.Sprintf(ownNote, h.ownRoot())
	}
	if err := h.await(enrolment, waiting, connection{
		ID: newConnectionID(), AuthURL: origin, Store: h.storeKind(),
		CA: req.CA, ACMEDirectory: req.ACMEDirectory,
	}, client); err != nil {
		return agentapi.Connecting{}, err
	}
	return waiting, nil
}

// serverAt is the control plane at an address, and how to ask it. Where no authority was
// given, it is the one this process was started with, or the last server's own.
func (h *Host) serverAt(address string, ca *string) (origin string, client *controlapi.Client, err error) {
	if origin, err = originOf(address); err != nil {
		return "", nil, err
	}
	*ca = cmp.Or(*ca, h.cfg.CA)
	if last := h.lastServer(); *ca == "" && last.AuthURL == origin {
		*ca = last.CA
	}
	roots, err := rootsOf(*ca)
	if err != nil {
		return "", nil, agentapi.Errorf(agentapi.CodeInvalid, "What was given as the server's certificate authority is no certificate in PEM form.")
	}
	return origin, controlClient(origin, roots, ""), nil
}

// lastServer is the connection that the owner ended last, zero before any.
func (h *Host) lastServer() connection {
	if last := h.kept.get().Last; last != nil {
		return *last
	}
	return connection{}
}

// LookServer implements localapi.Connector.
func (h *Host) LookServer(ctx context.Context, look agentapi.ServerLook) (agentapi.Server, error) {
	last := h.lastServer()
	if look.URL == "" {
		return agentapi.Server{URL: last.AuthURL, Name: last.Name, EndedAt: last.At}, nil
	}
	origin, client, err := h.serverAt(look.URL, &look.CA)
	if err != nil {
		return agentapi.Server{}, err
	}
	defer client.HTTP.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, askIn)
	defer cancel()
	if err := client.Answers(ctx); err != nil {
		return agentapi.Server{}, refusalOf(origin, err)
	}
	if last.AuthURL != origin {
		last = connection{}
	}
	return agentapi.Server{URL: origin, Name: last.Name, EndedAt: last.At}, nil
}

// mayConnect refuses what could not come to a good end.
func (h *Host) mayConnect(origin, name string) error {
	if h.cfg.ControlURL != "" && origin != h.cfg.ControlURL {
		return agentapi.Errorf(agentapi.CodeConflict, "This Porchlight was started for %s. Start it with --control %s instead.", h.cfg.ControlURL, origin)
	}
	if c := h.kept.get().Current; c != nil && h.agent().HasControlPlane() {
		return agentapi.Errorf(agentapi.CodeConflict, "This computer is connected to %s already. Disconnect it first: porchlight disconnect", c.AuthURL)
	}
	if name != "" && !controlapi.ValidLabel(name) {
		return agentapi.Errorf(agentapi.CodeInvalid, "A computer's name has 1 to 63 characters: lower-case letters a to z, digits and hyphens. %q cannot be one.", name)
	}
	if slices.Contains(h.agent().ApprovedNames(), name) {
		return nameOfApp(name)
	}
	return nil
}

func nameOfApp(name string) *agentapi.Error {
	return agentapi.Errorf(agentapi.CodeConflict, "An app you approved is called %q, so this computer cannot be. Choose another name, or revoke the app.", name)
}

// await waits for the owner's confirmation behind the caller's back.
func (h *Host) await(e *remote.Enrolment, waiting agentapi.Connecting, c connection, client *controlapi.Client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempt != nil || h.ctx.Err() != nil {
		return agentapi.Errorf(agentapi.CodeConflict, "Another connection is being made right now.")
	}
	ctx, cancel := context.WithCancel(h.ctx)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	h.attempt = a
	h.connecting = &waiting
	go func() {
		defer close(a.done)
		defer cancel()
		err := h.finish(ctx, e, c, client)
		client.HTTP.CloseIdleConnections()
		h.mu.Lock()
		if h.attempt == a {
			h.attempt = nil
		}
		result, failed := waiting, false
		switch {
		case err == nil:
			result.State = agentapi.ConnectDone
			h.connecting = &result
		case ctx.Err() != nil: // given up: nobody wants to know
			h.connecting = nil
		default:
			why := problemOf(waiting.AuthURL, err)
			result.State, result.Problem, result.Words = agentapi.ConnectFailed, why.String(), words.Text{why}
			failed = true
			h.connecting = &result
		}
		h.mu.Unlock()
		if failed {
			h.happened(agentapi.ActivityConnectFailed, waiting.AuthURL)
		}
		h.server.Changes().Raise()
		if err == nil {
			broadcast.Raise(h.switched)
		}
	}()
	h.server.Changes().Raise()
	return nil
}

// finish waits for the confirmation and takes the connection on.
func (h *Host) finish(ctx context.Context, e *remote.Enrolment, c connection, client *controlapi.Client) error {
	enrolled, err := e.Wait(ctx)
	if err != nil {
		return err
	}
	h.cfg.step("confirmed")
	c.ComputerID, c.Name, c.Host = enrolled.Computer.ID, enrolled.Computer.Name, enrolled.Computer.Host
	c.At = time.Now().UTC()
	// From here on it goes to its end: the control plane counts this computer as
	// connected.
	return h.adopt(context.WithoutCancel(ctx), c, enrolled.Credential, client)
}

// adopt makes c the connection of this computer. Before its credential is kept
// anywhere, the file says that there is one to be ended should this be as far as
// it comes; then the credential is kept; then, in one step, the connection is in
// use. Whenever the process is killed, the next one finds this computer as it
// was or as it is to be.
func (h *Host) adopt(ctx context.Context, c connection, credential string, client *controlapi.Client) error {
	h.deciding.Lock()
	defer h.deciding.Unlock()
	client.Credential = credential
	giveBack := func(why error) error {
		ctx, cancel := context.WithTimeout(ctx, endIn)
		defer cancel()
		if err := client.EndCredential(ctx); err != nil {
			h.log.Warn("the control plane could not be told that this computer does not come after all", "err", err)
		}
		return why
	}
	if slices.Contains(h.agent().ApprovedNames(), c.Name) {
		return giveBack(nameOfApp(c.Name))
	}
	h.mu.Lock()
	h.adopting = c.ID
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.adopting = ""
		h.mu.Unlock()
		broadcast.Raise(h.toEnd)
	}()
	if err := h.kept.update(func(k *connections) { k.end(c, time.Now()) }); err != nil {
		return giveBack(err)
	}
	h.cfg.step("noted")
	if err := h.credentials(c).Set(ctx, credential); err != nil {
		return giveBack(err)
	}
	h.cfg.step("credential kept")
	err := h.kept.update(func(k *connections) {
		if k.Current != nil {
			k.end(*k.Current, time.Now())
		} else {
			k.ForgetLocal = true
		}
		k.forget(c.ID)
		k.Current = &c
	})
	if err != nil {
		return giveBack(err)
	}
	h.cfg.step("switched")
	h.happened(agentapi.ActivityConnected, c.AuthURL)
	return nil
}

// happened writes down what the owner did about the connection to a server. The agent of
// before has the record, and the next one goes on with it.
func (h *Host) happened(kind, origin string) {
	h.agent().AddActivity(agentapi.Activity{Kind: kind, Owner: true, What: strings.TrimPrefix(origin, "https://")})
}

// endAttempt gives up what waits, and returns when it is over.
func (h *Host) endAttempt() {
	h.mu.Lock()
	a := h.attempt
	h.mu.Unlock()
	if a != nil {
		a.cancel()
		<-a.done
	}
}

// CancelConnect implements localapi.Connector. It also puts a failure that was
// told out of sight. What was confirmed went to its end.
func (h *Host) CancelConnect(context.Context) error {
	h.endAttempt()
	h.mu.Lock()
	if c := h.connecting; c != nil && c.State == agentapi.ConnectDone {
		h.mu.Unlock()
		return agentapi.Errorf(agentapi.CodeConflict, "It was confirmed already: this computer is connected to %s. To end that, type: porchlight disconnect", c.AuthURL)
	}
	h.connecting = nil
	h.mu.Unlock()
	h.server.Changes().Raise()
	return nil
}

// Connecting implements localapi.Connector.
func (h *Host) Connecting() *agentapi.Connecting {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connecting == nil {
		return nil
	}
	if h.connecting.State == agentapi.ConnectDone {
		if now := h.current.agent.Account(); now.Connected && now.AuthURL == h.connecting.AuthURL {
			return nil // and that says more
		}
	}
	return new(*h.connecting)
}

// Disconnect implements localapi.Connector. This computer is its own again even
// where the control plane cannot be told: it is told later.
func (h *Host) Disconnect(ctx context.Context) error {
	h.endAttempt()
	h.deciding.Lock()
	defer h.deciding.Unlock()
	c := h.kept.get().Current
	if c == nil {
		return agentapi.Errorf(agentapi.CodeConflict, "This computer is not connected to a server.")
	}
	err := h.kept.update(func(k *connections) {
		k.end(*c, time.Now())
		k.Last = new(*c)
		k.Last.At = time.Now().UTC()
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.connecting = nil
	h.mu.Unlock()
	h.cfg.step("ended")
	h.happened(agentapi.ActivityDisconnected, c.AuthURL)
	// Its people lose their way in within moments, not at the next retry.
	ending, cancel := context.WithTimeout(ctx, endIn)
	defer cancel()
	if err := h.endOne(ending, *c); err != nil {
		h.log.Warn("the control plane is told later that this computer has left", "err", err)
		broadcast.Raise(h.toEnd)
	}
	broadcast.Raise(h.switched)
	return nil
}

// controlClient speaks to a control plane.
func controlClient(origin string, roots *x509.CertPool, credential string) *controlapi.Client {
	return &controlapi.Client{
		BaseURL:    origin,
		Credential: credential,
		HTTP:       &http.Client{Transport: controlapi.NewTransport(roots)},
	}
}

// originOf is the address of a control plane as it is kept: https://host[:port].
func originOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	if strings.Contains(text, "@") { // and is not repeated: a password may be in it
		return "", agentapi.Errorf(agentapi.CodeInvalid, "The address of a server looks like https://control.example.net, with no user name or password in it.")
	}
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "https" && u.Hostname() != "" && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "" {
		if origin := "https://" + strings.TrimSuffix(strings.ToLower(u.Host), ":443"); len(origin) <= maxOrigin {
			return origin, nil
		}
	}
	return "", agentapi.Errorf(agentapi.CodeInvalid, "The address of a server looks like https://control.example.net, and %.300q does not.", text)
}

// refusalOf says why an enrolment could not begin.
func refusalOf(origin string, err error) error {
	if sentence := unreachable(origin, err); !sentence.IsZero() {
		return &agentapi.Error{Code: agentapi.CodeUnavailable, Message: sentence.String(), Words: sentence}
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return agentapi.Errorf(agentapi.CodeUnavailable, "The certificate of %s is not one this computer trusts. If the server is yours, give the file that 'porchlight-control ca' prints: porchlight connect %s --ca FILE", origin, origin)
	}
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok {
		return err
	}
	code := agentapi.CodeUpstream
	switch refusal.Code {
	case controlapi.CodeUnavailable:
		code = agentapi.CodeUnavailable
	case controlapi.CodeTooMany:
		code = agentapi.CodeTooMany
	case controlapi.CodeInvalid:
		code = agentapi.CodeInvalid
	}
	return &agentapi.Error{Code: code, Message: refusal.Message, Words: refusal.Words, RetryAfter: refusal.RetryAfter}
}

// unreachable is a sentence about an address that cannot be that of a control
// plane as it stands; zero where it may be.
func unreachable(origin string, err error) words.Sentence {
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return words.Of("The name %s leads nowhere. Check the address of the server for a typing error, and this computer's network.", name.Name)
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return words.Of("The certificate that %s shows is for another name. Check the address: it is the one the server itself names at its start.", origin)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return words.Of("What answers at %s speaks plain HTTP, and a server speaks HTTPS only. Check the port in the address.", origin)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return words.Of("Nothing listens at %s. Check the address and its port, and that the server runs.", origin)
	}
	return words.Sentence{}
}

// problemOf is a sentence about why an enrolment that had begun came to nothing.
func problemOf(origin string, err error) words.Sentence {
	switch {
	case errors.Is(err, remote.ErrEnrolExpired):
		return words.Of("Nobody confirmed the code in time. Connect again for a new one.")
	case errors.Is(err, remote.ErrEnrolDenied):
		return words.Of("The connection was declined in the browser.")
	}
	if refusal, ok := errors.AsType[*agentapi.Error](err); ok {
		if refusal.Words.IsZero() {
			return words.Plain(refusal.Message)
		}
		return refusal.Words
	}
	return words.Of("This computer could not be connected to %[1]s: %[2]s", origin, strings.TrimSuffix(err.Error(), ".")+".")
}
