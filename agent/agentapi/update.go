package agentapi

import (
	"time"

	"porchlight/internal/words"
)

// Update is what is known of newer versions.
type Update struct {
	// By is who named the address that is asked, ByOwner or ByOperator; Address is empty
	// where what the operator named cannot be asked.
	By      string `json:"by,omitempty"`
	Address string `json:"address,omitempty"`
	// Version is one that is newer than the one that runs, and Date when it was told of;
	// empty and nil for none.
	Version string     `json:"version,omitempty"`
	Date    *time.Time `json:"date,omitempty"`
	// AskedAt is when the address was last asked; nil for never.
	AskedAt *time.Time `json:"askedAt,omitempty"`
	// Problem is a sentence about why it could not be learnt the last time, or empty.
	Problem string `json:"problem,omitempty"`
	// Words is Problem with its arguments apart, to be said in another language.
	Words words.Text `json:"problemWords,omitempty"`
}

// Who names the address of the update notice.
const (
	ByOwner    = "owner"
	ByOperator = "operator"
)

// NoAddress in Settings.UpdateAddress is the owner's wish to be told of no version, also
// where the operator of their server names an address.
const NoAddress = "none"
