package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/agentapi"
	agenthost "porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/control"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/web"
)

// playControl is a control plane without TLS, in which OAuth clients have grants.
// Arguments: the URL of a store, how many grants of others theirs are scattered among,
// and a profile to write or "".
func playControl(ctx context.Context, ln net.Listener, args []string) error {
	if len(args) != 3 {
		return errors.New("want a store, how many other grants, and a profile")
	}
	others, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	store, err := kv.Open(ctx, args[0], kv.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	quiet := slog.New(slog.DiscardHandler)
	svc, err := control.New(control.Config{
		Store: store, Naming: control.Naming{Domain: "localhost", AuthHost: "control.localhost", PublicPort: 8443},
		Mail: mail.NewOutbox(store, nil), Log: quiet,
	})
	if err != nil {
		return err
	}
	if err := fillGrants(ctx, store, others); err != nil {
		return err
	}
	is, err := grantTokens(ctx, svc)
	if err != nil {
		return err
	}
	stop, err := startProfile(args[2])
	if err != nil {
		return err
	}
	defer stop()
	is.Addr = ln.Addr().String()
	if err := announce(is); err != nil {
		return err
	}
	srv := &http.Server{Handler: web.New(svc, web.Config{Log: quiet}), ReadHeaderTimeout: time.Minute}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return svc.Run(ctx) })
	g.Go(func() error {
		defer context.AfterFunc(ctx, func() { srv.Close() })()
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return g.Wait()
}

func fillGrants(ctx context.Context, store kv.Store, n int) error {
	row := []byte(`{"id":"` + strings.Repeat("x", 500) + `"}`)
	for done := 0; done < n; done += 1000 {
		err := store.Update(ctx, func(tx kv.Tx) error {
			for range min(n-done, 1000) {
				if err := tx.Put("grant/"+strings.ToLower(rand.Text()), row, time.Hour); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// grantTokens has as many people as there are clients allow one program.
func grantTokens(ctx context.Context, svc *control.Service) (is ready, err error) {
	const redirect, verifier = "https://pocketnotes.example/cb", "a-verifier-of-more-than-forty-three-characters-for-pkce"
	client, secret, err := svc.Clients.Add(ctx, "Pocket Notes", []string{redirect})
	if err != nil {
		return is, err
	}
	is.ClientID, is.Secret = client.ID, secret
	sum := sha256.Sum256([]byte(verifier))
	asked := control.Authorization{ClientID: client.ID, RedirectURI: redirect, Challenge: base64.RawURLEncoding.EncodeToString(sum[:])}
	for i := range mostClients {
		short := fmt.Sprint("home-", i)
		home, err := svc.Computers.Ensure(ctx, short+"@example.com", short)
		if err != nil {
			return is, err
		}
		code, err := svc.Grants.Authorize(ctx, asked, control.Account{ID: home.AccountID}, short)
		if err != nil {
			return is, err
		}
		tokens, err := svc.Grants.Exchange(ctx, control.Credentials{ID: client.ID, Secret: secret}, control.Exchange{Code: code, RedirectURI: redirect, Verifier: verifier})
		if err != nil {
			return is, err
		}
		is.Tokens = append(is.Tokens, tokens.Refresh)
	}
	return is, nil
}

// playComputer is Porchlight on a computer of its own, with one app that is on.
// Arguments: a data directory, the app's port, and a profile to write or "".
func playComputer(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("want a data directory, a port and a profile")
	}
	appPort, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	secret := rand.Text()
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(args[0], "config")) // nothing of this user's is touched
	os.Setenv("XDG_RUNTIME_DIR", "")
	h, err := agenthost.New(ctx, agenthost.Config{
		DataDir: args[0], API: "127.0.0.1:0", Local: true, HTTPS: "127.0.0.1:0", Mode: agentapi.ModeHeadless,
		OwnerSecretHash: ownersecret.Hash(secret), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.Run(ctx) })
	g.Go(func() error {
		select {
		case <-h.Ready():
		case <-ctx.Done():
			return nil
		}
		is, err := agentapi.ReadRunning(args[0])
		if err != nil {
			return err
		}
		owner := agentapi.NewOwner(is.OwnerSocket, secret)
		if _, err := owner.Publish(ctx, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: appPort}); err != nil {
			return err
		}
		if _, err := owner.Approve(ctx, "notes"); err != nil {
			return err
		}
		stop, err := startProfile(args[2])
		if err != nil {
			return err
		}
		defer stop()
		if err := announce(ready{Addr: h.API()}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	return g.Wait()
}
