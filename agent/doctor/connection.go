package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/trust"
	"porchlight/control/controlapi"
	"porchlight/internal/samesite"
	"porchlight/internal/words"
)

// SkewAllowed is how far this computer's clock may be from the control plane's
// before tokens and certificates are judged wrongly. A Date header counts whole
// seconds.
const SkewAllowed = 30 * time.Second

// lightUp takes going dark back.
const lightUp = "To open it again, type: porchlight dark off"

// Connection says how things are with the control plane, as the agent tells it.
func Connection(state agentapi.OwnerState) Finding {
	switch {
	case state.Trouble != "":
		return Finding{Check: "connection", State: wrong, Text: state.Trouble, Words: state.TroubleWords, Next: troubleNext(state)}
	case !state.Account.Connected && !state.Account.Local:
		return Found("connection", wrong, "This computer is not connected.", "Type: porchlight connect URL")
	case state.DarkSince != nil:
		return Found("connection", note, "Everything is closed by you.", lightUp)
	case state.Account.Local:
		return Found("connection", fine, "On its own: nobody but this computer can reach "+state.Account.URL, "")
	}
	return Found("connection", fine, fmt.Sprintf("%s, at %s", state.Account.Email, state.Account.URL), "")
}

// troubleNext says what to do about a trouble whose sentence does not.
func troubleNext(state agentapi.OwnerState) string {
	if !state.Account.Connected && !state.Account.Local {
		return "Type: porchlight connect URL"
	}
	for _, app := range state.Apps {
		if app.Certificate != nil && app.Certificate.Problem != "" {
			return certificateNext
		}
	}
	return ""
}

// ControlPlane asks for something anybody may have, and compares clocks.
func ControlPlane(ctx context.Context, authURL string, roots *x509.CertPool) []Finding {
	began := time.Now()
	resp, err := get(ctx, authURL+"/auth/pubkey", roots)
	if err != nil {
		return []Finding{Said("control plane", wrong, Unreached(authURL, err), ControlPlaneNext(authURL, err))}
	}
	took := time.Since(began)
	found := []Finding{Said("control plane", fine, words.Of("%[1]s answers, in %[2]s ms.", authURL, strconv.FormatInt(took.Milliseconds(), 10)), "")}
	if resp.StatusCode != http.StatusOK {
		found[0] = Said("control plane", wrong, words.Of("%[1]s answers with HTTP %[2]s, unlike a control plane.", authURL, strconv.Itoa(resp.StatusCode)), "Ask whoever runs it.")
	}
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return found
	}
	// The header was written between the two readings of this clock.
	skew := time.Duration(0)
	if ahead := began.Sub(theirs.Add(time.Second)); ahead > 0 {
		skew = ahead
	} else if behind := theirs.Sub(began.Add(took)); behind > 0 {
		skew = -behind
	}
	return append(found, Clock(skew))
}

// ControlPlaneNext says what to do about a control plane that did not answer.
func ControlPlaneNext(authURL string, err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && !expired(err) {
		return "If it has an authority of its own, get its certificate from whoever runs it, and connect anew with it: porchlight disconnect; porchlight connect " + authURL + " --ca FILE"
	}
	const kept = "Whoever could open your apps still can, for the time in 'porchlight settings'; new sign-ins wait. "
	if strings.HasPrefix(hostName(authURL), "control.localhost") {
		return kept + "It is a part of this Porchlight: quit it, and start it again."
	}
	return kept + "Look whether this computer is online, and ask whoever runs the control plane."
}

// Cookies tells of neighbours whose pages can set cookies for this computer's
// addresses, or for the page people sign in at. There is nothing to say where
// browsers keep computers apart.
func Cookies(address, authURL string) []Finding {
	const next = "Whoever runs the service can use a domain of the Public Suffix List (docs/security.md: Cookies of neighbours)."
	here, err1 := url.Parse(address)
	auth, err2 := url.Parse(authURL)
	if err1 != nil || err2 != nil {
		return nil
	}
	_, domain, _ := strings.Cut(here.Hostname(), ".")
	switch samesite.Of(domain, auth.Hostname()) {
	case samesite.SignIn:
		return []Finding{Found("cookies", note, fmt.Sprintf("Browsers take computers under %s and the sign-in page for one site: a page of anybody's can set cookies for all of them.", domain), next)}
	case samesite.Computers:
		return []Finding{Found("cookies", note, fmt.Sprintf("Browsers take computers under %s for one site: a page of one can set cookies for the others.", domain), next)}
	}
	return nil
}

// Clock judges how far this computer's clock is ahead.
func Clock(skew time.Duration) Finding {
	text := "This computer's clock is %s ahead of the control plane's."
	if skew < 0 {
		text = "This computer's clock is %s behind the control plane's."
	}
	off := skew.Abs().Round(time.Second)
	if off > SkewAllowed {
		return Said("clock", wrong, words.Sentence{Key: text, Args: []any{off.String()}}, "Set it right, or have it set over the network: timedatectl set-ntp true")
	}
	return Said("clock", fine, words.Of("This computer's clock agrees with the control plane's."), "")
}

// Visit goes the whole way a visitor goes, up to the page that asks them to
// sign in: name, relay, tunnel, this computer's certificate.
func Visit(ctx context.Context, state agentapi.OwnerState, root string) Finding {
	address := state.Account.URL
	if state.DarkSince != nil {
		return Said("visit", note, words.Of("Nobody gets through to %s: you have closed everything.", address), lightUp)
	}
	resp, err := get(ctx, address, Roots(root))
	switch {
	case err != nil:
		return Said("visit", wrong, Unreached(address, err), VisitNext(err))
	case resp.StatusCode >= http.StatusInternalServerError:
		return Said("visit", wrong, words.Of("A visitor of %[1]s gets an error (HTTP %[2]s).", address, strconv.Itoa(resp.StatusCode)), "Quit Porchlight and start it again; its log says why.")
	}
	return Said("visit", fine, words.Of("A visitor gets through to %s", address), "")
}

// Roots are whom a browser of this computer believes: the system's authorities, and the
// one in a file of this computer's own, where there is one.
func Roots(file string) *x509.CertPool {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if file != "" {
		if pem, err := os.ReadFile(file); err == nil {
			roots.AppendCertsFromPEM(pem)
		}
	}
	return roots
}

// Tried says the same of a visit that the agent made itself.
func Tried(state agentapi.OwnerState, tried agentapi.TriedAddress) Finding {
	switch {
	case state.DarkSince != nil:
		return Said("visit", note, words.Of("Nobody gets through to %s: you have closed everything.", state.Account.URL), lightUp)
	case !tried.Works:
		return Finding{Check: "visit", State: wrong, Text: tried.Text, Words: tried.Words, Next: VisitNext(nil)}
	}
	return Said("visit", fine, words.Of("A visitor gets through to %[1]s, in %[2]s ms.", state.Account.URL, strconv.FormatInt(tried.Milliseconds, 10)), "")
}

// VisitNext says what to do where visitors do not get through.
func VisitNext(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "Whoever runs the service publishes a DNS record for it (docs/operating.md: Names)."
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "Visitors are warned or refused. Look at the clock and at what is said of certificates here; then quit Porchlight and start it again."
	}
	return "Visitors do not get through. Look whether this computer is online; then quit Porchlight and start it again, or ask whoever runs the relay."
}

// Names tells programs that cannot find names under localhost. Chromium,
// Firefox and curl know them without asking (RFC 6761, section 6.3).
func Names(ctx context.Context, name string) Finding {
	getent, err := exec.LookPath("getent")
	if err != nil {
		return Found("names", note, "Browsers find names under localhost; whether other programs do was not tried.", "")
	}
	if exec.CommandContext(ctx, getent, "ahosts", name).Run() != nil {
		return Found("names", note, "Chromium, Firefox and curl find "+name+"; Python, Node and Go do not.", "If you need them to, install the package libnss-myhostname (on Debian: sudo apt install libnss-myhostname).")
	}
	return Found("names", fine, "Every program here finds "+name+".", "")
}

// Browsers says whether they trust the certificates this computer makes itself.
func Browsers(ctx context.Context, own func() (*trust.Authority, error)) Finding {
	authority, err := own()
	if err != nil {
		return Finding{Check: "browsers", State: wrong, Text: Sentence(err), Words: words.Text{words.InWords(err)}}
	}
	trusted, err := authority.Trusted(ctx)
	missing, unknown := errors.AsType[*trust.MissingError](err)
	switch {
	case unknown:
		next := "To find out, install the package that has it: libnss3-tools or nss-tools."
		if missing.Install != "" {
			next = "To find out, type: " + missing.Install
		}
		return Said("browsers", note, words.Of("Whether your browsers trust this computer's certificates is not known: the program that reads their lists, %s, is not installed.", missing.Program), next)
	case err != nil:
		return Finding{Check: "browsers", State: wrong, Text: Sentence(err), Words: words.Text{words.InWords(err)}}
	case !trusted:
		return Said("browsers", note, words.Of("Your browsers warn of this computer's certificates."), "To end that, type: porchlight trust")
	}
	return Said("browsers", fine, words.Of("Your browsers trust this computer's certificates."), "")
}

// issuers are the names by which CAA records call authorities, by the end of
// their accounts' hosts.
var issuers = map[string]string{".letsencrypt.org": "letsencrypt.org"}

// CAA is the DNS record with which nobody but this computer's account gets
// certificates for its names (RFC 8659, RFC 8657). Whether it is there is not
// looked up: that is the authority's to do. It allows both ways that agents use: a record that
// allows one is in the way as soon as the server begins or ends to publish challenges.
func CAA(address, account string) Finding {
	name, authority := address, account
	if u, err := url.Parse(address); err == nil {
		name = u.Hostname()
	}
	if u, err := url.Parse(account); err == nil {
		authority = u.Hostname()
	}
	issuer := authority
	for end, is := range issuers {
		if strings.HasSuffix(authority, end) {
			issuer = is
		}
	}
	return Found("CAA", fine, "Certificates come from "+issuer+". For nobody else to get one, whoever runs the domain publishes:",
		fmt.Sprintf(`%s. IN CAA 0 issue "%s; validationmethods=dns-01,tls-alpn-01; accounturi=%s"`, name, issuer, account))
}

// Common says whether all apps have one certificate, as far as they have any; known is false
// where none has.
func Common(apps []agentapi.OwnerApp) (common, known bool) {
	for _, app := range apps {
		if app.Certificate == nil || app.Certificate.NotAfter == nil {
			continue
		}
		common = app.Certificate.Common && (common || !known)
		known = true
	}
	return common, known
}

// Logs says whether everybody can read the names of apps in the logs of certificates.
func Logs(common bool) Finding {
	if common {
		return Said("logs", fine, words.Of("One certificate serves all your apps, so the public logs of certificates have no app's name."), "")
	}
	return Said("logs", note, words.Of("Each app has a certificate of its own, so everybody can read its name in the public logs of certificates."),
		"Whoever runs your server can end that with --dns or --dns-update (docs/operating.md: Certificates of the computers).")
}

// get follows no redirect and reads little: an answer is all that is wanted.
func get(ctx context.Context, address string, roots *x509.CertPool) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	transport := controlapi.NewTransport(roots)
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, agentapi.MaxBody))
	return resp, err
}

// Unreached says in words why an address did not answer.
func Unreached(address string, err error) words.Sentence {
	if u, parseErr := url.Parse(address); parseErr == nil {
		address = u.Host
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return words.Of("The name %s leads nowhere: no DNS record was found for it.", dns.Name)
	}
	if remote, ok := errors.AsType[*net.OpError](err); ok && remote.Op == "remote error" && strings.HasSuffix(remote.Error(), UnrecognizedName) {
		return words.Of("The relay at %s knows no computer of this name, or its tunnel is down.", address)
	}
	if expired(err) {
		return words.Of("The certificate of %s has expired or is not valid yet, or this computer's clock is wrong.", address)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return words.Of("The certificate of %s is not one this computer trusts.", address)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return words.Of("%[1]s did not answer within %[2]s.", address, Within.String())
	}
	return words.Of("%s cannot be reached.", address)
}

func expired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

// UnrecognizedName is the alert of a relay that has no tunnel for a name (RFC
// 6066, section 3), as crypto/tls writes it; its type is not exported.
const UnrecognizedName = "tls: unrecognized name"

// localhostName is the host of an address when it is under localhost, without
// its port; otherwise empty.
func localhostName(address string) string {
	if name := hostName(address); strings.HasSuffix(name, ".localhost") {
		return name
	}
	return ""
}

// hostName is the host of an address without its port.
func hostName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
