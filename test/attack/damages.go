//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// damage is something that happens to a file.
type damage struct {
	what string
	do   func(path string) error
}

func rewrite(change func([]byte) []byte) func(string) error {
	return func(path string) error {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, change(raw), 0o600)
	}
}

var damages = []damage{
	{"empty", rewrite(func([]byte) []byte { return nil })},
	{"cut in half", rewrite(func(b []byte) []byte { return b[:len(b)/2] })},
	{"cut by a byte", rewrite(func(b []byte) []byte { return b[:len(b)-1] })},
	{"zeroes", rewrite(func(b []byte) []byte { clear(b); return b })},
	{"zeroes at the front", rewrite(func(b []byte) []byte { clear(b[:min(len(b), 8<<10)]); return b })},
	{"a bit flipped in every 512 bytes", rewrite(func(b []byte) []byte {
		for i := 0; i < len(b); i += 512 {
			b[min(i+100, len(b)-1)] ^= 1
		}
		return b
	})},
	{"one bit flipped", rewrite(func(b []byte) []byte { b[len(b)/3] ^= 0x10; return b })},
	{"another program's file", rewrite(func([]byte) []byte { return append([]byte("SQLite format 3\x00"), make([]byte, 8<<10)...) })},
	{"readable by all", func(path string) error { return os.Chmod(path, 0o666) }},
	{"a directory", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
	{"a link to nothing", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/nowhere/at-all", path)) }},
}

// attackDamages damages the files of an agent's and a control plane's data
// directory, one at a time. The program starts with everything in it, or it ends
// with a sentence; it does not panic, and does not start as new. A letter of a row's
// value may be wrong: where the row cannot be read then, it says so.
func attackDamages(ctx context.Context, s *stage, t *tally) error {
	agent := []string{"agent.db", "control/control.db", "https-port", "control/admin.json", "agent.json", "ca/root.pem", "ca/intermediate.pem", "ca/intermediate-key.pem"}
	plane := []string{"control.db", "admin.json", "ca/root.pem", "ca/intermediate.pem", "ca/intermediate-key.pem"}
	whole := filepath.Join(s.dir, "whole")
	if err := s.furnish(ctx, whole); err != nil {
		return err
	}
	for _, at := range (grid{}).axis("files of an agent", len(agent)).axis("damages", len(damages)).pick(s.quick, 24) {
		if err := s.damageOne(ctx, t, whole, agent[at[0]], damages[at[1]], s.tryAgent); err != nil {
			return err
		}
	}
	wholePlane := filepath.Join(s.dir, "whole-plane")
	if err := s.furnishPlane(ctx, wholePlane); err != nil {
		return err
	}
	for _, at := range (grid{}).axis("files of a control plane", len(plane)).axis("damages", len(damages)).pick(s.quick, 14) {
		if err := s.damageOne(ctx, t, wholePlane, plane[at[0]], damages[at[1]], s.tryPlane); err != nil {
			return err
		}
	}
	fmt.Printf("   %d times the program started with everything in it, %d times it ended with a sentence\n", t.tried-s.refused, s.refused)
	return nil
}

// furnish makes a data directory with an app and a person, as a killed agent
// leaves it.
func (s *stage) furnish(ctx context.Context, data string) error {
	c, err := s.startComputer(ctx, data)
	if err != nil {
		return err
	}
	if _, err := c.publish(ctx, "notes", "Notes", 9); err != nil {
		return err
	}
	if _, err := c.owner.Invite(ctx, agentapi.InviteRequest{Email: memberEmail, Apps: []string{"Notes"}}); err != nil {
		return err
	}
	c.Kill()
	return withoutSockets(data)
}

func (s *stage) furnishPlane(ctx context.Context, data string) error {
	c, err := s.startPlane(ctx, data)
	if err != nil {
		return err
	}
	if err := c.Run(nil, "account", "add", memberEmail); err != nil {
		return err
	}
	c.Kill()
	return withoutSockets(data)
}

// withoutSockets takes away what cannot be copied.
func withoutSockets(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSocket != 0 {
			err = os.Remove(path)
		}
		return err
	})
}

// damageOne tries one damage on a copy. The copy is always at the same place, to
// which the owner secret belongs.
func (s *stage) damageOne(ctx context.Context, t *tally, whole, file string, d damage, try func(context.Context, string, []byte) (string, error)) error {
	kept := whole + ".kept"
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(whole, kept); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(whole); err != nil {
		return err
	}
	if err := os.CopyFS(whole, os.DirFS(kept)); err != nil {
		return err
	}
	for _, dir := range []string{"", "ca", "control"} { // CopyFS leaves modes to the umask
		if err := os.Chmod(filepath.Join(whole, dir), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	root, err := os.ReadFile(filepath.Join(kept, "ca", "root.pem"))
	if err != nil {
		return err
	}
	if err := d.do(filepath.Join(whole, file)); errors.Is(err, fs.ErrNotExist) {
		return nil // a file that is not always there
	} else if err != nil {
		return err
	}
	wrong, err := try(ctx, whole, root)
	t.try(1)
	select {
	case <-s.latest().Done():
		s.refused++
	default:
		s.latest().Stop()
	}
	if wrong != "" {
		t.got("%s %s, %s: %s", filepath.Base(whole), file, d.what, wrong)
	}
	return err
}

// ended judges how a program refused to start.
func ended(p *programs.Process, started error) string {
	if p == nil {
		return started.Error()
	}
	code := p.Stop()
	said := p.Stdout() + p.Stderr()
	switch {
	case strings.Contains(said, "panic:"), strings.Contains(said, "goroutine "), strings.Contains(said, "SIGSEGV"):
		return fmt.Sprintf("it panicked: %.300s", said)
	case code == 0:
		return "it ended with success"
	case len(strings.Fields(said)) < 5:
		return fmt.Sprintf("it ended without a sentence: %q", said)
	}
	return ""
}

// spoke says whether a program that started told of a new authority, in place of
// the one that is known to browsers.
func spoke(p *programs.Process, data string, root []byte) string {
	now, err := os.ReadFile(filepath.Join(data, "ca", "root.pem"))
	if err == nil && bytes.Equal(now, root) || strings.Contains(p.Stderr(), "authority") {
		return ""
	}
	return "it started with a new certificate authority, and does not say so"
}

func (s *stage) tryAgent(ctx context.Context, data string, root []byte) (wrong string, err error) {
	c, err := s.startComputer(ctx, data)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return ended(s.latest(), err), nil
	}
	state, err := c.owner.State(ctx)
	if err != nil {
		select {
		case <-c.Done(): // what it found ended it a moment after it had begun to answer
			return ended(c.Process, err), nil
		case <-time.After(patience):
		}
		return fmt.Sprintf("it started, and does not answer: %v", err), nil
	}
	people, err := c.owner.People(ctx)
	_, sentence := errors.AsType[*agentapi.Error](err)
	switch {
	case sentence:
		return "", nil // it says what is wrong
	case err != nil:
		return fmt.Sprintf("it started, and does not know its people: %v", err), nil
	case len(state.Apps) != 1 || state.Apps[0].Name != "notes" || state.Apps[0].Status != agentapi.StatusLive:
		return fmt.Sprintf("it started, and the app is lost: %+v", state.Apps), nil
	case len(people.Members) != 2 && state.Trouble == "": // it goes by what it knew last, and says so
		return fmt.Sprintf("it started, and knows %d people", len(people.Members)), nil
	}
	return spoke(c.Process, data, root), nil
}

func (s *stage) tryPlane(ctx context.Context, data string, root []byte) (wrong string, err error) {
	c, err := s.startPlane(ctx, data)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return ended(c.Process, err), nil
	}
	var accounts []struct{ Email string }
	if err := c.Run(&accounts, "account", "list"); err != nil {
		if strings.Contains(err.Error(), "decoding control.") { // a letter of a value, of which no file knows
			return "", nil
		}
		return fmt.Sprintf("it started, and cannot be administered: %v", err), nil
	}
	if len(accounts) != 1 {
		return fmt.Sprintf("it started with %d accounts", len(accounts)), nil
	}
	return spoke(c.Process, data, root), nil
}
