package agentapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"porchlight/internal/words"
)

// AppOptions are the owner's choices for one app. False or empty is the default. This
// is the one table of them, see Field.
type AppOptions struct {
	// Forwarded adds X-Forwarded-For, -Proto and -Host of our own, true ones.
	Forwarded bool `json:"forwarded" help:"add true X-Forwarded-For, -Proto and -Host"`
	// PublicAddress adds X-Forwarded-Proto and -Host of our own, for apps that build
	// absolute addresses: without them such an app writes http:// into its links.
	PublicAddress bool `json:"publicAddress" help:"tell the app its public address, by true X-Forwarded-Proto and -Host"`
	// LocalhostHost sends localhost:PORT as Host, for development servers that
	// check it; otherwise the app sees the public host.
	LocalhostHost bool `json:"localhostHost" help:"send localhost:PORT as Host"`
	// IdentityHeader additionally carries who the visitor is, for apps that
	// know a header of their own: X-Remote-User, Remote-User, X-WEBAUTH-USER.
	// Empty for none.
	IdentityHeader string `json:"identityHeader" help:"also say who the visitor is in this header, like X-Remote-User; '' for none"`
	// IdentityValue is what IdentityHeader carries: IdentityEmail or IdentityID.
	IdentityValue string `json:"identityValue" default:"email" help:"what that header carries: email or id"`
	// IdentityToken adds X-Service-Token, by which an app can check who the visitor is: a
	// JWT that a key of this computer signed.
	IdentityToken bool `json:"identityToken" help:"also say who the visitor is in X-Service-Token, a signed JWT that the app can check"`
	// OnlyPasskey lets in who signed in with a passkey, and the owner by this computer's own
	// link, and nobody else but what BesidesPasskey names.
	OnlyPasskey bool `json:"onlyPasskey" help:"let in only who signed in with a passkey"`
	// BesidesPasskey are some of Besides, with a comma between. Without OnlyPasskey it is empty.
	BesidesPasskey string `json:"besidesPasskey" help:"what --only-passkey lets in besides: some of passwords,tokens,code,provider; '' for nothing"`
	// AllowCrossOrigin lets pages of other apps show this one in a frame, load
	// from it, send it requests and open WebSockets, with a visitor's cookie.
	AllowCrossOrigin bool `json:"allowCrossOrigin" help:"let pages of other apps send requests and open WebSockets with a visitor's sign-in"`
	// H2C speaks HTTP/2 without TLS to the app.
	H2C bool `json:"h2c" help:"speak HTTP/2 without TLS to the app"`
	// Upstream is how the app is reached: empty for HTTP on its port (Scheme),
	// UpstreamHTTP, UpstreamHTTPS, UpstreamH2C, or the path of a unix socket after
	// "unix:".
	Upstream string `json:"upstream" help:"how the app is reached: auto, http, https, h2c, or unix:/PATH of its socket"`
	// Pin keeps the key that the app shows over HTTPS, and asks the owner when it
	// shows another one.
	Pin bool `json:"pin" help:"of an app reached over HTTPS: ask again when it shows another key than it did first"`
	// HostHeader is sent as Host in place of the public host, a host name and perhaps
	// a port; empty for not.
	HostHeader string `json:"hostHeader" help:"send this as Host, like intranet.example:8080; '' for the public host"`
	// FirstByte is how many seconds a page that a visitor loads waits for the app's
	// first word: at most MaxFirstByte, 0 for DefaultFirstByte.
	FirstByte int `json:"firstByte" help:"seconds a page waits for the app's first word, at most 3600; 0 for 60"`
	// NoHSTS leaves out the Strict-Transport-Security that answers of an app with a
	// publicly trusted certificate at port 443 have.
	NoHSTS bool `json:"noHsts" help:"do not tell browsers to open the app by HTTPS only"`
	// MCP is the path at which the app speaks MCP: it is asked there how it does, as an
	// assistant would, and not for its first page. Empty for none.
	MCP string `json:"mcp" help:"where the app speaks MCP, like /mcp: how it does is asked there; '' for its first page"`
}

// Bounds of AppOptions.FirstByte, in seconds.
const (
	DefaultFirstByte = 60
	MaxFirstByte     = 3600
)

// WaitLonger says how long pages of an app waited in vain, and what to type to have them
// wait longer: five times that.
func (o AppOptions) WaitLonger(name string) words.Sentence {
	waited := cmp.Or(o.FirstByte, DefaultFirstByte)
	if waited == MaxFirstByte {
		return words.Of("It did not answer a page within %s seconds.", strconv.Itoa(waited))
	}
	return words.Of("It did not answer a page within %[1]s seconds. To have pages wait longer, type: porchlight options %[2]s --first-byte %[3]s",
		strconv.Itoa(waited), name, strconv.Itoa(min(5*waited, MaxFirstByte)))
}

// Values of AppOptions.IdentityValue.
const (
	IdentityEmail = "email"
	IdentityID    = "id"
)

// What AppOptions.BesidesPasskey can name.
const (
	BesidesPasswords = "passwords" // app passwords
	BesidesTokens    = "tokens"    // the access tokens of connected apps
	BesidesCode      = "code"      // who signed in with a recovery code
	BesidesProvider  = "provider"  // who signed in with an account at a provider
)

// Besides are all of them.
var Besides = []string{BesidesPasswords, BesidesTokens, BesidesCode, BesidesProvider}

// LetsInBesides says whether something that is no passkey is let in all the same.
func (o *AppOptions) LetsInBesides(what string) bool {
	return !o.OnlyPasskey || slices.Contains(strings.Split(o.BesidesPasskey, ","), what)
}

// OfTCP are those of the options that an app has which is reached over TCP.
func (o AppOptions) OfTCP() AppOptions {
	return AppOptions{OnlyPasskey: o.OnlyPasskey, BesidesPasskey: o.BesidesPasskey}
}

// checkedPasskey has BesidesPasskey name each once, in the order of Besides.
func (o AppOptions) checkedPasskey() (AppOptions, error) {
	named := strings.FieldsFunc(o.BesidesPasskey, func(r rune) bool { return r == ',' || r == ' ' })
	o.BesidesPasskey = ""
	if !o.OnlyPasskey {
		return o, nil
	}
	for _, one := range named {
		if !slices.Contains(Besides, one) {
			return o, Errorf(CodeInvalid, "%.80q cannot be let in besides passkeys. Name some of %s.", one, strings.Join(Besides, ","))
		}
	}
	o.BesidesPasskey = strings.Join(slices.DeleteFunc(slices.Clone(Besides), func(one string) bool { return !slices.Contains(named, one) }), ",")
	return o, nil
}

// Options are the fields of AppOptions, in their order.
var Options = fieldsOf[AppOptions]()

// Checked returns options as they are kept, with what follows from the owner's
// choice filled in. Its errors are sentences.
func (o AppOptions) Checked() (AppOptions, error) {
	if o.FirstByte < 0 || o.FirstByte > MaxFirstByte {
		return o, Errorf(CodeInvalid, "A page can wait for the app's first word from 1 to %d seconds; 0 is the default of %d.", MaxFirstByte, DefaultFirstByte)
	}
	if o.MCP != "" && !IsAssistPath(o.MCP) {
		return o, Errorf(CodeInvalid, "%.80q cannot be the path of MCP. Write it like /mcp, as it stands in the address, without what follows a question mark.", o.MCP)
	}
	o, err := o.checkedReach()
	if err != nil {
		return o, err
	}
	if o, err = o.checkedPasskey(); err != nil {
		return o, err
	}
	o.IdentityHeader = strings.TrimSpace(o.IdentityHeader)
	if o.IdentityHeader == "" {
		o.IdentityValue = ""
		return o, nil
	}
	switch {
	case len(o.IdentityHeader) > maxIdentityHeader || !httpguts.ValidHeaderFieldName(o.IdentityHeader):
		return o, Errorf(CodeInvalid,
			"%.80q cannot be the name of a header. Write it like X-Remote-User, in at most %d letters, digits and dashes.", o.IdentityHeader, maxIdentityHeader)
	case !ValidIdentityHeader(o.IdentityHeader):
		return o, Errorf(CodeInvalid,
			"The header %s means something else already. Take the one the app reads who is signed in from, like X-Remote-User.", o.IdentityHeader)
	}
	switch o.IdentityValue {
	case "":
		o.IdentityValue = IdentityEmail
	case IdentityEmail, IdentityID:
	default:
		return o, Errorf(CodeInvalid, "The identity header can carry %q or %q, and not %.80q.", IdentityEmail, IdentityID, o.IdentityValue)
	}
	return o, nil
}

// ChangeOptions changes those options of an app that are named, as in JSON, and
// leaves the others; null is the default: PATCH /owner/apps/{name}/options.
func (c *Client) ChangeOptions(ctx context.Context, name string, change map[string]any) (AppOptions, error) {
	return call[AppOptions](ctx, c, http.MethodPatch, appPath(name, "options"), change)
}

// maxIdentityHeader is the longest AppOptions.IdentityHeader, in bytes.
const maxIdentityHeader = 64

// Headers an identity must never be sent in: those the connection, the browser
// or the proxy itself depend on, and those that change what a request asks for.
// Names ending in "-" stand for all that begin so.
var notForIdentity = []string{
	"x-service-", "x-forwarded-", "x-original-", "x-rewrite-", "x-http-method-", "x-method-override",
	"content-", "sec-", "proxy-", "access-control-", "if-", "accept-", "cf-",
	"accept", "age", "allow", "authorization", "cache-control", "connection", "cookie", "cookie2", "date", "depth",
	"destination", "dnt", "early-data", "etag", "expect", "expires", "forwarded", "from", "host", "http2-settings",
	"keep-alive", "last-event-id", "link", "location", "max-forwards", "origin", "overwrite", "pragma", "priority",
	"proxy", "range", "referer", "set-cookie", "te", "timeout", "trailer", "transfer-encoding", "upgrade",
	"user-agent", "vary", "via", "warning", "www-authenticate", "x-real-ip", "x-requested-with", "x-csrf-token", "x-xsrf-token",
	"x-porchlight-key",
}

// meantForIdentity are taken all the same: other proxies have sent who is there
// in them for long.
var meantForIdentity = []string{"x-forwarded-user", "x-forwarded-email", "x-forwarded-preferred-username", "cf-access-authenticated-user-email"}

// ValidIdentityHeader says whether a name can be AppOptions.IdentityHeader: the
// name of a header that means nothing else. Letters are compared without case
// and everything else as "-", as apps read names. A name that is not valid is
// neither kept nor sent.
func ValidIdentityHeader(name string) bool {
	if len(name) > maxIdentityHeader || !httpguts.ValidHeaderFieldName(name) {
		return false
	}
	folded := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
	switch {
	case strings.Trim(folded, "-") == "":
		return false
	case slices.Contains(meantForIdentity, folded):
		return true
	}
	for _, not := range notForIdentity {
		if folded == strings.TrimSuffix(not, "-") || strings.HasSuffix(not, "-") && strings.HasPrefix(folded, not) {
			return false
		}
	}
	return true
}
