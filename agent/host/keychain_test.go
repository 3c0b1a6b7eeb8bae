package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// inKeychain has dir be that of a computer whose device credential is in the keychain.
func inKeychain(t *testing.T, dir string) {
	t.Helper()
	connectedBy(t, dir, storeKeychain)
}

// connectedBy has dir be that of a connected computer, with its device credential in a
// store of that kind.
func connectedBy(t *testing.T, dir, store string) {
	t.Helper()
	f, err := openConnection(filepath.Join(dir, connectionName))
	programs.Must(t, err)
	err = f.update(func(k *connections) {
		k.Current = &connection{ID: newConnectionID(), AuthURL: "https://control.example.net", ComputerID: "c1", Name: "cellar", Host: "cellar.example.net", Store: store}
	})
	programs.Must(t, err)
}

// TestLockedKeychainKeepsTheConnection: with the keychain locked a connected
// computer stays who it is, says what to do, and asks for nothing.
func TestLockedKeychainKeepsTheConnection(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	inKeychain(t, cfg.DataDir)
	cfg.Keychain, cfg.OwnerSecretHash = true, nil
	h := start(t, cfg)
	info, err := agentapi.New(h.API()).EngineInfo(t.Context())
	if err != nil || info.Connected || !h.Connected() {
		t.Errorf("%+v, %v", info, err)
	}
	if h.now().again != nil {
		t.Error("the keychain is asked again behind the owner's back")
	}
	// The owner chose a file instead: the owner tier opens without another start.
	secret := ownersecret.New()
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	if _, err := owner.State(t.Context()); agentapi.CodeOf(err) != agentapi.CodeForbidden {
		t.Errorf("without a secret: %v", err)
	}
	h.SetOwnerSecret(ownersecret.Hash(secret), false)
	if state, err := owner.State(t.Context()); err != nil || state.Locked {
		t.Errorf("with one: %+v, %v", state, err)
	}
	// The device credential is in the keychain all the same, and who asks for people is
	// told that, not that the computer is connected to nothing.
	if _, err := owner.People(t.Context()); agentapi.CodeOf(err) != agentapi.CodeUnavailable || !strings.Contains(err.Error(), "keychain is locked") {
		t.Errorf("people, without the device credential: %v", err)
	}
}

// TestCredentialGone: the owner reads in their language that a connected computer lost
// its device credential, and what connects it again.
func TestCredentialGone(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	connectedBy(t, cfg.DataDir, storeFile)
	h := start(t, cfg)
	state := programs.Got(agentapi.NewOwner(h.OwnerSocket(), secret).State(t.Context()))(t)
	for language, part := range map[words.Language]string{words.English: "device credential is gone", words.German: "Ausweis dieses Computers ist weg"} {
		if said := language.TellAll(state.TroubleWords); !strings.Contains(said, part) || !strings.Contains(said, "porchlight connect https://control.example.net") {
			t.Errorf("%s is said as %q", state.Trouble, said)
		}
	}
}

// TestUnlockingDropsNobody: the device credential comes out of the keychain with the
// owner secret, so another agent comes with it. A stream of events and a registration
// made before go on.
func TestUnlockingDropsNobody(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	inKeychain(t, cfg.DataDir)
	cfg.Keychain, cfg.OwnerSecretHash, cfg.DeskSecretHash = true, nil, ownersecret.Hash("the menu bar's")
	h := start(t, cfg)
	open := agentapi.New(h.API())
	wiki := agentapi.RegisterRequest{AppID: "com.example.wiki", PID: os.Getpid()}
	registered := programs.Got(open.Register(t.Context(), wiki))(t)
	following, unfollow := context.WithCancel(t.Context())
	states, ended := make(chan agentapi.OwnerState, 100), make(chan error, 1)
	go func() {
		ended <- agentapi.NewOwner(h.OwnerSocket(), "the menu bar's").Events(following, func(s agentapi.OwnerState) { states <- s })
	}()
	if s := <-states; !s.Locked {
		t.Errorf("it begins with %+v", s)
	}
	before := h.now()
	h.SetOwnerSecret(ownersecret.Hash(secret), true)
	programs.Eventually(t, "there is another agent", func() bool { return h.now() != before })
	if _, err := agentapi.NewOwner(h.OwnerSocket(), secret).State(t.Context()); err != nil {
		t.Errorf("the owner, with the other agent: %v", err)
	}
	if _, err := open.Call(t.Context(), "POST", "/engine/heartbeat", wiki); err != nil {
		t.Errorf("the app that was there before: %v", err)
	}
	if again, err := open.Register(t.Context(), wiki); err != nil || again.Capability != registered.Capability {
		t.Errorf("its capability is another: %v", err)
	}
	for s := range states {
		if !s.Locked {
			break
		}
	}
	programs.Got(open.Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 1}))(t)
	for s := range states {
		if len(s.Apps) == 1 && len(s.Registrants) == 1 {
			break
		}
	}
	unfollow()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended by itself: %v", err)
	}
}
