package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Device is a device or program that opens apps in one person's name by a certificate.
type Device struct {
	ID        string    `json:"id"`
	AccountID string    `json:"accountId"`
	Email     string    `json:"email"`
	Name      string    `json:"name"`     // what the person called it
	Apps      []string  `json:"apps"`     // labels
	AppNames  []string  `json:"appNames"` // in the same order
	CreatedAt time.Time `json:"createdAt"`
	Ends      time.Time `json:"ends"`
}

// DeviceRequest is the body of POST /owner/devices.
type DeviceRequest struct {
	Name string   `json:"name"`          // to tell it from others
	Apps []string `json:"apps"`          // names or labels
	Old  bool     `json:"old,omitempty"` // the file is for a program that reads none of today's
	Link bool     `json:"link,omitempty"`
}

// MadeDevice answers it, and nothing shows the code again: the certificate with its key is in
// File, or behind URL, which works once and for ten minutes.
type MadeDevice struct {
	ID   string    `json:"id"`
	Code string    `json:"code"`           // opens the file
	File []byte    `json:"file,omitempty"` // PKCS #12
	URL  string    `json:"url,omitempty"`
	Ends time.Time `json:"ends"` // of the certificate
}

// Devices lists everybody's devices, newest first: GET /owner/devices.
func (c *Client) Devices(ctx context.Context) ([]Device, error) {
	return call[[]Device](ctx, c, http.MethodGet, "/owner/devices", nil)
}

// MakeDevice makes a certificate for a device of the owner's: POST /owner/devices.
func (c *Client) MakeDevice(ctx context.Context, req DeviceRequest) (MadeDevice, error) {
	return call[MadeDevice](ctx, c, http.MethodPost, "/owner/devices", req)
}

// RevokeDevice ends the certificate of a device, whosever it is: POST
// /owner/devices/{id}/revoke.
func (c *Client) RevokeDevice(ctx context.Context, id string) (Closed, error) {
	return call[Closed](ctx, c, http.MethodPost, "/owner/devices/"+url.PathEscape(id)+"/revoke", nil)
}
