// Package upgrade holds what earlier versions of Porchlight wrote, and what
// whoever used them holds of it: later versions open all of it.
package upgrade

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
)

// Redirect is where the client waits for its code; nobody is there.
const Redirect = "https://pocket.example/callback"

// Domain is that of the control plane of a connected computer.
const Domain = "porch.localhost"

// Kept is what was in a data directory when it was written, as the command line
// of that version printed it, and what people outside hold of it.
type Kept struct {
	WrittenAt time.Time
	Account   agentapi.Account
	Apps      []agentapi.AppSummary
	People    agentapi.People
	Grants    []agentapi.Grant
	Activity  []agentapi.Activity
	Settings  agentapi.Settings
	Options   agentapi.AppOptions // of notes
	// Cookies of the browsers of ben, a member, and of the owner, at the app notes.
	Ben, Owner map[string]string
	// Client is a remote client that ben let in.
	Client struct {
		ClientID     string `json:"clientId"`
		ClientSecret string `json:"clientSecret"`
	}
	RefreshToken string
	Password     agentapi.MadePassword // of the owner, for notes; 15e3b3f had none
}

// OAuth is the client as golang.org/x/oauth2 wants it described.
func OAuth(k Kept) *oauth2.Config {
	return &oauth2.Config{
		ClientID: k.Client.ClientID, ClientSecret: k.Client.ClientSecret, RedirectURL: Redirect, Scopes: []string{"connect"},
		Endpoint: oauth2.Endpoint{AuthURL: k.Account.AuthURL + "/oauth/authorize", TokenURL: k.Account.AuthURL + "/oauth/token"},
	}
}

// Client finds *.localhost on this computer and trusts roots.
func Client(roots *x509.CertPool) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		DisableKeepAlives: true,
		DialContext:       controlapi.DialContext,
	}
	return &http.Client{Transport: transport}
}
