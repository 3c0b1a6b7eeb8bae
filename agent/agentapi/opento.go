package agentapi

import "porchlight/internal/words"

// Alike tells of a request whose label could be taken for another app's; zero for none.
// shown makes a label safe to show.
func (a OwnerApp) Alike(shown func(string) string) words.Sentence {
	if a.Resembles == "" {
		return words.Sentence{}
	}
	return words.Of("Its name looks like that of another app, %s.", shown(a.Resembles))
}

// MeansTCP says what approving an app means that is reached by TCP; zero for any other.
func (a OwnerApp) MeansTCP() words.Sentence {
	if !a.TCP {
		return words.Sentence{}
	}
	return words.Of("It is reached over TCP: the program sees a connection from this computer, without a name. One that trusts this computer’s own users, as databases may, lets in everybody you share it with.")
}

// AsksAgain says whether an app that was approved before waits for another yes.
func (a OwnerApp) AsksAgain() bool { return a.Status == StatusPending && a.ApprovedAt != nil }

// OthersWhoOpen names in English who may open an app, the owner aside; empty for nobody.
func (a OwnerApp) OthersWhoOpen(show func(string) string) string { return a.Others(show).String() }

// Others is the same as a part of a sentence, to be said in another language.
func (a OwnerApp) Others(show func(string) string) words.Sentence {
	if a.OpenToCount == 0 || len(a.OpenTo) == 0 {
		return words.Sentence{}
	}
	first := show(a.OpenTo[0])
	switch {
	case a.OpenToCount == 1:
		return words.Of("%s", first)
	case a.OpenToCount == 2 && len(a.OpenTo) == 2:
		return words.Of("%[1]s and %[2]s", first, show(a.OpenTo[1]))
	case a.OpenToCount == 2:
		return words.Of("%s and 1 other", first)
	}
	return words.Of("%[1]s and %[2]d others", first, a.OpenToCount-1)
}
