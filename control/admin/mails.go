package admin

import (
	"context"
	"net/http"

	"porchlight/control/controlapi"
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
	controlapi.WriteJSON(w, http.StatusOK, list)
	return nil
}

// Outbox are the mails nobody delivers, newest first.
func (c *Client) Outbox(ctx context.Context) ([]mail.Entry, error) {
	return asked[[]mail.Entry](ctx, c, "GET", "/outbox", nil)
}

// WaitingMails are those the mail server has not taken yet, the one due first at
// the head.
func (c *Client) WaitingMails(ctx context.Context) ([]mail.Waiting, error) {
	return asked[[]mail.Waiting](ctx, c, "GET", "/outbox/waiting", nil)
}

// FailedMails are those that were given up, newest first.
func (c *Client) FailedMails(ctx context.Context) ([]mail.Failure, error) {
	return asked[[]mail.Failure](ctx, c, "GET", "/outbox/failed", nil)
}
