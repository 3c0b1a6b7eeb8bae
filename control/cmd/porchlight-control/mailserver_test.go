package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"porchlight/test/mailserver"
	"porchlight/test/programs"
)

const mailPassword = "correct-horse-battery"

// mailServer is a real mail server that wants STARTTLS and a password.
type mailServer struct {
	*mailserver.Server
	url  string // without the password
	cert string // file to be trusted
}

// startMailServer runs until the test ends. It refuses recipients that begin with
// "gone".
func startMailServer(t *testing.T) *mailServer {
	t.Helper()
	m := &mailServer{Server: mailserver.New(), cert: filepath.Join(t.TempDir(), "mail.pem")}
	m.User, m.Password = "porch", mailPassword
	m.OnRcpt = func(to string) error {
		if strings.HasPrefix(to, "gone") {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
		}
		return nil
	}
	programs.Must(t, os.WriteFile(m.cert, m.Root, 0o600), m.Start(false))
	t.Cleanup(m.Stop)
	m.url = "smtp://porch@" + m.Address
	return m
}

// to are the mails to an address, in the order of their arrival.
func (m *mailServer) to(email string) []mailserver.Mail {
	return slices.DeleteFunc(m.Mails(), func(one mailserver.Mail) bool { return !slices.Contains(one.To, email) })
}
