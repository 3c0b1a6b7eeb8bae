package serve

import (
	"cmp"
	"errors"
	"fmt"
	"net/mail"

	"porchlight/control/kv"
	controlmail "porchlight/control/mail"
)

// MailConfig says where mails go. The zero value keeps them in the store for
// administration to read.
type MailConfig struct {
	// SMTP is the server that delivers them, as controlmail.SMTPConfig.Server;
	// it may hold a password and is never logged.
	SMTP string
	// SMTPPassword is the password of the user in SMTP, unless it is there.
	SMTPPassword string
	// MailFrom is what mails come from; empty means porchlight@ the auth host.
	MailFrom string
	// OutboxDir gets the mails as files, when there is no SMTP.
	OutboxDir string
}

// complete is the part of Config.Complete.
func (c *MailConfig) complete(authHost string) error {
	switch {
	case c.SMTP != "" && c.OutboxDir != "":
		return errors.New("--smtp has mails delivered and --outbox keeps them here: choose one")
	case c.SMTP == "" && c.MailFrom != "":
		return errors.New("--mail-from belongs to --smtp")
	case c.SMTP == "" && c.SMTPPassword != "":
		return errors.New("there is a password for a mail server and no --smtp to say which")
	}
	if c.SMTP == "" {
		return nil
	}
	c.MailFrom = cmp.Or(c.MailFrom, (&mail.Address{Name: "Porchlight", Address: "porchlight@" + authHost}).String())
	if err := c.delivery().Check(); err != nil {
		return fmt.Errorf("mail cannot be delivered like this (--smtp, --mail-from): %w", err)
	}
	return nil
}

func (c *MailConfig) delivery() controlmail.SMTPConfig {
	return controlmail.SMTPConfig{Server: c.SMTP, Password: c.SMTPPassword, From: c.MailFrom}
}

// mail makes the queue that takes the domain's mails: for the server, or for
// whoever reads them here.
func (n *Node) mail() (controlmail.Queue, error) {
	cfg, log := n.cfg.Mail, n.cfg.Log.With("part", "mail")
	if cfg.SMTP != "" {
		delivery := cfg.delivery()
		delivery.Log, delivery.Now = log, kv.Clock(n.store)
		queue, err := controlmail.NewSMTP(n.store, delivery)
		if err != nil {
			return nil, err
		}
		n.smtp = queue
		return queue, nil
	}
	kept := controlmail.NewOutbox(n.store, kv.Clock(n.store))
	if cfg.OutboxDir != "" {
		var err error
		if n.outbox, err = newOutboxFiles(cfg.OutboxDir, kept, log); err != nil {
			return nil, err
		}
	}
	return kept, nil
}
