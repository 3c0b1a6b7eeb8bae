package agentapi

import "porchlight/internal/words"

// InNetwork is of a port of this computer: whether other computers can open it too.
type InNetwork struct {
	// Network is true where they can, without Porchlight, which asks nobody to sign in
	// then. What a firewall makes of it is not guessed.
	Network bool `json:"network"`
	// NetworkDetail says so, for the owner, and what to type instead.
	NetworkDetail string `json:"networkDetail,omitempty"`
	// NetworkWords is NetworkDetail with its arguments apart, to be said in another
	// language.
	NetworkWords words.Text `json:"networkDetailWords,omitempty"`
}
