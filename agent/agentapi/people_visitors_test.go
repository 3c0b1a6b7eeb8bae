package agentapi_test

import (
	"testing"

	"porchlight/agent/agentapi"
)

// A client that calls itself by somebody's address is not shown as them.
func TestNoClientIsCalledAsAPersonIs(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]agentapi.Visitor{
		"bob@example.com":                   {Email: "bob@example.com"},
		"Reader":                            {Email: "eve@example.com", GrantID: "g", ClientName: "Reader"},
		"bob@example.com (eve@example.com)": {Email: "eve@example.com", GrantID: "g", ClientName: "bob@example.com"},
	} {
		if got := v.Called(); got != want {
			t.Errorf("%+v is called %s", v, got)
		}
	}
}
