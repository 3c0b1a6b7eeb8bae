package admin

import (
	"context"
	"net/http"

	"porchlight/control/mail"
)

// outbox shows the mails that are kept here instead of being delivered.
func (a *Admin) outbox(w http.ResponseWriter, r *http.Request) error {
	if a.cfg.Outbox == nil {
		return refuse("This control plane has its mails delivered (--smtp), so none are kept to be read here. outbox --waiting and outbox --failed show those that did not arrive.")
	}
	list, err := a.cfg.Outbox.List(r.Context(), mail.OutboxSize)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (a *Admin) waitingMails(w http.ResponseWriter, r *http.Request) error {
	list, err := mail.Queued(r.Context(), a.cfg.Store)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (a *Admin) failedMails(w http.ResponseWriter, r *http.Request) error {
	list, err := mail.Failures(r.Context(), a.cfg.Store)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// Outbox are the mails nobody delivers, newest first.
func (c *Client) Outbox(ctx context.Context) (out []mail.Entry, err error) {
	err = c.do(ctx, "GET", "/outbox", nil, &out)
	return out, err
}

// WaitingMails are those the mail server has not taken yet, the one due first at
// the head.
func (c *Client) WaitingMails(ctx context.Context) (out []mail.Waiting, err error) {
	err = c.do(ctx, "GET", "/outbox/waiting", nil, &out)
	return out, err
}

// FailedMails are those that were given up, newest first.
func (c *Client) FailedMails(ctx context.Context) (out []mail.Failure, err error) {
	err = c.do(ctx, "GET", "/outbox/failed", nil, &out)
	return out, err
}
