package agentapi

import "time"

// Update is what is known of newer versions.
type Update struct {
	// Version is one that is newer than the one that runs, and Date when it was told of;
	// empty and nil for none.
	Version string     `json:"version,omitempty"`
	Date    *time.Time `json:"date,omitempty"`
	// AskedAt is when the address was last asked; nil for never.
	AskedAt *time.Time `json:"askedAt,omitempty"`
	// Problem is a sentence about why it could not be learnt the last time, or empty.
	Problem string `json:"problem,omitempty"`
}
