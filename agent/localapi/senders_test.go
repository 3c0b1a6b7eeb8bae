package localapi

import (
	"testing"
)

// Senders over HTTP: the shapes are the rig's to check, and no answer has a secret.
func TestSenderAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.approved(t, "hooks", "Hooks")
	do := func(method, path, body string, status int, says string) {
		t.Helper()
		r.wants(t, r.byOwner(method, path, body), status, says)
	}
	const path, secret = "/owner/senders", `"secret":"of eight or more"`
	do("GET", path, "", 200, "[]")
	do("POST", path, `{"app":"hooks","name":"GitHub","path":"/push","kind":"github",`+secret+`}`, 200, `{"id":"sender-`)
	do("POST", path, `{"app":"Hooks","name":"Shop","path":"/push","kind":"github",`+secret+`}`, 409, "posts there already")
	do("POST", path, `{"app":"hooks","name":"Shop","path":"/paid","kind":"md5",`+secret+`}`, 400, "standard-webhooks, github")
	do("POST", path, `{"app":"diary","name":"Shop","path":"/paid","kind":"github",`+secret+`}`, 400, "no app called")
	do("POST", path, `{"app":"hooks","name":"Shop","path":"/paid","kind":"github"}`, 400, "secret")
	do("POST", path, `{"app":"hooks","name":"Shop","path":"/paid","kind":"github","secret":"short"}`, 400, "8 to 512 bytes")
	all, err := r.owner().Senders(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "GitHub" || all[0].AppName != "hooks" || all[0].Path != "/push" || all[0].Secrets != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	one := path + "/" + all[0].ID
	do("POST", one+"/secret", `{"secret":"another one of it"}`, 200, `"secrets":2`)
	do("POST", one+"/secret", `{"alone":true}`, 200, `"secrets":1`)
	do("POST", one+"/secret", `{}`, 400, "secret")
	do("POST", path+"/nobody/secret", `{"alone":true}`, 404, "no such sender")
	do("POST", one+"/revoke", "", 200, `{"ok":true,"closed":0,`)
	do("POST", one+"/revoke", "", 404, "no such sender")
	do("GET", path, "", 200, "[]")
}
