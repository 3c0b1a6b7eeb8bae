package localapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// S1: registering waits for the owner's yes to the user, which is asked for once,
// kept, and can be taken back.
func TestS1RegisteringWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(r *rig) { r.control = &plane{row: ben} })
	program, owner, ctx := r.stranger(t), r.owner(), t.Context()
	register := asked{Method: "POST", Path: "/engine/register", Body: fmt.Sprintf(`{"appId":"org.example.theirs","pid":%d}`, os.Getpid())}
	users := func() []agentapi.LocalUser {
		t.Helper()
		return programs.Got(owner.Users(ctx))(t)
	}
	for range 5 {
		if got := program.send(register); got.Status != 403 || !strings.Contains(got.Body, "asked") {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	state := programs.Got(owner.State(ctx))(t)
	if n := state.Notices; len(n) != 1 || n[0].Kind != agentapi.NoticeUser || n[0].User != "65534" || !strings.Contains(n[0].Text, users()[0].Name) {
		t.Errorf("five attempts made the notices %+v", n)
	}
	if u := users(); len(u) != 1 || u[0].ID != "65534" || u[0].Standing != agentapi.UserAsks || len(state.Users) != 1 {
		t.Errorf("users %+v", u)
	}

	// A capability that leaked helps nobody.
	leaked := r.open()
	registration := programs.Got(leaked.Register(ctx, agentapi.RegisterRequest{AppID: "org.example.mine", PID: os.Getpid()}))(t)
	people := asked{Method: "GET", Path: "/people", Capability: registration.Capability}
	if got := program.send(people); got.Status != 403 {
		t.Errorf("another user read who may come in with a leaked capability: %d %s", got.Status, got.Body)
	}

	if u, err := owner.AllowUser(ctx, "65534"); err != nil || u.Standing != agentapi.UserAllowed {
		t.Fatalf("%+v, %v", u, err)
	}
	if got := program.send(register); got.Status != 200 || !strings.Contains(got.Body, registration.Capability) {
		t.Errorf("after the owner's yes: %d %s", got.Status, got.Body)
	}
	if got := program.send(people); got.Status != 200 {
		t.Errorf("after the owner's yes: %d %s", got.Status, got.Body)
	}
	if r.reg.Count() != 2 {
		t.Errorf("%d registrations", r.reg.Count())
	}
	if u, err := owner.DenyUser(ctx, "65534"); err != nil || u.Standing != agentapi.UserDenied {
		t.Fatalf("%+v, %v", u, err)
	}
	if r.reg.Count() != 1 {
		t.Errorf("%d registrations after the yes was taken back", r.reg.Count())
	}
	for _, q := range []asked{register, people} {
		if got := program.send(q); got.Status != 403 {
			t.Errorf("%s after the yes was taken back: %d %s", q.Path, got.Status, got.Body)
		}
	}
	if state, err := owner.State(ctx); err != nil || len(state.Notices) != 1 {
		t.Errorf("who was denied was asked about again: %+v, %v", state.Notices, err)
	}

	// The answer outlives the run.
	programs.Got(owner.AllowUser(ctx, "65534"))(t)
	r.end()
	r.serve(t)
	if got := r.stranger(t).send(register); got.Status != 200 {
		t.Errorf("after a restart: %d %s", got.Status, got.Body)
	}
	programs.Must(t, r.owner().ForgetUser(ctx, "65534"))
	if got := r.stranger(t).send(register); got.Status != 403 || r.reg.Count() != 0 {
		t.Errorf("after forgetting: %d %s, %d registrations", got.Status, got.Body, r.reg.Count())
	}
}

// S1: a user about whom the owner is not asked, because so many wait already, is not told
// that they are.
func TestS1TooManyUsersWait(t *testing.T) {
	t.Parallel()
	r := start(t)
	for i := range 20 {
		programs.Must(t, r.users.Ask(fmt.Sprint(70000+i), fmt.Sprint("user", i)))
	}
	register := asked{Method: "POST", Path: "/engine/register", Body: fmt.Sprintf(`{"appId":"org.example.theirs","pid":%d}`, os.Getpid())}
	program := r.stranger(t)
	if got := program.send(register); got.Status != 403 || strings.Contains(got.Body, "has been asked") || !strings.Contains(got.Body, "later") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	programs.Got(r.owner().DenyUser(t.Context(), "70000"))(t)
	if got := program.send(register); got.Status != 403 || !strings.Contains(got.Body, "has been asked") {
		t.Errorf("with room again: %d %s", got.Status, got.Body)
	}
}

// S1: as many users as can be kept were answered, and none of them waits: another one is
// not told to try again later, which would never help.
func TestS1TooManyUsersKept(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.end()
	file, err := bolt.Open(filepath.Join(r.dir, store.FileName), 0o600, nil)
	programs.Must(t, err)
	err = file.Update(func(tx *bolt.Tx) error {
		for i := range 1000 {
			id := fmt.Sprint(70000 + i)
			row, err := json.Marshal(agentapi.LocalUser{ID: id, Name: "user" + id, Standing: agentapi.UserDenied, At: time.Now().UTC()})
			if err != nil {
				return err
			}
			if err := tx.Bucket([]byte("users")).Put([]byte(id), row); err != nil {
				return err
			}
		}
		return nil
	})
	programs.Must(t, err, file.Close())
	r.serve(t)
	register := asked{Method: "POST", Path: "/engine/register", Body: fmt.Sprintf(`{"appId":"org.example.theirs","pid":%d}`, os.Getpid())}
	program := r.stranger(t)
	if got := program.send(register); got.Status != 403 || strings.Contains(got.Body, "later") || !strings.Contains(got.Body, "forget one first") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	programs.Must(t, r.owner().ForgetUser(t.Context(), "70000"))
	if got := program.send(register); got.Status != 403 || !strings.Contains(got.Body, "has been asked") {
		t.Errorf("with room again: %d %s", got.Status, got.Body)
	}
}
