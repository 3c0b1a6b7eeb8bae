//go:build linux

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"porchlight/agent/agentapi"
)

// sendersSecret is what the honest senders sign with, as it is and as base64.
const sendersSecret = "YXR0YWNrZWQgc2VuZGVyJ3Mgc2VjcmV0"

// hook is a named sender, and how it signs.
type hook struct {
	kind, path string
	made       agentapi.MadeSender
}

func macOf(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	io.WriteString(mac, text)
	return mac.Sum(nil)
}

// fields are what it sends with a body.
func (h hook) fields(secret, body string, at time.Time) string {
	unix := strconv.FormatInt(at.Unix(), 10)
	switch h.kind {
	case agentapi.SenderGitHub:
		return "X-Hub-Signature-256: sha256=" + hex.EncodeToString(macOf(secret, body)) + "\r\n"
	case agentapi.SenderStripe:
		return "Stripe-Signature: t=" + unix + ",v1=" + hex.EncodeToString(macOf(secret, unix+"."+body)) + "\r\n"
	case agentapi.SenderSlack:
		return "X-Slack-Request-Timestamp: " + unix + "\r\nX-Slack-Signature: v0=" + hex.EncodeToString(macOf(secret, "v0:"+unix+":"+body)) + "\r\n"
	case agentapi.SenderHMAC:
		return "X-Signature: " + hex.EncodeToString(macOf(secret, body)) + "\r\n"
	}
	raw, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		raw = []byte(secret)
	}
	return "Webhook-Id: msg_1\r\nWebhook-Timestamp: " + unix + "\r\nWebhook-Signature: v1," + base64.StdEncoding.EncodeToString(macOf(string(raw), "msg_1."+unix+"."+body)) + "\r\n"
}

// forged are the heads that somebody makes who saw a good one, for a body of theirs.
func (h hook) forged(seen, body string) map[string]string {
	now := time.Now()
	name, _, _ := strings.Cut(seen[strings.LastIndex(strings.TrimSuffix(seen, "\r\n"), "\n")+1:], ":")
	out := map[string]string{
		"none": "", "as it was seen": seen, "seen twice": seen + seen, "seen, and one more": seen + name + ": x\r\n", "one more, and seen": name + ": x\r\n" + seen,
		"of no secret": h.fields("", body, now), "of a zero": h.fields("\x00", body, now), "of the name": h.fields(h.made.ID, body, now), "of its own text": h.fields(sendersSecret[:16], body, now),
		"of an old time": h.fields(sendersSecret+"x", body, now.Add(-time.Hour)), "cut": strings.TrimRight(seen, "\r\n")[:len(seen)-8] + "\r\n", "longer": strings.TrimRight(seen, "\r\n") + "00\r\n",
		"of another version": strings.NewReplacer("v1", "v2", "v0", "v1", "sha256=", "sha1=").Replace(seen), "empty": name + ":\r\n", "zeros": name + ": " + strings.Repeat("0", 64) + "\r\n",
		"zeros, by version": name + ": sha256=" + strings.Repeat("0", 64) + "\r\n" + name + ": v1=" + strings.Repeat("0", 64) + "\r\n",
		"of 40 KiB":         name + ": " + strings.Repeat("v1,AAAA v1=00,", 3000) + "\r\n",
		"with the five":     seen + "X-Service-User: " + h.made.ID + "\r\nX-Service-Role: owner\r\nX_Service_User: " + h.made.ID + "\r\n",
		"as of a proxy":     "X-Forwarded-User: " + h.made.ID + "\r\nX-Original-URL: " + h.path + "\r\nX-HTTP-Method-Override: POST\r\n" + seen,
		"with a key":        "X-Porchlight-Key: " + h.made.ID + "\r\n" + seen, "with Basic": "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(h.made.ID+":x")) + "\r\n" + seen,
		"dotted": strings.ReplaceAll(strings.ReplaceAll(seen, "-", "."), "msg_1", "msg_1.1"), "underlined": strings.ReplaceAll(seen, "-", "_"),
	}
	for _, other := range agentapi.SenderKinds() {
		if other != h.kind {
			out["as "+other] = hook{kind: other}.fields(sendersSecret, body, now)
		}
	}
	return out
}

// attackSenders posts to the paths of named senders what none of them signed, what one did
// and was changed, sent elsewhere, is old or was delivered: none of it gets to an app.
func attackSenders(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	ask := func(b *backend, method, target, fields, body string) (answer, error) {
		got, err := on.exchange(ctx, b.host, method+" "+target+" HTTP/1.1\r\nHost: "+b.host+"\r\nConnection: close\r\n"+fields+"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		if err != nil || len(got) == 0 {
			return answer{}, err
		}
		return got[0], nil
	}
	delivered := map[string]bool{}
	for i, kind := range agentapi.SenderKinds() {
		mine, other := on.backends[i%len(on.backends)], on.backends[(i+1)%len(on.backends)]
		h := hook{kind: kind, path: "/hook-" + kind + "?from=" + kind}
		req := agentapi.SenderRequest{App: mine.name, Name: "of " + kind, Path: h.path, Kind: kind, Secret: sendersSecret}
		if kind == agentapi.SenderHMAC {
			req.Header = "X-Signature"
		}
		if h.made, err = on.owner.AddSender(ctx, req); err != nil {
			return err
		}
		body := "honest " + kind
		seen := h.fields(sendersSecret, body, time.Now())
		if got, err := ask(mine, "POST", h.path, seen, body); err != nil || got.status != 200 {
			return fmt.Errorf("what %s signed gets %d, %v", kind, got.status, err)
		}
		delivered[kind+body] = true
		if err := h.abuse(ctx, t, s.quick, seen, body, []*backend{mine, other}, ask); err != nil {
			return err
		}
		if err := h.repeat(ctx, t, mine, delivered, ask); err != nil {
			return err
		}
		if _, err := on.owner.RevokeSender(ctx, h.made.ID); err != nil {
			return err
		}
		late := "late " + kind
		if got, err := ask(mine, "POST", h.path, h.fields(sendersSecret, late, time.Now()), late); err != nil || got.status < 400 {
			t.got("%s after it was revoked gets %d, %v", kind, got.status, err)
		}
		t.try(1)
	}
	return on.looksForDeliveries(delivered, t)
}

// abuse sends every forged head with every changed body to every place that is near.
func (h hook) abuse(ctx context.Context, t *tally, quick bool, seen, body string, at []*backend, ask func(*backend, string, string, string, string) (answer, error)) error {
	flipped := []byte("forged " + h.kind)
	bodies := []string{string(flipped), body + " forged", strings.ToUpper(body), "", body}
	targets := []string{h.path, h.path + "&x", h.path + "?", strings.Replace(h.path, "hook", "%68ook", 1), "/" + h.path, strings.Replace(h.path, "?", "/?", 1), "/.porchlight/..;" + h.path}
	n := 0
	for _, changed := range bodies {
		for what, fields := range h.forged(seen, changed) {
			for i, target := range targets {
				n++
				if quick && n%5 != 0 {
					continue
				}
				method := []string{"POST", "POST", "PUT", "GET", "POST"}[n%5]
				to := at[0]
				if i%3 == 2 {
					to = at[1]
				}
				got, err := ask(to, method, target, fields, changed)
				if err != nil {
					return err
				}
				t.try(1)
				if got.status < 400 && got.status != 0 {
					t.got("%s, %s with %q to %s of %s gets %d", h.kind, what, changed, target, to.name, got.status)
				}
			}
		}
	}
	return ctx.Err()
}

// repeat sends one delivery many times at once, and again: the app gets it once.
func (h hook) repeat(ctx context.Context, t *tally, to *backend, delivered map[string]bool, ask func(*backend, string, string, string, string) (answer, error)) error {
	body := "repeated " + h.kind
	delivered[h.kind+body] = true
	fields := h.fields(sendersSecret, body, time.Now())
	var mu sync.Mutex
	var wg sync.WaitGroup
	through, failed := 0, error(nil)
	for range 24 {
		wg.Go(func() {
			got, err := ask(to, "POST", h.path, fields, body)
			mu.Lock()
			defer mu.Unlock()
			if got.status == 200 {
				through++
			}
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	t.try(24)
	if through != 1 {
		t.got("%s, 24 times at once, got through %d times", h.kind, through)
	}
	return failed
}

// looksForDeliveries looks through what every app was sent: what was delivered, once each,
// as its sender's, and nothing else of anybody's.
func (on *ground) looksForDeliveries(delivered map[string]bool, t *tally) error {
	times := map[string]int{}
	for _, b := range on.backends {
		b.tap.close()
		for _, w := range b.tap.messages() {
			if w.method == "GET" && (w.target == "/" || w.target == "/hello") {
				continue // the member who was signed in
			}
			users := 0
			for _, field := range append(w.fields, w.trailers...) {
				name, value, _ := strings.Cut(field, ":")
				value = strings.TrimSpace(value)
				switch folded(name) {
				case "x-service-user":
					if users++; !strings.HasPrefix(value, "sender-") {
						t.got("%s was sent something of %q", b.name, value)
					}
				case "x-service-role":
					if value != "member" {
						t.got("%s was sent the role %q", b.name, value)
					}
				case "cookie":
					t.got("%s was sent cookies", b.name)
				}
			}
			kind, is := strings.CutPrefix(w.target, "/hook-")
			kind, _, _ = strings.Cut(kind, "?")
			if key := kind + string(w.body); !is || users != 1 || !delivered[key] {
				t.got("%s was sent %s with %.60q", b.name, w.target, w.body)
			} else {
				times[key]++
			}
		}
	}
	for key := range delivered {
		if times[key] != 1 {
			t.got("%s got to the app %d times", key, times[key])
		}
	}
	return nil
}
