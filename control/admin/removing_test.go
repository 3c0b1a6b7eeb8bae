package admin

import (
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// The operator can end what an owner could end, and a whole account.
func TestRemoving(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, a *Admin, c *Client) {
		ctx := t.Context()
		add := func(email, short string) Added {
			t.Helper()
			added, err := c.AddAccount(ctx, AddAccount{Email: email, Short: short})
			if err != nil {
				t.Fatal(err)
			}
			return added
		}
		works := func(credential string) bool {
			t.Helper()
			_, err := newService(t, a.cfg.Store).Agents.Authenticate(ctx, credential)
			if err != nil && !control.IsRefusal(err, controlapi.CodeUnauthorized) {
				t.Fatal(err)
			}
			return err == nil
		}
		names := func() (out []string) {
			t.Helper()
			list, err := c.Computers(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, computer := range list {
				out = append(out, computer.Name)
			}
			return out
		}
		laptop, server, other := add("anna@example.net", "laptop"), add("anna@example.net", "server"), add("ben@example.net", "other")
		if err := c.DisconnectComputer(ctx, "laptop"); err != nil {
			t.Fatal(err)
		}
		if works(laptop.Credential) || !works(server.Credential) || len(names()) != 3 {
			t.Errorf("after disconnecting: %t %t %v", works(laptop.Credential), works(server.Credential), names())
		}
		if err := c.RemoveComputer(ctx, "server"); err != nil {
			t.Fatal(err)
		}
		if works(server.Credential) || len(names()) != 2 {
			t.Errorf("after removing: %t %v", works(server.Credential), names())
		}
		for _, name := range []string{"server", "none", "../accounts", ""} {
			if err := c.RemoveComputer(ctx, name); err == nil {
				t.Errorf("removing %q worked", name)
			}
		}
		if err := c.RemoveAccount(ctx, "Anna@Example.net"); err != nil {
			t.Fatal(err)
		}
		if got := names(); len(got) != 1 || got[0] != "other" || !works(other.Credential) {
			t.Errorf("after removing an account: %v", got)
		}
		if list, err := c.Accounts(ctx); err != nil || len(list) != 1 {
			t.Errorf("accounts: %+v %v", list, err)
		}
		for _, email := range []string{"anna@example.net", "nobody", "a/b@example.net"} {
			if err := c.RemoveAccount(ctx, email); !isRefusal(err) {
				t.Errorf("removing %s: %v", email, err)
			}
		}
	})
}
