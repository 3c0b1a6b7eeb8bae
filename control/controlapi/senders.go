package controlapi

import "strings"

// SendersLabel begins the host of the mail addresses by which apps are told of named
// senders: ID@senders.ROOTHOST. Nobody has a mailbox there.
const SendersLabel = "senders"

// OfSender says whether a mail address is, or could be, one of a named sender. It is
// refused wherever a person's is taken.
func OfSender(email string) bool {
	_, host, _ := strings.Cut(strings.ToLower(strings.TrimSpace(email)), "@")
	rest, is := strings.CutPrefix(host, SendersLabel+".")
	return is && strings.Contains(rest, ".")
}
