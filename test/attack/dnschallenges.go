//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/miekg/dns"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// poisoned are challenges of somebody who is not the computer's: with them an authority would
// certify its names for them.
func (w *dnsWorld) poisoned(ctx context.Context) error {
	evil := strings.Repeat("e", 43)
	bodies := []any{
		map[string]any{"values": []string{evil}}, map[string]any{"values": []string{evil}, "name": "maya"}, map[string]any{"values": []string{evil}, "computer": "maya", "host": w.maya.account.Host},
		map[string]any{"values": []string{evil}, "computerId": w.maya.account.Name}, map[string]any{"values": []string{evil + "\" \"" + evil}}, map[string]any{"values": []string{"maya.localhost " + evil}},
		map[string]any{"values": []string{evil}, "authority": "letsencrypt.org\"; x", "account": "https://evil.test/1"}, map[string]any{"values": []string{evil}, "authority": "evil.test", "account": "https://evil.test/acct/1\"; y"},
	}
	credentials := []string{w.anna.credential, "", w.maya.credential[:len(w.maya.credential)-1], strings.ToUpper(w.maya.credential)}
	fmt.Printf("   challenges %d × credentials %d\n", len(bodies), len(credentials))
	for _, body := range bodies {
		for i, credential := range credentials {
			w.t.try(1)
			status, answer, err := w.v1(ctx, http.MethodPut, "/v1/challenges", credential, body)
			if err != nil {
				return err
			}
			if i > 0 && status < 300 {
				w.t.got("a challenge is taken from nobody: %d %s", status, answer)
			}
		}
		if err := w.clean(evil); err != nil {
			return err
		}
	}
	return nil
}

// clean looks whether a challenge of anna's stands at a name that is not hers.
func (w *dnsWorld) clean(evil string) error {
	for _, name := range []string{
		"_acme-challenge." + controlapi.HostName(w.maya.account.Host) + ".", "_acme-challenge.notes." + controlapi.HostName(w.maya.account.Host) + ".",
		"_acme-challenge.localhost.", "_acme-challenge.control.localhost.", controlapi.HostName(w.maya.account.Host) + ".",
	} {
		for _, kind := range []uint16{dns.TypeTXT, dns.TypeCAA} {
			w.t.try(1)
			a, err := w.asks("tcp", new(dns.Msg).SetQuestion(name, kind))
			if err != nil {
				return err
			}
			if text := a.String(); strings.Contains(text, evil) || strings.Contains(text, "evil") {
				w.t.got("another tenant's challenge stands at %s: %s", name, text)
			}
		}
	}
	return nil
}

// sets has a tenant's computer set challenges of its own name.
func (w *dnsWorld) sets(ctx context.Context, who *tenant, values ...string) (taken bool, err error) {
	w.t.try(1)
	status, _, err := w.v1(ctx, http.MethodPut, controlapi.PathChallenges, who.credential, controlapi.Challenges{Values: values})
	return status < 300, err
}

// stands says whether a text is among what the DNS says of a tenant's challenges.
func (w *dnsWorld) stands(who *tenant, text string) (bool, error) {
	a, err := w.asks("tcp", new(dns.Msg).SetQuestion(controlapi.ChallengePrefix+controlapi.HostName(who.account.Host)+".", dns.TypeTXT))
	return err == nil && strings.Contains(a.String(), text), err
}

// challenged are challenges of a computer's own name that are none, too many, or too often.
func (w *dnsWorld) challenged(ctx context.Context) error {
	const anHour = 30
	good := control.NewChallenge
	one := good()
	for what, values := range map[string][]string{
		"one of 42 characters": {one[:42]}, "one of 44": {one + "x"}, "none at all": {""}, "five at once": {good(), good(), good(), good(), good()}, "one twice": {one, one},
		"one of another alphabet": {one[:42] + "+"}, "one with a quote": {one[:41] + `" `}, "one with a line": {one[:42] + "\n"}, "one of 64 KiB": {strings.Repeat("x", 64<<10)},
		"a good one and a bad one": {one, one[:42]},
	} {
		taken, err := w.sets(ctx, w.anna, values...)
		if err != nil {
			return err
		}
		if there, err := w.stands(w.anna, one[:40]); taken || there || err != nil {
			w.t.got("as challenges are taken: %s: %v, %v", what, there, err)
		}
	}
	sum := 0
	for range 2 * anHour {
		taken, err := w.sets(ctx, w.anna, good())
		if err != nil {
			return err
		}
		if taken {
			sum++
		}
	}
	if sum == 0 {
		return errors.New("no challenge is taken at all")
	}
	if sum > anHour {
		w.t.got("%d challenges of one computer are taken within an hour", sum)
	}
	if taken, err := w.sets(ctx, w.anna); !taken || err != nil {
		w.t.got("who has set too many cannot take them away: %v", err)
	}
	return nil
}

// removed is a computer whose challenge stays when it is gone, and whose credential sets more.
func (w *dnsWorld) removed(ctx context.Context) error {
	left := control.NewChallenge()
	taken, err := w.sets(ctx, w.maya, left)
	if err != nil {
		return err
	}
	if there, err := w.stands(w.maya, left); !taken || !there {
		return fmt.Errorf("a challenge is not answered: %w", err)
	}
	if status, answer, err := w.v1(ctx, http.MethodDelete, controlapi.PathComputer, w.maya.credential, nil); status >= 300 || err != nil {
		return fmt.Errorf("the computer is not removed: %d %s, %w", status, answer, err)
	}
	w.t.try(1)
	if there, err := w.stands(w.maya, left); there || err != nil {
		w.t.got("the challenge of a computer that was removed is answered: %v", err)
	}
	late := control.NewChallenge()
	if taken, err := w.sets(ctx, w.maya, late); taken || err != nil {
		w.t.got("a computer that was removed sets a challenge: %v", err)
	}
	if there, err := w.stands(w.maya, late); there || err != nil {
		w.t.got("the challenge that it set is answered: %v", err)
	}
	return nil
}
