package agentapi

import (
	"time"

	"porchlight/internal/words"
)

// Verdict of one thing that was looked at.
type Verdict string

const (
	VerdictFine  Verdict = "ok"
	VerdictNote  Verdict = "note"  // works, with a limit somebody should know of
	VerdictWrong Verdict = "wrong" // keeps somebody from what they want
)

// Finding is what one look found.
type Finding struct {
	Check string  `json:"check"`
	State Verdict `json:"state"`
	Text  string  `json:"text"`
	// Words is Text with its arguments apart, to be said on the owner's screen in another
	// language; nil where it is not shown there.
	Words words.Text `json:"textWords,omitempty"`
	// Next says what to do about it; empty where there is nothing to do.
	Next string `json:"next,omitempty"`
}

// Examination answers POST /owner/health: everything between a visitor and the apps.
type Examination struct {
	At time.Time `json:"at"`
	// Findings are in the order in which one depends on another.
	Findings []Finding `json:"findings"`
	// Address is the way of a visitor to the computer's own address.
	Address *TriedAddress `json:"address,omitempty"`
	// Report is the same as a text that may be shown to anybody: it names apps, ports
	// and versions, and holds no secret, no person and no address of theirs.
	Report string `json:"report"`
}

// TriedAddress answers POST /owner/apps/{name}/try: the way of a visitor to an address,
// gone by this computer itself.
type TriedAddress struct {
	At   time.Time `json:"at"`
	Host string    `json:"host"`
	// Works is true where the visit came out of a tunnel of this computer's relay, with
	// nobody in between who could read it.
	Works bool `json:"works"`
	// Milliseconds from looking the name up to the answer.
	Milliseconds int64 `json:"milliseconds"`
	// Text is a sentence about what keeps visitors out; empty where it works.
	Text string `json:"text"`
	// Words is Text with its arguments apart, to be said in another language.
	Words words.Text `json:"textWords,omitempty"`
}
