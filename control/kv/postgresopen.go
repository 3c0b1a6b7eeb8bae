package kv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
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
	server := strings.Join(servers(cfg), ", ")
	say := func(format string, args ...any) error {
		return &openError{"cannot open the database: " + fmt.Sprintf(format, args...), err}
	}
	if why := eachFailure(err); len(servers(cfg)) > 1 && len(why) > 1 && !forAll(err) {
		return say("none of its servers can be used: %s", strings.Join(why, "; "))
	}
	if errors.Is(err, pgconn.ErrReadOnlyConnection) {
		return say("the server at %s takes no changes: it is a standby, or was set to read only. Check the hosts in the address of the database", server)
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		return say("%s", refusalOf(cfg, server, pe))
	}
	if isUntrusted(err) {
		return say("the certificate of the server at %s is not trusted. Check sslmode and sslrootcert in the address of the database", server)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return say("the name of its server, %s, leads nowhere. Check the host in the address of the database", cfg.Host)
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return say("no server listens at %s. Check that PostgreSQL runs, and host and port in the address of the database", server)
	}
	if isLate(err) {
		return say("the server at %s does not answer. Check host and port in the address of the database, and whether a firewall stands between", server)
	}
	return say("the server at %s cannot be used (%s)", server, strings.Join(strings.Fields(err.Error()), " "))
}

// refusalOf says why a server that answered lets nobody use the database.
func refusalOf(cfg *pgx.ConnConfig, server string, pe *pgconn.PgError) string {
	switch pe.Code {
	case codeBadPassword:
		return fmt.Sprintf("the server at %s refuses the password of user %q. Check the user and the password in the address of the database", server, cfg.User)
	case codeNotLetIn:
		return fmt.Sprintf("the server at %s does not let user %q in. Check the user in the address of the database, and that the server's pg_hba.conf lets it come from here", server, cfg.User)
	case codeNoDatabase:
		return fmt.Sprintf("the server at %s has no database %q. Make it, or correct its name in the address of the database", server, cfg.Database)
	case codeNotPermitted:
		return fmt.Sprintf("user %q may not make or use tables in the database %q at %s. Make it the owner of that database, or grant it CREATE on the schema", cfg.User, cfg.Database, server)
	}
	return fmt.Sprintf("the server at %s says %q (SQLSTATE %s)", server, pe.Message, pe.Code)
}

// servers are the servers that cfg names, each once: with sslmode=prefer the driver
// tries each of them in two ways.
func servers(cfg *pgx.ConnConfig) []string {
	var all []string
	add := func(host string, port uint16) {
		server := host // a directory where it is a unix socket
		if !strings.HasPrefix(host, "/") {
			server = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		if !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	add(cfg.Host, cfg.Port)
	for _, other := range cfg.Fallbacks {
		add(other.Host, other.Port)
	}
	return all
}

// forAll says whether err is what every server would answer, after which the driver
// asks no other.
func forAll(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains([]string{codeBadPassword, codeNoDatabase, codeNotPermitted}, pe.Code)
}

// eachFailure says in short what became of each server that the driver tried.
func eachFailure(err error) (all []string) {
	for err != nil {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range several.Unwrap() {
				// The driver puts the server's address in front.
				address, _, _ := strings.Cut(one.Error(), " (")
				if name, ok := errors.AsType[*net.DNSError](one); ok {
					address = name.Name
				}
				if why := address + ": " + inShort(one); !slices.Contains(all, why) {
					all = append(all, why)
				}
			}
			return all
		}
		err = errors.Unwrap(err)
	}
	return nil
}

func inShort(err error) string {
	pe, refused := errors.AsType[*pgconn.PgError](err)
	name, unnamed := errors.AsType[*net.DNSError](err)
	switch {
	case unnamed && name.IsNotFound:
		return "this name leads nowhere"
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return "it takes no changes"
	case refused:
		return fmt.Sprintf("it says %q (SQLSTATE %s)", pe.Message, pe.Code)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return "no server listens there"
	case isLate(err):
		return "it does not answer"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func isLate(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

func isUntrusted(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	return unverified || unknown || other
}
