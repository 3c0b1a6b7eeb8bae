package senders

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
)

// vectors are signatures that others made: standardwebhooks 1.1.1, svix 1.99.1 and stripe
// 23.1.0 from npm, by their own sign and generateTestHeaderString, and those of GitHub's
// documentation ("Validating webhook deliveries") and of Slack's ("Verifying requests from
// Slack").
var vectors = map[string]struct {
	kind, secret, body string
	at                 int64
	head               http.Header
}{
	"standardwebhooks": {
		agentapi.SenderStandard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`, 1614265330,
		http.Header{"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
	},
	"svix": {
		agentapi.SenderStandard, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`, 1614265330,
		http.Header{"Svix-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Svix-Timestamp": {"1614265330"}, "Svix-Signature": {"v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,xxxx v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
	},
	"github": {
		agentapi.SenderGitHub, "It's a Secret to Everybody", "Hello, World!", 0,
		http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
	},
	"slack": {
		agentapi.SenderSlack, "8f742231b10e8888abcd99yyyzzz85a5",
		"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
		1531420618,
		http.Header{"X-Slack-Request-Timestamp": {"1531420618"}, "X-Slack-Signature": {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}},
	},
	"stripe": {
		agentapi.SenderStripe, "whsec_test_secret", "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}", 1492774577,
		http.Header{"Stripe-Signature": {"t=1492774577,v1=c2f890decbc5ede7c5060bb9a6d31e0626a4342bacb9aeae2adb1bcea72f9812,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"}},
	},
	"hmac-sha256, in base64": {
		agentapi.SenderHMAC, "It's a Secret to Everybody", "Hello, World!", 0,
		http.Header{"X-Signature": {"dXEH6g6yUJ/CESIczphLijdXC211hsIsRvQ3nIsEPhc="}},
	},
	"hmac-sha256, in hexadecimal": {
		agentapi.SenderHMAC, "It's a Secret to Everybody", "Hello, World!", 0,
		http.Header{"X-Signature": {"757107EA0EB2509FC211221CCE984B8A37570B6D7586C22C46F4379C8B043E17"}},
	},
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for name, v := range vectors {
		header := ""
		if v.kind == agentapi.SenderHMAC {
			header = "X-Signature"
		}
		key, err := checkSecret(v.kind, v.secret)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		signed, present, err := readSigned(v.kind, header, v.head)
		if !present || err != nil || v.at != 0 && signed.at.Unix() != v.at {
			t.Errorf("%s: %+v, %v, %v", name, signed, present, err)
		}
		other := []byte(strings.Repeat("k", 32))
		if !signed.by([][]byte{key}, []byte(v.body)) || !signed.by([][]byte{other, key}, []byte(v.body)) {
			t.Errorf("%s is refused", name)
		}
		for i := range v.body {
			flipped := []byte(v.body)
			flipped[i] ^= 1 << (i % 8)
			if signed.by([][]byte{key}, flipped) {
				t.Errorf("%s: bit %d of byte %d", name, i%8, i)
			}
		}
		if signed.by([][]byte{other}, []byte(v.body)) || signed.by(nil, []byte(v.body)) {
			t.Errorf("%s: by another secret", name)
		}
		at := time.Unix(v.at, 0)
		for off, want := range map[time.Duration]bool{0: true, Skew: true, -Skew: true, Skew + time.Second: v.at == 0, -Skew - time.Second: v.at == 0} {
			if signed.timely(at.Add(off)) != want {
				t.Errorf("%s, %v later: timely %v", name, off, !want)
			}
		}
	}
}

// What is read of a head is never taken in two ways, and never makes it fall.
func FuzzReadSigned(f *testing.F) {
	for _, v := range vectors {
		for name, values := range v.head {
			f.Add(name, values[0], v.body)
		}
	}
	f.Add("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32)), "x")
	kinds := append(agentapi.SenderKinds(), "of later")
	f.Fuzz(func(t *testing.T, name, value, body string) {
		h := http.Header{
			"Webhook-Id": {"a"}, "Webhook-Timestamp": {"1614265330"}, "X-Slack-Request-Timestamp": {"1614265330"},
			http.CanonicalHeaderKey(name): {value},
		}
		for _, kind := range kinds {
			s, present, err := readSigned(kind, "X-Signature", h)
			if !present && (err != nil || len(s.signatures) > 0) {
				t.Fatalf("%s: not there, and %+v, %v", kind, s, err)
			}
			if err == nil && present && s.by([][]byte{[]byte("a key nobody knows of")}, []byte(body)) {
				t.Fatalf("%s: %q is right", kind, value)
			}
			if len(s.signatures) > maxSignatures {
				t.Fatalf("%d signatures", len(s.signatures))
			}
		}
	})
}
