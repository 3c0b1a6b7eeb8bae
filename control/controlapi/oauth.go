package controlapi

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Paths of OAuth, under the auth URL (docs/interface.md, OAuth).
const (
	PathAuthorize = "/oauth/authorize" // GET by a browser; its consent page posts back to it
	PathToken     = "/oauth/token"     // POST, a form
	PathRevoke    = "/oauth/revoke"    // the same: RFC 7009

	PathDiscovery    = "/.well-known/oauth-authorization-server" // GET, no authentication: RFC 8414
	PathOpenID       = "/.well-known/openid-configuration"       // 404: this is OAuth without OpenID Connect
	PathGrants       = "/v1/grants"                              // GET: Grants
	PathGrantsRevoke = "/v1/grants/revoke"                       // POST RevokeGrant
)

// What holds for every access token.
const (
	TokenIssuer = "service-control"
	TokenScope  = "connect"
	TokenLife   = 600 * time.Second

	// ClockSkew is how far an agent's clock may be off, if the control plane's
	// answers show that it is.
	ClockSkew = 60 * time.Second
	// GrantMemory is how long a snapshot names a revoked grant, and how long a
	// replaced signing key still verifies: longer than any access token can be
	// used, skew included.
	GrantMemory = 720 * time.Second
)

// OAuth codes of Error (docs/interface.md, Errors). CodeInvalidGrant is one of
// them, too.
const (
	CodeInvalidClient           = "invalid_client"
	CodeAccessDenied            = "access_denied"
	CodeUnsupportedGrantType    = "unsupported_grant_type"
	CodeInvalidRedirectURI      = "invalid_redirect_uri"
	CodeInvalidTarget           = "invalid_target" // RFC 8707
	CodeUnsupportedResponseType = "unsupported_response_type"
)

// Grant is a remote client that somebody allowed to open apps on a computer in
// their name.
type Grant struct {
	ID         string    `json:"id"`
	ClientID   string    `json:"clientId"`
	ClientName string    `json:"clientName"` // as it was when they allowed it
	AccountID  string    `json:"accountId"`
	Email      string    `json:"email"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt"`     // when tokens were last handed out
	Apps       []string  `json:"apps,omitempty"` // ids of the apps it opens; absent for all of the computer's
}

// ClientHost is the host of a client that describes itself at its id, an https address,
// and "" for a registered one. It is checked, and the client's name is not.
func ClientHost(clientID string) string {
	rest, address := strings.CutPrefix(clientID, "https://")
	if !address {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// MaxClientHosts is how many hosts may be allowed.
const MaxClientHosts = 100

// clientHost is a name of the DNS that is no address in any spelling: its last part
// begins with a letter.
var clientHost = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidClientHost says whether clients can describe themselves at a host: a whole name in
// lower case, without a port, and none that is always this computer's.
func ValidClientHost(host string) bool {
	return len(host) <= 200 && clientHost.MatchString(host) && !strings.HasSuffix(host, ".localhost")
}

// ReachClient is the id of a public client that every control plane has: porchlight reach. It
// alone gets tokens for apps that are reached by TCP (App.TCP), one at a time, and for no other.
const ReachClient = "porchlight-reach"

// limitedGrant begins the id of a grant that opens some apps only; no other id has it.
const limitedGrant = "1"

// LimitedGrantID makes the id of a grant that opens some apps only from any other id.
func LimitedGrantID(id string) string { return limitedGrant + id }

// IsLimitedGrant says by its id whether a grant opens some apps only. Whoever has not been
// told which yet can so refuse instead of opening all.
func IsLimitedGrant(id string) bool { return strings.HasPrefix(id, limitedGrant) }

// FoldGrants lists the grants of one computer as people see them: one row a client
// and account, however often and on how many devices it was allowed. A row is its
// oldest grant, with the newest name and last use, and opens what one of them opens; the
// newest row comes first.
func FoldGrants(grants []Grant) []Grant {
	type party struct{ client, account string }
	rows := map[party]Grant{}
	for _, g := range slices.SortedFunc(slices.Values(grants), func(a, b Grant) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		of := party{g.ClientID, g.AccountID}
		row, again := rows[of]
		if !again {
			row = g
		}
		row.ClientName = g.ClientName
		if len(row.Apps) == 0 || len(g.Apps) == 0 {
			row.Apps = nil // all
		} else {
			row.Apps = slices.Compact(slices.Sorted(slices.Values(slices.Concat(row.Apps, g.Apps))))
		}
		if g.LastUsedAt.After(row.LastUsedAt) {
			row.LastUsedAt = g.LastUsedAt
		}
		rows[of] = row
	}
	return slices.SortedFunc(maps.Values(rows), func(a, b Grant) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// Grants answers GET PathGrants: all grants for one computer, newest first,
// not folded: an agent refuses the tokens of each by its id.
type Grants struct {
	Grants []Grant `json:"grants"`
}

// RevokeGrant is the body of POST PathGrantsRevoke.
type RevokeGrant struct {
	ID string `json:"id"`
}

// AccessClaims are exactly the claims of an access token (docs/interface.md,
// Access token). It is the jwt.Claims of golang-jwt; the audience is written as
// one string and read as nothing else.
type AccessClaims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"` // account id
	Email    string `json:"email"`
	Audience string `json:"aud"` // root host of the computer
	ClientID string `json:"client_id"`
	Grant    string `json:"grant"`
	Scope    string `json:"scope"`
	IssuedAt int64  `json:"iat"` // unix seconds
	Expires  int64  `json:"exp"` // unix seconds
	ID       string `json:"jti"`
}

func (c AccessClaims) GetIssuer() (string, error)  { return c.Issuer, nil }
func (c AccessClaims) GetSubject() (string, error) { return c.Subject, nil }

func (c AccessClaims) GetAudience() (jwt.ClaimStrings, error) {
	return jwt.ClaimStrings{c.Audience}, nil
}

func (c AccessClaims) GetIssuedAt() (*jwt.NumericDate, error)       { return date(c.IssuedAt), nil }
func (c AccessClaims) GetExpirationTime() (*jwt.NumericDate, error) { return date(c.Expires), nil }
func (c AccessClaims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }

// date is nil for a claim that is not there.
func date(unix int64) *jwt.NumericDate {
	if unix == 0 {
		return nil
	}
	return jwt.NewNumericDate(time.Unix(unix, 0))
}
