package oauth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const goodQuery = "client_id=c&redirect_uri=https%3A%2F%2Fpocketnotes.example%2Fcb&response_type=code&state=s" +
	"&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&scope=connect"

func code(err error) string {
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok {
		return refusal.Code
	}
	return ""
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	basic := func(id, secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
	}
	none := control.Credentials{}
	asType := "&client_assertion_type=" + url.QueryEscape(control.AssertionType)
	for what, tt := range map[string]struct {
		header []string
		form   string
		want   control.Credentials
	}{
		"in the form":                 {nil, "client_id=c&client_secret=s", control.Credentials{ID: "c", Secret: "s"}},
		"a secret alone":              {nil, "client_secret=s", control.Credentials{Secret: "s"}},
		"Basic":                       {[]string{basic("c", "s")}, "", control.Credentials{ID: "c", Secret: "s"}},
		"Basic, in another case":      {[]string{"bASIC" + basic("c", "s")[5:]}, "", control.Credentials{ID: "c", Secret: "s"}},
		"Basic, form-encoded":         {[]string{basic("c%2Bd", "s+%3A%25")}, "", control.Credentials{ID: "c+d", Secret: "s :%"}},
		"Basic, a colon in it":        {[]string{basic("c", "s:t")}, "", control.Credentials{ID: "c", Secret: "s:t"}},
		"Basic and the same id":       {[]string{basic("c", "s")}, "client_id=c", control.Credentials{ID: "c", Secret: "s"}},
		"nothing":                     {nil, "", none},
		"an id alone":                 {nil, "client_id=c", control.Credentials{ID: "c"}}, // a public client's
		"an empty secret":             {nil, "client_id=c&client_secret=", control.Credentials{ID: "c"}},
		"an assertion":                {nil, "client_assertion=a.b.c" + asType, control.Credentials{Assertion: "a.b.c"}},
		"an assertion and an id":      {nil, "client_id=c&client_assertion=a.b.c" + asType, control.Credentials{ID: "c", Assertion: "a.b.c"}},
		"an assertion and a secret":   {nil, "client_id=c&client_secret=s&client_assertion=a.b.c" + asType, none},
		"an assertion and Basic":      {[]string{basic("c", "s")}, "client_assertion=a.b.c" + asType, none},
		"an assertion of no type":     {nil, "client_id=c&client_assertion=a.b.c", none},
		"an assertion, an empty type": {nil, "client_id=c&client_assertion=a.b.c&client_assertion_type=", none},
		"an assertion of SAML":        {nil, "client_id=c&client_assertion=a.b.c" + strings.Replace(asType, "jwt", "saml2", 1), none},
		"a type in capitals":          {nil, "client_id=c&client_assertion=a.b.c" + strings.Replace(asType, "jwt", "JWT", 1), none},
		"a type alone":                {nil, "client_id=c" + asType, none},
		"a type and a secret":         {nil, "client_id=c&client_secret=s" + asType, none},
		"a type, an empty assertion":  {nil, "client_id=c&client_assertion=" + asType, none},
		"Basic and another id":        {[]string{basic("c", "s")}, "client_id=d", none},
		"Basic and the same in form":  {[]string{basic("c", "s")}, "client_id=c&client_secret=s", none},
		"two headers":                 {[]string{basic("c", "s"), basic("c", "s")}, "", none},
		"an empty header":             {[]string{""}, "client_id=c&client_secret=s", none},
		"Bearer":                      {[]string{"Bearer x"}, "client_id=c&client_secret=s", none},
		"Basic, no colon":             {[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte("cs"))}, "", none},
		"Basic, no id":                {[]string{basic("", "s")}, "", none},
		"Basic, no secret":            {[]string{basic("c", "")}, "", none},
		"Basic, not base64":           {[]string{"Basic ***"}, "", none},
		"Basic, broken percent signs": {[]string{basic("c%zz", "s")}, "", none},
	} {
		form := programs.Got(url.ParseQuery(tt.form))(t)
		got, err := credentials(tt.header, form)
		if got != tt.want || (err != nil) != (tt.want == none) || err != nil && code(err) != controlapi.CodeInvalidClient {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

// Whoever writes a client reads in the answer which part of the request was wrong.
func TestSentenceNamesThePart(t *testing.T) {
	t.Parallel()
	const whole = "grant_type=authorization_code&code=c&redirect_uri=r&code_verifier=v&client_id=i&client_secret=s"
	basic := []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("i:s"))}
	for _, tt := range []struct {
		header []string
		form   string
		names  string
	}{
		{nil, strings.Replace(whole, "code=c&", "", 1), "parameter code is missing"},
		{nil, strings.Replace(whole, "redirect_uri=r", "redirect_uri=", 1), "parameter redirect_uri is missing"},
		{nil, strings.Replace(whole, "&code_verifier=v", "", 1), "parameter code_verifier is missing"},
		{nil, whole + "&code=d", "parameter code is there twice"},
		{nil, whole + "&scope=all", "scope must have connect"},
		{nil, "grant_type=refresh_token&client_secret=s", "parameter refresh_token is missing"},
		{nil, strings.Replace(whole, "&client_id=i", "", 1), "parameter client_id is missing"},
		{nil, "grant_type=refresh_token&refresh_token=t", "id and secret are missing"},
		{basic, whole, "two ways at once"},
		{basic, "grant_type=refresh_token&refresh_token=t&client_id=j", "client_id in the form is another"},
	} {
		form := programs.Got(parseForm(tt.form))(t)
		req, err := parseToken(tt.header, form)
		if err == nil {
			err = req.incomplete
		}
		if err == nil || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%s: %v, want %q", tt.form, err, tt.names)
		}
	}
}

// A request that is taken apart is whole and unambiguous, whatever came in, and
// every refusal has a code of docs/interface.md, Errors.
func FuzzTokenForm(f *testing.F) {
	f.Add("", "grant_type=authorization_code&code=c&redirect_uri=r&code_verifier=v&client_id=i&client_secret=s")
	f.Add("Basic Yzpz", "grant_type=refresh_token&refresh_token=t")
	f.Add("Basic Yzpz", "grant_type=refresh_token&refresh_token=t&refresh_token=u&scope=connect")
	f.Add("", "grant_type=authorization_code&code=c&redirect_uri=r&code_verifier=v&client_id=i")
	f.Add("", "grant_type=refresh_token&refresh_token=t&client_id=i&scope=all")
	f.Add("Basic Yzo=", "grant_type=refresh_token&refresh_token=t&client_id=c")
	f.Add("Bearer x", "grant_type=password&%zz;a=b")
	f.Add("Bearer x", "grant_type=refresh_token&refresh_token=t&client_id=i&client_secret=s")
	f.Fuzz(func(t *testing.T, header, body string) {
		var authorization []string
		if header != "" {
			authorization = []string{header}
		}
		form, err := parseForm(body)
		if err != nil {
			if code(err) != controlapi.CodeInvalidGrant {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		req, err := parseToken(authorization, form)
		if err != nil {
			switch code(err) {
			case controlapi.CodeInvalidGrant, controlapi.CodeInvalidClient, controlapi.CodeUnsupportedGrantType:
			default:
				t.Errorf("%q %q: %v", header, body, err)
			}
			// What is left of a refused one is for the operator's log alone.
			if req.client.Secret != "" || req.exchange != (control.Exchange{}) || req.refresh != "" || req.incomplete != nil {
				t.Errorf("%q %q: %+v with %v", header, body, req, err)
			}
			return
		}
		for _, name := range tokenFields {
			if len(form[name]) > 1 {
				t.Errorf("%q has two of %s", body, name)
			}
		}
		// Nothing but a public client's id in the form goes without a secret.
		if req.client == (control.Credentials{}) || header != "" && (req.client.ID == "" || req.client.Secret == "") {
			t.Errorf("%q %q: without credentials: %+v", header, body, req)
		}
		switch {
		case req.incomplete != nil:
			if c := code(req.incomplete); c != controlapi.CodeInvalidGrant && c != codeInvalidScope {
				t.Errorf("%q: %v", body, req.incomplete)
			}
		case req.grantType == grantCode:
			if req.exchange.Code == "" || req.exchange.RedirectURI == "" || req.exchange.Verifier == "" || req.refresh != "" {
				t.Errorf("%q: %+v", body, req)
			}
		case req.grantType == grantRefresh:
			if req.refresh == "" || req.exchange != (control.Exchange{}) {
				t.Errorf("%q: %+v", body, req)
			}
		default:
			t.Errorf("%q: %+v", body, req)
		}
	})
}

// An authorization request says at most one thing, and what goes back to the
// client is one of the codes of docs/interface.md, Errors.
func FuzzAuthorizationRequest(f *testing.F) {
	f.Add(goodQuery)
	f.Add(goodQuery + "&state=t")
	f.Add(strings.Replace(goodQuery, "scope=connect", "scope=all", 1))
	f.Add(goodQuery + "&redirect_uri=https%3A%2F%2Fevil.example%2F")
	f.Add("client_id=c&redirect_uri=r&response_type=token&code_challenge_method=plain")
	f.Add(strings.Repeat("&", 5000))
	f.Add("a;b=c&%zz")
	f.Fuzz(func(t *testing.T, query string) {
		req, err := ParseRequest(query)
		if err != nil {
			if refusal, ok := errors.AsType[*controlapi.Error](err); !ok || refusal.HTTPStatus != http.StatusBadRequest || refusal.Message == "" || !cmp.Equal(req, Request{}) {
				t.Errorf("%q: %+v, %v", query, req, err)
			}
			return
		}
		q, err := url.ParseQuery(query)
		if err != nil || len(query) > maxQuery || len(q["client_id"]) != 1 || len(q["redirect_uri"]) != 1 || len(q["state"]) > 1 {
			t.Fatalf("%q was taken as %+v", query, req)
		}
		if q.Get("state") != req.State || q.Get("redirect_uri") != req.RedirectURI || q.Get("client_id") != req.ClientID {
			t.Errorf("%q was taken as %+v", query, req)
		}
		switch req.Problem {
		case "":
			if !control.ValidChallenge(req.Challenge) || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" ||
				len(q["response_type"]) != 1 || len(q["code_challenge"]) != 1 || len(q["code_challenge_method"]) != 1 {
				t.Errorf("%q was taken as %+v", query, req)
			}
		case controlapi.CodeAccessDenied, controlapi.CodeUnsupportedResponseType, codeInvalidScope:
		default:
			t.Errorf("%q goes back with %q", query, req.Problem)
		}
	})
}

// Weakness: every refused request is a line of the operator's log, and strangers
// can have as many refused as they like. Checked: a minute has a bounded number,
// the last says that there are more, and the next minute begins anew.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1<<30, 0)
	r := refusals{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }}
	for minute := 1; minute <= 2; minute++ {
		for range 10 * refusalsPerMinute {
			r.tell("a token request was refused", "anybody\nlevel=ERROR", "invalid_client", "why")
		}
		if n := strings.Count(log.String(), "\n"); n != minute*(refusalsPerMinute+1) {
			t.Errorf("%d lines in %d minutes", n, minute)
		}
		now = now.Add(time.Minute)
	}
	if !strings.HasSuffix(strings.TrimSpace(log.String()), `not logged"`) || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log ends with %q", log.String()[log.Len()-200:])
	}
}
