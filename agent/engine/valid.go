package engine

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
)

// maxLabel is the longest label, in characters.
const maxLabel = 100

// checkName refuses names that can never be an app's.
func checkName(name string, root Root) error {
	if !controlapi.ValidLabel(name) {
		return agentapi.Errorf(agentapi.CodeInvalid,
			"An app's name has 1 to 63 characters: lower-case letters a to z, digits and hyphens. It becomes the first part of its address.")
	}
	if controlapi.Reserved(name) || name == root.Name {
		return agentapi.Errorf(agentapi.CodeInvalid, "The name %q is reserved. Choose another one.", name)
	}
	return nil
}

// cleanLabel returns the label as it is kept: composed, without white space
// around it. It refuses what could not be shown to the owner as it is.
func cleanLabel(label string) (string, error) {
	if !utf8.ValidString(label) {
		return "", agentapi.Errorf(agentapi.CodeInvalid, "The label is not valid UTF-8 text.")
	}
	label = strings.TrimSpace(norm.NFC.String(label))
	switch n := utf8.RuneCountInString(label); {
	case n == 0:
		return "", agentapi.Errorf(agentapi.CodeInvalid, "The label is empty. It is the name people see, for example \"Notes\".")
	case n > maxLabel:
		return "", agentapi.Errorf(agentapi.CodeInvalid, "The label has %d characters; %d is the most.", n, maxLabel)
	}
	seen := false
	for _, r := range label {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || steersText(r) {
			return "", agentapi.Errorf(agentapi.CodeInvalid, "The label contains characters that control how text is shown. Leave them out.")
		}
		seen = seen || unicode.IsGraphic(r) && !unicode.IsSpace(r) && !invisible(r) && !blank(r)
	}
	if !seen {
		return "", agentapi.Errorf(agentapi.CodeInvalid, "The label has nothing that can be seen.")
	}
	return label, nil
}

// maxClaim is the longest name that a coding agent may give itself, in characters.
const maxClaim = 40

// cleanClaim is what a coding agent calls itself as the owner may read it: a few plain
// letters on one line, that end no quotation. It is empty only where nothing was claimed.
func cleanClaim(name string) string {
	if name == "" {
		return ""
	}
	clean := []rune(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.M, unicode.Nd) || strings.ContainsRune(" -_.+/@", r) {
			return r
		}
		return '?'
	}, visible(name)))
	if len(clean) > maxClaim {
		clean = append(clean[:maxClaim-1], '…')
	}
	return cmp.Or(string(clean), "?")
}

// steersText is true for characters that change the direction of the text
// around them, with which a label could pass for another.
func steersText(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}

// foldLabel is a label as people see it, for comparing: without case, and without
// what is invisible between the letters.
func foldLabel(label string) string { return cases.Fold().String(visible(label)) }

var numbers = regexp.MustCompile(`[0-9]+`)

// orderOf is what labels are sorted by, in menu, window and terminal alike: without case
// and accents, and numbers as numbers, so that "Notes 8" stands before "Notes 16".
func orderOf(label string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(foldLabel(label)))
	return numbers.ReplaceAllStringFunc(letters, func(n string) string { return strings.Repeat("0", max(0, maxLabel-len(n))) + n })
}

// visible is a label without what is invisible, with one space where there is any.
func visible(label string) string {
	seen := strings.Map(func(r rune) rune {
		switch {
		case blank(r):
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, label)
	return strings.Join(strings.Fields(norm.NFKC.String(seen)), " ")
}

// blank is true for characters that count as letters or signs and show nothing:
// the Hangul fillers and the empty Braille cell.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return false
}

// invisible is true for characters that leave neither ink nor room.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

func checkPort(port int, own []int) error {
	if port < 1 || port > 65535 {
		return agentapi.Errorf(agentapi.CodeInvalid, "The local port must be a whole number from 1 to 65535.")
	}
	if slices.Contains(own, port) {
		return agentapi.Errorf(agentapi.CodeInvalid, "Port %d is Porchlight's own and cannot be published.", port)
	}
	return nil
}
