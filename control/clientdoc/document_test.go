package clientdoc

import (
	"strings"
	"testing"

	"porchlight/test/programs"
)

const id = "https://editor.example/oauth/client.json"

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{
		id, "https://a.b.example/c", "https://xn--bcher-kva.example/c", "https://editor.example/a//b/", "https://editor.example/%C3%A9", "https://editor.example/...",
	} {
		if HostOf(ok) == "" {
			t.Errorf("%s is refused", ok)
		}
	}
	for _, bad := range []string{
		"", "editor", "https://", "http://editor.example/c", "HTTPS://editor.example/c", "https:editor.example/c", "https:/editor.example/c",
		"https://editor.example", "https://editor.example/", "https://Editor.example/c", "https://editor/c", "https://localhost/c",
		"https://editor.example:443/c", "https://editor.example:8443/c", "https://u@editor.example/c", "https://u:p@editor.example/c",
		"https://editor.example/c?", "https://editor.example/c?a=b", "https://editor.example/c#", "https://editor.example/c#f",
		"https://editor.example/./c", "https://editor.example/a/../c", "https://editor.example/a/%2E%2E/c", "https://editor.example/a/.%2E/c", "https://editor.example/a/%2e%2e/c",
		"https://editor.example/..", "https://editor.example/.", "https://editor.example./c", "https://.editor.example/c", "https://editor..example/c",
		"https://editor.example\\c", "https://editor.example/\\c", "https://editor.example/a b", "https://editor.example/a%0Ab", "https://editor.example/%", "https://editor.example/%C3",
		"https://127.0.0.1/c", "https://127.1/c", "https://2130706433/c", "https://0x7f.1/c", "https://0x7f000001/c", "https://a.0x7f/c", "https://[::1]/c", "https://[2606:4700::1]/c",
		"https://editor.example@127.0.0.1/c", "https://bücher.example/c", "https://editor.example/é", " " + id, id + "\n", "https://editor_.example/c",
		"https://editor.example/" + strings.Repeat("a", maxID),
	} {
		if host := HostOf(bad); host != "" {
			t.Errorf("%q is taken, at %s", bad, host)
		}
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	const rest = `"redirect_uris":["http://localhost/callback"]`
	of := func(more string) string { return `{"client_id":"` + id + `",` + rest + more + `}` }
	for body, want := range map[string]Document{
		of(``): {Name: "editor.example", AuthMethod: AuthNone},
		of(`,"client_name":" Editor ","token_endpoint_auth_method":"none","logo_uri":"x"`):                                            {Name: "Editor", AuthMethod: AuthNone},
		of(`,"client_name":null,"jwks":null`):                                                                                         {Name: "editor.example", AuthMethod: AuthNone},
		of(`,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}`):                                                      {Name: "editor.example", AuthMethod: AuthPrivateKeyJWT},
		of(`,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://editor.example/keys"`):                                {Name: "editor.example", AuthMethod: AuthPrivateKeyJWT, JWKSURI: "https://editor.example/keys"},
		of(`,"token_endpoint_auth_method":"client_secret_basic","token_endpoint_auth_methods_supported":["none"]`):                    {Name: "editor.example", AuthMethod: AuthNone},
		of(`,"token_endpoint_auth_methods_supported":["none","private_key_jwt"],"jwks_uri":"https://editor.example/keys"`):            {Name: "editor.example", AuthMethod: AuthPrivateKeyJWT, JWKSURI: "https://editor.example/keys"},
		of(`,"token_endpoint_auth_methods_supported":["none","client_secret_post"],"token_endpoint_auth_method":"client_secret_jwt"`): {Name: "editor.example", AuthMethod: AuthNone},
	} {
		d := programs.Got(Read(id, []byte(body)))(t)
		if d.ID != id || d.Name != want.Name || d.AuthMethod != want.AuthMethod || d.JWKSURI != want.JWKSURI || len(d.RedirectURIs) != 1 {
			t.Errorf("%s: %+v", body, d)
		}
	}
	for body, why := range map[string]string{
		``:                                    "one JSON object",
		`[]`:                                  "one JSON object",
		`null`:                                "one JSON object",
		of(``) + `{}`:                         "one JSON object",
		of(`,"client_id":"` + id + `"`):       "one JSON object",
		of(`,"client_name":"` + "\xff" + `"`): "one JSON object",
		`{` + rest + `}`:                      "letter by letter",
		`{"Client_ID":"` + id + `",` + rest + `}`:                                                                "letter by letter",
		`{"client_id":"` + id + `/",` + rest + `}`:                                                               "letter by letter",
		`{"client_id":"https://EDITOR.example/oauth/client.json",` + rest + `}`:                                  "letter by letter",
		`{"client_id":"` + id + `"}`:                                                                             "no redirect_uris",
		`{"client_id":"` + id + `","redirect_uris":"x"}`:                                                         "another type",
		`{"client_id":["` + id + `"],` + rest + `}`:                                                              "another type",
		`{"client_id":"` + id + `","redirect_uris":["x"` + strings.Repeat(`,"x"`, maxRedirects) + `]}`:           "more than 50",
		of(`,"client_secret":"s"`):                                                                               "client_secret",
		of(`,"client_name":"` + strings.Repeat("x", maxName+1) + `"`):                                            "longer than 80",
		of(`,"client_name":"Claude\u202e"`):                                                                      "cannot be seen",
		of(`,"client_name":7`):                                                                                   "another type",
		of(`,"token_endpoint_auth_method":"client_secret_post"`):                                                 "neither none",
		of(`,"token_endpoint_auth_method":"private_key_jwt"`):                                                    "either jwks or jwks_uri",
		of(`,"token_endpoint_auth_method":"private_key_jwt","jwks":{},"jwks_uri":"https://editor.example/keys"`): "either jwks or jwks_uri",
		of(`,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://elsewhere.example/keys"`):        "same host",
		of(`,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"http://editor.example/keys"`):            "same host",
	} {
		if d, err := Read(id, []byte(body)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %+v, %v, want %q", body, d, err, why)
		}
	}
}

// Whatever is at the address: what is taken says of itself that it is of that address,
// and names a way to authenticate that shares no secret.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"client_id":"` + id + `","redirect_uris":["http://localhost/callback"],"client_name":"Editor"}`))
	f.Add([]byte(`{"client_id":"` + id + `","redirect_uris":["x"],"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}}`))
	f.Add([]byte(`{"client_id":1,"client_id":[{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Read(id, body)
		if err != nil {
			return
		}
		if d.ID != id || d.Name == "" || len(d.RedirectURIs) == 0 || d.AuthMethod != AuthNone && (d.AuthMethod != AuthPrivateKeyJWT || (d.JWKS == nil) == (d.JWKSURI == "")) {
			t.Errorf("%q was taken as %+v", body, d)
		}
	})
}
