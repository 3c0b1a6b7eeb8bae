package agentapi

import (
	"context"
	"net/http"
	"reflect"
)

// Settings are the owner's choices for the whole computer, a table like AppOptions.
type Settings struct {
	// FailStaticHours is how long people keep their access while the control
	// plane is away, 0 to 24.
	FailStaticHours int `json:"failStaticHours" default:"24" help:"hours people keep their access while the control plane is away, 0 to 24" says:"People keep their access for %s hours while the control plane is away."`
	// AskAgain has a change of an app's port wait for the owner again.
	AskAgain bool `json:"askAgain" help:"have an app that changes its port wait for your approval" says:"An app that changes its port asks again: %s."`
	// TrustEverybody has programs of every user of this computer count as the
	// owner's own.
	TrustEverybody bool `json:"trustEverybody" help:"have programs of every user of this computer count as your own" says:"Everybody on this computer is trusted: %s."`
	// Probe has the agent ask approved apps for their first page, to tell how they do.
	Probe bool `json:"probe" default:"true" help:"ask approved apps for their first page, to tell you how they do" says:"Apps are asked how they do: %s."`
	// Requests has the last requests of visitors kept in memory, for the owner to
	// see. Off forgets them.
	Requests bool `json:"requests" default:"true" help:"keep the last requests of visitors in memory, for you to see" says:"What visitors ask is kept in memory for you to see: %s."`
	// Titles has the agent ask programs of the owner for their titles and icons while
	// the owner chooses what to share.
	Titles bool `json:"titles" default:"true" help:"ask programs of yours for title and icon while you choose what to share" says:"Programs are asked for titles and icons while you choose what to share: %s."`
	// StrangersKnock lets people who are unknown to this computer ask to be let in.
	StrangersKnock bool `json:"strangersKnock" help:"let people you have never invited ask to be let in" says:"People you have never invited may ask to be let in: %s."`
	// TellOff tells those who have an app here when this computer is off, and since when, and has
	// browsers that open the launcher keep a page that says so.
	TellOff bool `json:"tellOff" default:"true" help:"tell those who have an app here when this computer is off" says:"Those who have an app here are told when this computer is off: %s."`
	// DisplayName is what the owner calls themselves to people they invite, beside
	// their mail address and never in place of it; empty for the address alone. At
	// most 60 characters, without @ and dots.
	DisplayName string `json:"displayName" help:"what people you invite read beside your address; '' for the address alone" says:"Your name, as people you invite read it: %s." none:"none, your address alone"`
	// Language is the tag of the one the owner is told things in, and whoever they
	// invite; empty for that of the desktop.
	Language string `json:"language" help:"language of menu, window, notifications and of the mails to those you invite: en, de; '' for that of the desktop" says:"Language: %s." none:"that of the desktop"`
	// UpdateAddress is asked once a day whether there is a newer version, and UpdateKey is
	// the public key that signs there, in base64. Both are empty until the owner names
	// them, and it is then the address that the operator of their server names, if any;
	// NoAddress is the owner's wish for none. An address that goes takes its key along.
	UpdateAddress string `json:"updateAddress" help:"https:// address that says once a day whether there is a newer version; none for nowhere, '' for what your server's operator names"`
	UpdateKey     string `json:"updateKey" help:"public key that signs there, in base64; named together with the address"`
	// ClientHosts are hosts whose clients may ask people for access by an https client_id,
	// without being made here. It counts on a computer that is its own server, is sorted,
	// and is set whole, as Quiet is.
	ClientHosts []string `json:"clientHosts" default:"[]" help:"hosts, such as claude.ai, whose apps may ask to be let in without a client made for them; in local mode; '' for none" says:"Apps of these hosts may ask to be let in: %s." none:"none"`
	// Containers is the socket of a container engine, docker's or podman's, whose containers
	// may ask for addresses by their labels; empty for none. Whoever has that socket is root
	// on this computer, or the user whose engine it is.
	Containers string `json:"containers" help:"socket of docker or podman, such as /run/docker.sock, whose containers may then ask for addresses by labels; '' for none. That socket is root on this computer: Porchlight reads the list of containers there, and nothing else" says:"Socket by which containers may ask for addresses: %s." none:"none"`
	// Notify is the level that Quiet is, empty for a list of the owner's own; to set it
	// is to set Quiet to what the level means. It is never kept: Quiet is.
	Notify string `json:"notify,omitempty" default:"everything" help:"how much you are notified of: everything, waiting (for you) or nothing; who asks, and what ends access for all, at each" says:"Notifications: %s." none:"your own choice"`
	// Quiet holds the names of the Kinds that raise no notification. It is set whole, as a
	// merge patch has it for every list (RFC 7396): of two tools that change it at one
	// moment the later one wins, and both show that at once.
	Quiet []string `json:"quiet" default:"[]" help:"kinds that raise no notification; '' for none" says:"Kept quiet, without a notification: %s." none:"none"`
}

// SettingFields are the fields of Settings, in their order.
var SettingFields = fieldsOf[Settings]()

// DefaultSettings are those of an owner who has chosen nothing.
func DefaultSettings() (s Settings) {
	for _, f := range SettingFields {
		reflect.ValueOf(&s).Elem().Field(f.index).Set(reflect.ValueOf(f.Default))
	}
	return s
}

// Settings is GET /owner/settings.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	return call[Settings](ctx, c, http.MethodGet, "/owner/settings", nil)
}

// ChangeSettings changes those settings that are named, as in JSON, and leaves the others;
// null is the default: PATCH /owner/settings.
func (c *Client) ChangeSettings(ctx context.Context, change map[string]any) (Settings, error) {
	return call[Settings](ctx, c, http.MethodPatch, "/owner/settings", change)
}
