// Package clients holds Porchlight against the OAuth client libraries that
// developers of remote clients use: golang.org/x/oauth2; oauth4webapi,
// openid-client and simple-oauth2 of npm; requests-oauthlib and Authlib of
// Debian. The real agent runs in local mode with a published app. Each library,
// with HTTP Basic and with credentials in the form, goes the whole way of a
// remote client: consent, code and PKCE, the app through the relay, refresh,
// replay, a wrong secret, and revocation. jose and PyJWT verify its access
// token. The documentation's examples run against the same agent. The official MCP
// SDKs go their way on a connected computer too, with Chromium for the consent. People
// come by two OpenID providers that nobody here wrote.
//
// A library runs in a process of its own, its driver, which takes orders as
// lines of JSON; see drivers_test.go. Only the drivers touch the library.
//
// run.sh installs the npm packages and runs the tests; they carry the build tag
// clients, because they need those and Debian's Python packages.
package clients
