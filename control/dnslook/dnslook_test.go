package dnslook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/resolver"
)

var wanted = Wanted{
	Name: "notes.maya.test", Text: "bits", Host: "notes.maya.porch.example", Root: "maya.porch.example", Domain: "porch.example",
}

const (
	text  = `_porchlight.notes.maya.test. 60 IN TXT "bits"`
	alias = "notes.maya.test. 60 IN CNAME notes.maya.porch.example."
	relay = "notes.maya.porch.example. 60 IN A 93.184.216.7"
)

// two are resolvers that say the same.
func two(t *testing.T, lines ...string) (a, b *resolver.Resolver, l *Looker) {
	t.Helper()
	a, b = programs.Got(resolver.New())(t), programs.Got(resolver.New())(t)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	for _, r := range []*resolver.Resolver{a, b} {
		r.Put(lines...)
	}
	return a, b, New([]string{a.Addr(), b.Addr()})
}

func chain(links int, end string) (lines []string) {
	from := "notes.maya.test."
	for i := range links - 1 {
		to := fmt.Sprintf("n%d.maya.test.", i)
		lines = append(lines, from+" 60 IN CNAME "+to)
		from = to
	}
	return append(lines, text, from+" 60 IN CNAME "+end)
}

// Weakness: a name is taken over by records that only look like the owner's: an alias of
// _porchlight, bits of another, a way that ends at a private address, another computer, or
// nowhere. Checked: only the very records count, each with what is told of it.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		lines   []string
		verdict Verdict
		why     controlapi.DomainWhy
	}{
		"both records":               {[]string{text, alias}, Proven, ""},
		"in capitals":                {[]string{`_PORCHLIGHT.notes.maya.test. 60 IN TXT "bits"`, "NOTES.maya.test. 60 IN CNAME Notes.Maya.Porch.Example."}, Proven, ""},
		"eight links":                {chain(8, "notes.maya.porch.example."), Proven, ""},
		"nine links and one":         {chain(10, "notes.maya.porch.example."), Gone, controlapi.DomainLoop},
		"a circle":                   {[]string{text, "notes.maya.test. 60 IN CNAME a.maya.test.", "a.maya.test. 60 IN CNAME notes.maya.test."}, Gone, controlapi.DomainLoop},
		"nothing":                    {nil, Gone, controlapi.DomainNoText},
		"no TXT":                     {[]string{alias}, Gone, controlapi.DomainNoText},
		"another TXT":                {[]string{`_porchlight.notes.maya.test. 60 IN TXT "other"`, alias}, Gone, controlapi.DomainOtherText},
		"one TXT of several":         {[]string{`_porchlight.notes.maya.test. 60 IN TXT "other"`, text, alias}, Proven, ""},
		"TXT in two strings":         {[]string{`_porchlight.notes.maya.test. 60 IN TXT "bi" "ts"`, alias}, Proven, ""},
		"TXT by an alias":            {[]string{"_porchlight.notes.maya.test. 60 IN CNAME evil.test.", `evil.test. 60 IN TXT "bits"`, alias}, Gone, controlapi.DomainNoText},
		"TXT at the name itself":     {[]string{`notes.maya.test. 60 IN TXT "bits"`, relay}, Gone, controlapi.DomainNoText},
		"nothing at the name":        {[]string{text}, Gone, controlapi.DomainNoName},
		"a stranger":                 {[]string{text, "notes.maya.test. 60 IN CNAME evil.test.", "evil.test. 60 IN A 93.184.216.8", relay}, Gone, controlapi.DomainOtherName},
		"a stranger, and no TXT":     {[]string{"notes.maya.test. 60 IN CNAME evil.test.", "evil.test. 60 IN A 93.184.216.8", relay}, Gone, controlapi.DomainOtherName},
		"another app":                {[]string{text, "notes.maya.test. 60 IN CNAME photos.maya.porch.example."}, Gone, controlapi.DomainOtherName},
		"the computer":               {[]string{text, "notes.maya.test. 60 IN CNAME maya.porch.example."}, Gone, controlapi.DomainOtherName},
		"another computer":           {[]string{text, "notes.maya.test. 60 IN CNAME notes.anna.porch.example."}, Elsewhere, controlapi.DomainOtherOfOurs},
		"another computer, no TXT":   {[]string{"notes.maya.test. 60 IN CNAME notes.anna.porch.example."}, Elsewhere, controlapi.DomainOtherOfOurs},
		"the relay's address":        {[]string{text, "notes.maya.test. 60 IN A 93.184.216.7", relay}, Proven, ""},
		"that and another":           {[]string{text, "notes.maya.test. 60 IN A 93.184.216.7", "notes.maya.test. 60 IN A 93.184.216.8", relay}, Gone, controlapi.DomainOtherName},
		"a private address":          {[]string{text, "notes.maya.test. 60 IN A 10.0.0.1", "notes.maya.porch.example. 60 IN A 10.0.0.1"}, Gone, controlapi.DomainPrivate},
		"a private address and ours": {[]string{text, "notes.maya.test. 60 IN A 10.0.0.1", "notes.maya.test. 60 IN A 93.184.216.7", relay}, Gone, controlapi.DomainPrivate},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, _, l := two(t, c.lines...)
			if got := l.Look(t.Context(), wanted); got.Verdict != c.verdict || got.Why != c.why {
				t.Errorf("got %+v, want %s %s", got, c.verdict, c.why)
			}
		})
	}
}

// Resolvers that lie, fail, are silent and disagree bring no verdict.
func TestNoVerdict(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		break_ func(r *resolver.Resolver)
		why    controlapi.DomainWhy
	}{
		"it lies that nothing is there":    {func(r *resolver.Resolver) { r.Drop("notes.maya.test", "_porchlight.notes.maya.test") }, controlapi.DomainDisagree},
		"it lies that another computer is": {func(r *resolver.Resolver) { r.Put("notes.maya.test. 60 IN CNAME notes.anna.porch.example.") }, controlapi.DomainDisagree},
		"it fails, as for a forged record": {func(r *resolver.Resolver) { r.Fail(dns.RcodeServerFailure) }, controlapi.DomainNoAnswer},
		"it is silent":                     {func(r *resolver.Resolver) { r.Silence(true) }, controlapi.DomainNoAnswer},
		"it refuses":                       {func(r *resolver.Resolver) { r.Fail(dns.RcodeRefused) }, controlapi.DomainNoAnswer},
		"it is away":                       {func(r *resolver.Resolver) { r.Close() }, controlapi.DomainNoAnswer},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, b, l := two(t, text, alias)
			c.break_(b)
			if got := l.Look(t.Context(), wanted); got.Verdict != Unsure || got.Why != c.why {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := together([]Found{{Verdict: Proven}}); got.Verdict != Unsure {
		t.Errorf("one alone says %+v", got)
	}
	stray, none := Found{Verdict: Gone, Why: controlapi.DomainOtherName}, Found{Verdict: Gone, Why: controlapi.DomainNoName}
	for _, said := range [][]Found{{stray, none}, {none, stray}} {
		if got := together(said); got.Verdict != Gone || got.Why != none.Why {
			t.Errorf("one alone says that it leads to a stranger: %+v", got)
		}
	}
}

// A TXT of 64 KiB beside ours is read, and nothing more than that.
func TestALongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(` "`+strings.Repeat("x", 250)+`"`, 240)
	_, _, l := two(t, "_porchlight.notes.maya.test. 60 IN TXT"+long, text, alias)
	if got := l.Look(t.Context(), wanted); got.Verdict != Proven {
		t.Errorf("got %+v", got)
	}
}

func TestAuthorities(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		lines []string
		want  string
	}{
		"none":               {nil, "<all>"},
		"of the name":        {[]string{alias, `notes.maya.porch.example. 60 IN CAA 0 issue "letsencrypt.org; accounturi=x"`}, "[letsencrypt.org]"},
		"of a zone above":    {[]string{alias, relay, `maya.test. 60 IN CAA 0 issue "ca.example"`}, "[ca.example]"},
		"nobody":             {[]string{alias, relay, `test. 60 IN CAA 0 issue ";"`}, "[]"},
		"no word of issue":   {[]string{alias, relay, `maya.test. 60 IN CAA 0 iodef "mailto:x@maya.test"`, `test. 60 IN CAA 0 issue ";"`}, "<all>"},
		"a critical unknown": {[]string{alias, relay, `maya.test. 60 IN CAA 128 later "x"`}, "[]"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, _, l := two(t, append(c.lines, text)...)
			got := "<all>"
			if caa := l.Look(t.Context(), wanted).CAA; caa != nil {
				got = fmt.Sprint(caa)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
