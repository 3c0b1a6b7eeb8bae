package http2

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"porchlight/agent/proxy/limits"
)

// decoded is what comes of whole blocks one after the other on a connection.
func decoded(blocks [][]byte) (fields []hpack.HeaderField, failed int) {
	decoder := hpack.NewDecoder(limits.HeaderTable, func(f hpack.HeaderField) { fields = append(fields, f) })
	decoder.SetMaxStringLength(limits.String)
	for i, block := range blocks {
		if _, err := decoder.Write(bytes.Clone(block)); err != nil {
			return fields, i + 1
		}
		if decoder.Close() != nil {
			return fields, i + 1
		}
	}
	return fields, 0
}

// decodedInParts is decoded of blocks that come in parts of n bytes.
func decodedInParts(blocks [][]byte, n int) (fields []hpack.HeaderField, failed int) {
	h := head{decoder: hpack.NewDecoder(limits.HeaderTable, func(f hpack.HeaderField) { fields = append(fields, f) })}
	h.decoder.SetMaxStringLength(limits.String)
	for i, block := range blocks {
		h.decoder.SetEmitEnabled(true)
		for len(block) > n {
			part := bytes.Clone(block[:n])
			if block = block[n:]; !h.decode(part, false) {
				return fields, i + 1
			}
			clear(part) // the next frame is read into its place
		}
		if !h.decode(bytes.Clone(block), true) || h.decoder.Close() != nil {
			return fields, i + 1
		}
		h.letGo()
	}
	return fields, 0
}

// FuzzParts holds that a connection reads the same of blocks that come in parts as of
// whole ones.
func FuzzParts(f *testing.F) {
	token := func(name, value string) []byte {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		_ = e.WriteField(hpack.HeaderField{Name: ":path", Value: "/" + strings.Repeat("a", 80)})
		_ = e.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: true})
		_ = e.WriteField(hpack.HeaderField{Name: "x-after", Value: "it"})
		return b.Bytes()
	}
	long := "Bearer " + strings.Repeat("eyJhbGciOiJFZERTQSJ9", 12)
	first := token("authorization", long)
	f.Add(first, token("authorization", long+"x"))
	f.Add(first, token("x-a-name-of-its-own", long))
	f.Add(token("authorization", strings.Repeat("a", 1200)), token("authorization", strings.Repeat("a", 3000)))
	broken := bytes.Clone(first)
	broken[len(broken)-30] ^= 0xff
	f.Add(first, broken)
	f.Add(first, first[:len(first)-20])
	f.Add(append([]byte{0x3f, 0xe1, 0x1f}, first...), []byte{0x10, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte("\x5f\x03abc\x5f\x04abcd"), first) // an index of 31, which needs six bits
	f.Add([]byte("\x0f\x08\xff\x00"+strings.Repeat("\xff", 127)), first)
	f.Add([]byte("\x00\x7f\x82\x80\x80\x80\x80\x00x\x01y"), []byte("\x00\x01x\x7f\x80\x80\x80\x80\x80\x80\x80\x80\x7f"))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		blocks := [][]byte{one, one, one, other, one, other, other, other, one}
		want, wantFailed := decoded(blocks)
		for _, n := range []int{1, 7, 1 + len(other)/2} {
			got, failed := decodedInParts(blocks, n)
			if failed != wantFailed || !slices.Equal(got, want) {
				t.Errorf("in parts of %d, %q (failed at %d)\nwhole %q (failed at %d)", n, got, failed, want, wantFailed)
			}
		}
	})
}
