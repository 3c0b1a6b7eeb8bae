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
	*programs.Process
	database *pgtest.Server
	url      string // of the database
	at       string // auth URL
	caFile   string
}

// serve starts one in dir, with the owner's account, and has r read its mails.
func (r *recorder) serve(ctx context.Context, dir string) (*server, error) {
	database, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		return nil, err
	}
	s := &server{database: database, caFile: filepath.Join(dir, "authority.pem")}
	if s.url, err = database.NewDatabase(); err != nil {
		return nil, err
	}
	r.plane = filepath.Join(dir, "control")
	r.mails = rig.Outbox(func(ctx context.Context) (mails []agentapi.Mail, err error) {
		out, err := programs.Output(exec.CommandContext(ctx, r.control, "outbox", "--data", r.plane, "--json"))
		if err != nil {
			return nil, err
		}
		return mails, json.Unmarshal(out, &mails)
	})
	s.Process, err = programs.Start(exec.Command(r.control, "serve", "--postgres", s.url, "--data", r.plane,
		"--domain", upgrade.Domain, "--listen", "127.0.0.1:0", "--log-level", "warn", "--grace", "1s"))
	if err != nil {
		return nil, err
	}
	found, err := s.Says(ctx, `control plane at (\S+), listening`)
	if err != nil {
		return nil, err
	}
	s.at = found[1]
	if _, err := programs.Output(exec.CommandContext(ctx, r.control, "account", "add", owner, "--data", r.plane)); err != nil {
		return nil, err
	}
	pem, err := programs.Output(exec.CommandContext(ctx, r.control, "ca", "--data", r.plane))
	if err != nil {
		return nil, err
	}
	r.rootFiles = []string{s.caFile}
	return s, os.WriteFile(s.caFile, pem, 0o600)
}

// connect connects the computer, and confirms it in a browser.
func (r *recorder) connect(ctx context.Context, s *server) error {
	command, err := programs.Start(r.command(context.WithoutCancel(ctx), "connect", s.at, "--ca", s.caFile, "--json"))
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
	if err := upgrade.Confirm(ctx, b, waiting, owner, "cellar", r.mails); err != nil {
		return err
	}
	if code := command.Wait(); code != 0 {
		return fmt.Errorf("connect ended with %d: %s", code, command.Stderr())
	}
	r.rootFiles = append(r.rootFiles, filepath.Join(r.data, "connected-ca", "root.pem"))
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
