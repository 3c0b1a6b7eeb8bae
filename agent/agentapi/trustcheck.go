package agentapi

// TrustCheck says whether the owner's browser trusts this computer's own authority, as
// it was found by having it load a page: GET /owner/trust/check. POST begins one.
type TrustCheck struct {
	State string `json:"state"` // one of the Check words
	// URL is the page to open in the browser, once and within a minute; of POST only.
	URL string `json:"url,omitempty"`
	// Host is where that page is.
	Host string `json:"host,omitempty"`
	// Browser is what the owner's browser is called; empty where that is not known.
	Browser string `json:"browser"`
	// Milliseconds are from the page to the proof.
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// How a TrustCheck stands.
const (
	CheckNone    = "none"    // none was begun, or a minute is over
	CheckWaiting = "waiting" // the page was not loaded yet
	CheckOpened  = "opened"  // it was loaded, which may have been past a warning
	CheckProven  = "proven"  // it was, and without one
	CheckRefused = "refused" // the browser did not take the certificate
)
