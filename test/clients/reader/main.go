// Command reader opens an app on somebody's computer in their name:
//
//	AUTH_URL=https://control.example CLIENT_ID=… CLIENT_SECRET=… \
//	REDIRECT_URI=http://127.0.0.1:8914/callback reader notes
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"

	"golang.org/x/oauth2"
)

// tokenFile holds the refresh token between two runs. It is a secret.
const tokenFile = "reader.token"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reader APP")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, app string) error {
	auth := os.Getenv("AUTH_URL")
	config := &oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		RedirectURL:  os.Getenv("REDIRECT_URI"),
		Scopes:       []string{"connect"},
		Endpoint:     oauth2.Endpoint{AuthURL: auth + "/oauth/authorize", TokenURL: auth + "/oauth/token"},
	}
	token, err := refresh(ctx, config)
	if over(err) {
		token, err = askPerson(ctx, config)
	}
	if err != nil {
		return err
	}
	// The refresh token is good once: keep the new one before anything else.
	if err := os.WriteFile(tokenFile, []byte(token.RefreshToken), 0o600); err != nil {
		return err
	}
	host, _ := token.Extra("host").(string)
	resp, err := oauth2.NewClient(ctx, oauth2.StaticTokenSource(token)).Get("https://" + app + "." + host)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

// refresh trades the kept refresh token for a new pair.
func refresh(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
	kept, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	return config.TokenSource(ctx, &oauth2.Token{RefreshToken: string(kept)}).Token()
}

// over says whether the person has to be asked (again): nothing was kept, it was
// used or is too old, or they revoked it. Any other failure is worth another try.
func over(err error) bool {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	return errors.Is(err, fs.ErrNotExist) || ok && (refused.ErrorCode == "invalid_grant" || refused.ErrorCode == "access_denied")
}

// askPerson has the person allow this program in their browser.
func askPerson(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	redirect, err := url.Parse(config.RedirectURL)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", redirect.Host) // before the browser can come
	if err != nil {
		return nil, err
	}
	answers := make(chan url.Values, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != redirect.Path || r.URL.Query().Get("state") != state {
			http.NotFound(w, r) // not the answer to this question
			return
		}
		fmt.Fprintln(w, "You can close this window.")
		select {
		case answers <- r.URL.Query():
		default:
		}
	})}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer server.Shutdown(ctx)

	fmt.Println("Open", config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	select {
	case err := <-failed:
		return nil, err
	case answer := <-answers:
		if code := answer.Get("error"); code != "" {
			return nil, errors.New(code) // access_denied: they said no
		}
		return config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	}
}
