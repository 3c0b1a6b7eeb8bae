package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"porchlight/agent/agentapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/upgrade"
)

const owner = "maya@example.net"

// server is a control plane on a PostgreSQL of its own.
type server struct {
	*rig.Node
	database *pgtest.Server
	url      string // of the database
}

// serve starts one in dir, with the owner's account, and has r read its mails.
func (r *recorder) serve(ctx context.Context, dir string) (*server, error) {
	database, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		return nil, err
	}
	s := &server{database: database}
	if s.url, err = database.NewDatabase(); err != nil {
		return nil, err
	}
	if s.Node, err = r.Node(ctx, filepath.Join(dir, "control"), "--postgres", s.url, "--domain", upgrade.Domain); err != nil {
		return nil, err
	}
	r.plane, r.mails, r.rootFiles = s.Node, s.Outbox(), []string{rig.Authority(s.Data)}
	return s, s.Run(nil, "account", "add", owner)
}

// connect connects the computer, and confirms it in a browser.
func (r *recorder) connect(ctx context.Context, s *server) error {
	command, err := r.Begin(r.Command("porchlight", "connect", s.AuthURL, "--ca", rig.Authority(s.Data), "--json", "--data", r.agent.Data))
	if err != nil {
		return err
	}
	defer command.Kill()
	first, err := command.Says(ctx, `(?s)^(\{.*?\n\})`)
	if err != nil {
		return err
	}
	var waiting agentapi.Connecting
	if err := json.Unmarshal([]byte(first[1]), &waiting); err != nil {
		return err
	}
	b, err := r.browser()
	if err != nil {
		return err
	}
	answers := map[string]string{"name": "cellar", "decision": "allow"}
	if _, err := b.Confirm(ctx, waiting.VerificationURLComplete, waiting.UserCode, owner, answers, r.mails); err != nil {
		return err
	}
	if code := command.Wait(); code != 0 {
		return fmt.Errorf("connect ended with %d: %s", code, command.Stderr())
	}
	r.rootFiles = append(r.rootFiles, rig.Own(r.agent.Data))
	return nil
}

// forPsql are lines that only psql knows.
var forPsql = regexp.MustCompile(`(?m)^\\.*\n`)

// dump ends the server and writes its database, tables and rows, as statements.
func (s *server) dump(path string) error {
	if code := s.Stop(); code != 0 {
		return fmt.Errorf("the server ended with %d: %s", code, s.Stderr())
	}
	bin, err := pgtest.Programs()
	if err != nil {
		return err
	}
	out, err := programs.Output(exec.Command(filepath.Join(bin, "pg_dump"), "--no-owner", "--rows-per-insert", "100", "--dbname", s.url))
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.TrimSpace(forPsql.ReplaceAll(out, nil)), 0o600)
}
