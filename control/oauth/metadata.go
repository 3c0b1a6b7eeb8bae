package oauth

import "porchlight/control/controlapi"

// metadata is what is told of the endpoints (RFC 8414, section 2).
type metadata struct {
	Issuer            string   `json:"issuer"`
	Authorize         string   `json:"authorization_endpoint"`
	Token             string   `json:"token_endpoint"`
	Scopes            []string `json:"scopes_supported"`
	ResponseTypes     []string `json:"response_types_supported"`
	ResponseModes     []string `json:"response_modes_supported"`
	GrantTypes        []string `json:"grant_types_supported"`
	TokenAuth         []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods  []string `json:"code_challenge_methods_supported"`
	AuthorizeResponds bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// Metadata describes the endpoints at authURL, https://host[:port].
func Metadata(authURL string) any {
	return metadata{
		Issuer:           authURL,
		Authorize:        authURL + controlapi.PathAuthorize,
		Token:            authURL + controlapi.PathToken,
		Scopes:           []string{controlapi.TokenScope},
		ResponseTypes:    []string{"code"},
		ResponseModes:    []string{"query"},
		GrantTypes:       []string{grantCode, grantRefresh},
		TokenAuth:        []string{"client_secret_basic", "client_secret_post"},
		ChallengeMethods: []string{"S256"},
	}
}
