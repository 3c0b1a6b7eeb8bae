//go:build linux

// Command attack plays a hostile stranger against the real programs: it makes
// attacks by the hundred out of a few axes each, which it prints, sends them to
// agents and control planes of its own on the loopback interface, with real apps
// behind them, and looks at what came of it.
//
//	go run ./test/attack [-quick] [-part NAME[,NAME…]] [-bin bin]
//
// It ends with a table of what was tried and what got through, and with an error
// when anything did, or when a part tried fewer than it should. -quick takes a
// share of every part that is spread over all its axes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// part is a kind of attack. floor and quickFloor are how many it has to try.
type part struct {
	name              string
	run               func(context.Context, *stage, *tally) error
	floor, quickFloor int
}

var parts = []part{
	{"headers", attackHeaders, 3592, 240},
	{"headers-h2", attackHeaders2, 444, 120},
	{"smuggling", attackSmuggling, 1504, 240},
	{"fields", attackFields, 480, 96},
	{"guard", attackGuard, 238, 120},
	{"strangers", attackStrangers, 100, 100},
	{"tenants", attackTenants, 20, 20},
	{"domains", attackDomains, domainsTried, domainsTried},
	{"dns", attackDNS, dnsTried, dnsQuickTried},
	{"tokens", attackTokens, 14, 14},
	{"identity", attackIdentity, identityTried, identityTried},
	{"passkeys", attackPasskeys, passkeysTried, passkeysTried},
	{"audit", attackAudit, auditTried, auditTried},
	{"suspended", attackSuspended, suspendedTried, suspendedQuickTried},
	{"admin", attackAdmin, adminTried, adminTried},
	{"passwords", attackPasswords, 2000, 200},
	{"keys", attackKeys, 1000, 600},
	{"senders", attackSenders, 4800, 1050},
	{"reach", attackReach, 140, 140},
	{"certificates", attackCertificates, 600, 600},
	{"dates", attackDates, 900, 110},
	{"groups", attackGroups, 640, 170},
	{"pkce", attackPKCE, 7, 7},
	{"redirects", attackRedirects, 34, 34},
	{"resource", attackResource, 600, 300},
	{"cimd", inInternet, cimdFloor, cimdQuickFloor},
	{"assertions", inInternet, assertionsTried, assertionsTried},
	{"oidc", attackOIDC, oidcTried, oidcTried},
	{"races", attackRaces, 200, 60},
	{"floods", attackFloods, 29, 29},
	{"mcp", attackMCP, 2000, 500},
	{"files", attackFiles, 14, 14},
	{"sign-in", attackSignIn, 4 * ofEach, 4 * ofEach},
	{"memory", attackMemory, 15, 15},
	{"kills", attackKills, 100, 12},
	{"damages", attackDamages, 35, 35},
}

// stage is what parts run on.
type stage struct {
	bin   string // directory of porchlight and porchlight-control
	dir   string // everything that is written is below it
	quick bool
	keeper
	agentFiles int // that agents started from now on may open; 0 for as many as we
	refused    int // starts on damaged files
}

func main() {
	switch os.Getenv(roleVariable) {
	case "go":
		playApp()
		return
	case "stranger":
		playStranger()
		return
	case "wide":
		parts = []part{{"sign-in", attackSignInWide, 4 * ofEach, 4 * ofEach}}
		os.Unsetenv(roleVariable)
	case "internet":
		parts = insideParts
		os.Unsetenv(roleVariable)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	quick := flag.Bool("quick", false, "a share of every part, under three minutes in all")
	names := flag.String("part", "", "only these parts, joined by commas")
	bin := flag.String("bin", "bin", "where porchlight and porchlight-control are")
	flag.Parse()
	if err := run(ctx, *bin, *quick, *names); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, quick bool, names string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	var tallies []*tally
	for _, p := range chosen {
		t := &tally{name: p.name, floor: p.floor}
		if quick {
			t.floor = p.quickFloor
		}
		tallies = append(tallies, t)
		fmt.Printf("\n== %s\n", p.name)
		began := time.Now()
		if err := onStage(ctx, p, &stage{bin: bin, quick: quick}, t); err != nil {
			t.broke = err
			fmt.Printf("   stopped: %v\n", err)
		}
		t.took = time.Since(began)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
	}
	return report(tallies)
}

func choose(names string) ([]part, error) {
	if names == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, p := range parts {
			if p.name == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no part %q", name)
		}
	}
	return chosen, nil
}

// onStage gives a part a directory and processes of its own, and takes all of it
// away again however the part ends.
func onStage(ctx context.Context, p part, s *stage, t *tally) (err error) {
	if s.dir, err = os.MkdirTemp("", "porchlight-attack-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	defer s.end()
	// Our own environment too, so that we find the secrets the agents keep.
	for name, dir := range map[string]string{"XDG_CONFIG_HOME": "config", "XDG_RUNTIME_DIR": "run", "HOME": "home"} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o700); err != nil {
			return err
		}
		if err := os.Setenv(name, filepath.Join(s.dir, dir)); err != nil {
			return err
		}
	}
	return p.run(ctx, s, t)
}
