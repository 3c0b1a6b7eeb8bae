package host

import (
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// TestUpdateNoticeOfTheServer: the address that the server's operator names is asked while
// the computer is connected there and its owner says nothing else; a server that names
// none, as one from before there was such a thing, changes nothing.
func TestUpdateNoticeOfTheServer(t *testing.T) {
	t.Parallel()
	notice := controlapi.UpdateNotice{Address: "https://127.0.0.1:1/update.json", Key: strings.Repeat("A", 43) + "="}
	for what, theirs := range map[string]*controlapi.UpdateNotice{"named": &notice, "of an older server": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			control := newControl(t)
			control.notice = theirs
			h := start(t, config(t.TempDir()))
			owner := agentapi.NewOwner(h.OwnerSocket(), secret)
			update := func() *agentapi.Update {
				t.Helper()
				s := programs.Got(owner.State(t.Context()))(t)
				return s.Update
			}
			if got := update(); got != nil {
				t.Errorf("alone it tells %+v", got)
			}
			programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
			control.confirm()
			programs.Eventually(t, "it is connected", func() bool {
				a, err := owner.Account(t.Context())
				return err == nil && a.Connected && a.AuthURL == control.url
			})
			if theirs == nil {
				if got := update(); got != nil {
					t.Errorf("it tells %+v", got)
				}
				return
			}
			programs.Eventually(t, "the address was asked", func() bool {
				got := update()
				return got != nil && got.By == agentapi.ByOperator && got.Address == notice.Address && got.AskedAt != nil && got.Problem != ""
			})
			settings, err := owner.Settings(t.Context())
			if err != nil || settings.UpdateAddress != "" {
				t.Fatalf("the owner's settings are %+v, %v", settings, err)
			}
			programs.Got(owner.ChangeSettings(t.Context(), map[string]any{"updateAddress": agentapi.NoAddress}))(t)
			if got := update(); got != nil {
				t.Errorf("the owner wants none, and it tells %+v", got)
			}
			programs.Got(owner.ChangeSettings(t.Context(), map[string]any{"updateAddress": nil}))(t)
			programs.Must(t, owner.Disconnect(t.Context()))
			programs.Eventually(t, "it is on its own", func() bool { return update() == nil })
		})
	}
}
