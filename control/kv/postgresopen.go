package kv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Codes of SQLSTATE that end an attempt to open, and that a person can mend.
const (
	codeBadPassword  = "28P01"
	codeNotLetIn     = "28000" // no such user, or none that may come this way
	codeNoDatabase   = "3D000"
	codeNotPermitted = "42501"
)

// openError is why a database could not be opened: a sentence for whoever runs
// the program, in one line, over what the driver said, which is several.
type openError struct {
	sentence string
	err      error
}

func (e *openError) Error() string { return e.sentence }
func (e *openError) Unwrap() error { return e.err }

// openFailure makes the sentence. It names the server, the database and the user
// of cfg, and never the password.
func openFailure(cfg *pgx.ConnConfig, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	server := cfg.Host // a directory where it is a unix socket
	if !strings.HasPrefix(server, "/") {
		server = net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	}
	say := func(format string, args ...any) error {
		return &openError{"cannot open the database: " + fmt.Sprintf(format, args...), err}
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pe.Code {
		case codeBadPassword:
			return say("the server at %s refuses the password of user %q. Check the user and the password in the address of the database", server, cfg.User)
		case codeNotLetIn:
			return say("the server at %s does not let user %q in. Check the user in the address of the database, and that the server's pg_hba.conf lets it come from here", server, cfg.User)
		case codeNoDatabase:
			return say("the server at %s has no database %q. Make it, or correct its name in the address of the database", server, cfg.Database)
		case codeNotPermitted:
			return say("user %q may not make or use tables in the database %q at %s. Make it the owner of that database, or grant it CREATE on the schema", cfg.User, cfg.Database, server)
		}
		return say("the server at %s says %q (SQLSTATE %s)", server, pe.Message, pe.Code)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || isX509(err) {
		return say("the certificate of the server at %s is not trusted. Check sslmode and sslrootcert in the address of the database", server)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return say("the name of its server, %s, leads nowhere. Check the host in the address of the database", cfg.Host)
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return say("no server listens at %s. Check that PostgreSQL runs, and host and port in the address of the database", server)
	}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return say("the server at %s does not answer. Check host and port in the address of the database, and whether a firewall stands between", server)
	}
	return say("the server at %s cannot be used (%s)", server, strings.Join(strings.Fields(err.Error()), " "))
}

func isX509(err error) bool {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	return unknown || other
}
