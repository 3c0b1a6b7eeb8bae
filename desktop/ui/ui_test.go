package ui

import (
	"context"
	"testing"

	"porchlight/agent/agentapi"
)

func TestOnlyOurOwnAddressesAreOpened(t *testing.T) {
	t.Parallel()
	state := agentapi.OwnerState{
		Account:    agentapi.Account{Host: "maya.localhost:8443", AuthURL: "https://control.localhost:8443"},
		Connecting: &agentapi.Connecting{State: agentapi.ConnectWaiting, AuthURL: "https://control.porch.example"},
	}
	var opened []string
	s := NewShell(Around{
		Browse: func(_ context.Context, u string) error { opened = append(opened, u); return nil },
		State:  func() agentapi.OwnerState { return state },
	})
	for address, want := range map[string]bool{
		"https://maya.localhost:8443/":              true,
		"https://notes.maya.localhost:8443/x?y=z":   true,
		"https://control.localhost:8443/account":    true,
		"https://control.porch.example/device":      true,
		"https://porch.example/device":              false,
		"https://NOTES.Maya.localhost:8443/":        true,
		"http://notes.maya.localhost:8443/":         false,
		"https://notes.maya.localhost/":             false, // another port is another origin
		"https://notesmaya.localhost:8443/":         false,
		"https://evil.example/maya.localhost:8443":  false,
		"https://maya.localhost:8443@evil.example/": false,
		"https://evil.example@maya.localhost:8443/": false,
		"https://maya.localhost:8443.evil.example/": false,
		"javascript:alert(1)":                       false,
		"file:///etc/passwd":                        false,
		"":                                          false,
		"https://":                                  false,
		"//notes.maya.localhost:8443/":              false,
	} {
		opened = nil
		err := s.OpenURL(address)
		if (err == nil) != want || (len(opened) == 1) != want {
			t.Errorf("OpenURL(%q) = %v, opened %v; want open: %v", address, err, opened, want)
		}
	}
	state.Connecting.State = agentapi.ConnectDone
	if s.OpenURL("https://control.porch.example/device") == nil {
		t.Error("a control plane that is not ours any more was opened")
	}
	state = agentapi.OwnerState{}
	if s.OpenURL("https://:8443/") == nil || s.OpenURL("https://x.") == nil {
		t.Error("an address was opened before there was an account")
	}
}
