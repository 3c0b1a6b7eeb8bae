package certs

import (
	"context"
	"strings"

	"porchlight/control/controlapi"
)

// Names says which names of a computer have certificates. Every field is required.
type Names struct {
	// Root is the root host without a port, empty before it is known.
	Root func() string
	// Apps are the names of all apps, and Live says which of them are live.
	Apps func() []string
	Live func(app string) bool
	// Reached says whether a relay sends visitors: the authority comes that way, too.
	Reached func() bool
	// Own says whether visitors of an own domain are brought here now, and OwnDomains are all
	// of which that is so.
	Own        func(name string) bool
	OwnDomains func() []string
	// Prove refuses an own domain that is not proven at this moment, with its error.
	Prove func(ctx context.Context, name string) error
}

// Before refuses an order, a renewal's too: a name that the service did not give this
// computer is proven first, also one that was its own until a moment ago.
func (n Names) Before(ctx context.Context, name string) error {
	if _, below := n.below(name); below {
		return nil
	}
	return n.Prove(ctx, name)
}

// OwnersDNS says whether a name is in a DNS that the owner keeps, not the service.
func (n Names) OwnersDNS(name string) bool {
	_, below := n.below(name)
	return !below
}

// Serves says whether TLS is answered for a host name: the root host and one label
// below it. Whether an app is there is for the page to say, not for the handshake.
func (n Names) Serves(name string) bool {
	label, below := n.below(name)
	return below && (label == "" || controlapi.ValidLabel(label)) || !below && n.Own(name)
}

// MayOrder says whether a certificate may be ordered for a name: of the root host, the
// launcher, and live apps only. An authority issues so many a week, so strangers must
// not choose the names.
func (n Names) MayOrder(name string) bool {
	label, below := n.below(name)
	return below && (label == "" || label == controlapi.Portal || n.Live(label)) || !below && n.Own(name)
}

// Ordered are the names that are to have a certificate before a visitor comes.
func (n Names) Ordered() []string {
	root := n.Root()
	if root == "" || !n.Reached() {
		return nil
	}
	names := []string{root}
	for _, app := range n.Apps() {
		if n.Live(app) {
			names = append(names, app+"."+root)
		}
	}
	return append(names, n.OwnDomains()...)
}

// below is what stands before the root host in a name: nothing in its own.
func (n Names) below(name string) (label string, ok bool) {
	root := n.Root()
	if root == "" || name == root {
		return "", root != ""
	}
	label, ok = strings.CutSuffix(name, "."+root)
	return label, ok && label != ""
}
