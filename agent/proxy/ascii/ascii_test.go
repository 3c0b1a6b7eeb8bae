package ascii_test

import (
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/proxy/ascii"
)

// Checked: whatever a name or a value is, each byte at each place of a word, it is judged as
// net/http judges it.
func TestSameAsNetHTTP(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 18 {
			word := []byte("Xy-ab-Cd-efgh-Ijkl")
			word[at] = byte(c)
			for _, s := range []string{string(word), string(word[:at]), string(word[at : at+1])} {
				same(t, s)
			}
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add("x-a")
	f.Add("a/b?")
	f.Add("018446744073709551")
	f.Fuzz(func(t *testing.T, s string) { same(t, s) })
}

func same(t *testing.T, s string) {
	key, ok := ascii.Canonical(s)
	if valid := httpguts.ValidHeaderFieldName(s); ok != valid || valid && key != textproto.CanonicalMIMEHeaderKey(s) {
		t.Fatalf("the name %q is %q, %v", s, key, ok)
	}
	if ascii.ValidValue(s) != httpguts.ValidHeaderFieldValue(s) {
		t.Fatalf("the value %q: %v", s, ascii.ValidValue(s))
	}
	if got, want := ascii.Trim(s), strings.Trim(s, " \t"); got != want {
		t.Fatalf("%q is trimmed to %q", s, got)
	}
	if got, ok := ascii.Target("/" + s); ok {
		if want, err := url.ParseRequestURI("/" + s); err != nil || got != *want {
			t.Fatalf("the target %q is %v: %v", "/"+s, got, err)
		}
	}
	if n, ok := ascii.Length(s); ok && (n < 0 || strings.TrimLeft(s, "0") != strings.TrimLeft(strconv.FormatInt(n, 10), "0")) {
		t.Fatalf("the length %q is %d", s, n)
	}
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
	if ascii.Printable([]byte(s)) != plain {
		t.Fatalf("%q: printable is %v", s, !plain)
	}
}
