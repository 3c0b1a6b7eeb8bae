package controlapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"time"
)

// Portal is the label under a computer's root host where the launcher is found, too.
const Portal = "portal"

// A label is the name of an app or of a computer: both become labels of a host (P9).
var labelPattern = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// ValidLabel says whether a label has the form of one. Whether it is reserved is another
// question.
func ValidLabel(label string) bool { return labelPattern.MatchString(label) }

// Reserved says whether a label is that of no app and of no computer (P10).
func Reserved(label string) bool { return label == "www" || label == Portal }

// App is an approved app as reported to the control plane.
type App struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Label string `json:"label"`
	Live  bool   `json:"live"`
	// TCP says that programs reach it over TCP, by the client ReachClient alone. An agent
	// that does not say so has none; a control plane that does not know it has no such client.
	TCP bool `json:"tcp,omitempty"`
}

// Apps is the body of PUT PathApps: the whole list, replacing the last one.
type Apps struct {
	Apps []App `json:"apps"`
	// Knocks is from whom this computer takes knocks. An agent that does not say
	// cannot answer any.
	Knocks KnocksFrom `json:"knocks,omitempty"`
	// TellOff is whether people with an app here may know since when this computer is off.
	// An agent that does not say cannot be asked not to.
	TellOff bool `json:"tellOff,omitempty"`
	// Groups are the apps that the owner's groups open to people, by account and app, with
	// their ends in whole seconds of UTC, zero for none. The agent decides by its own groups;
	// this is for who may visit, allow a client and make a password, at most MaxByGroup.
	Groups map[string]map[string]time.Time `json:"groups,omitempty"`
	// Fills are the groups of providers that the owner lets fill some of theirs, each as
	// PROVIDER/GROUP, sorted: of these alone Person.Filled tells.
	Fills []string `json:"fills,omitempty"`
	// CertificateEnds is when the first certificate ends of those that cannot be renewed and
	// soon will have, or did, in whole seconds of UTC; zero for none.
	CertificateEnds time.Time `json:"certificateEnds,omitzero"`
}

// MaxByGroup is how many apps the groups of a computer open, counted once for each person.
const MaxByGroup = 5000

// Digest tells one report from another. It is over the JSON of what this program knows of
// a report: where agent and control plane know different fields theirs may never be the
// same. The agent then reports when it starts, and again after snapshots, ever more seldom
// and at last once an hour at most.
func (a Apps) Digest() string {
	if a.Apps == nil {
		a.Apps = []App{}
	}
	b, _ := json.Marshal(a) // texts, truth values and times, which always have a JSON
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
