package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

var (
	moment  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	files   = []File{{Name: "root.pem", Data: []byte("root")}, {Name: "intermediate-key.pem", Data: []byte("key")}}
	records = []kv.Record{
		{Key: "\x00\xff", Value: []byte("\xc3\x28")},
		{Key: "a", Value: []byte{}},
		{Key: "b", Value: []byte(`{"x":"<&>"}`), Expires: moment.Add(time.Nanosecond)},
		{Key: "c", Value: bytes.Repeat([]byte("v"), kv.MaxValue)},
	}
)

func written(t testing.TB, files []File, records []kv.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w := programs.Got(NewWriter(&b, moment))(t)
	for _, f := range files {
		programs.Must(t, w.File(f))
	}
	for _, r := range records {
		programs.Must(t, w.Row(r))
	}
	n, err := w.Close()
	if err != nil || n != len(records) {
		t.Fatalf("Close: %d, %v", n, err)
	}
	return b.Bytes()
}

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files   []File
		records []kv.Record
	}{{nil, nil}, {files, nil}, {nil, records}, {files, records}} {
		r := programs.Got(NewReader(bytes.NewReader(written(t, c.files, c.records))))(t)
		if !r.At.Equal(moment) {
			t.Errorf("made at %v", r.At)
		}
		if diff := cmp.Diff(c.files, r.Files, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Error(diff)
		}
		var got []kv.Record
		for {
			record, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			programs.Must(t, err)
			got = append(got, record)
		}
		if diff := cmp.Diff(c.records, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Error(diff)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	}
}

// Cut off anywhere, an archive is refused.
func TestHalfAnArchive(t *testing.T) {
	t.Parallel()
	whole := written(t, files, records[:3])
	programs.Must(t, Check(bytes.NewReader(whole)))
	for n := range whole {
		if err := Check(bytes.NewReader(whole[:n])); !errors.Is(err, errDamaged) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func zipped(lines string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, lines)
	z.Close()
	return b.Bytes()
}

func unzipped(t testing.TB, archive []byte) string {
	t.Helper()
	z := programs.Got(gzip.NewReader(bytes.NewReader(archive)))(t)
	b := programs.Got(io.ReadAll(z))(t)
	return string(b)
}

// An archive that was changed, however well-formed, is refused.
func TestChanged(t *testing.T) {
	t.Parallel()
	whole := unzipped(t, written(t, files, records[:3]))
	lines := strings.SplitAfter(whole, "\n")
	without := func(i int) string { return strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "") }
	for what, text := range map[string]string{
		"a line repeated":       lines[0] + whole,
		"a row left out":        without(4),
		"a file left out":       without(1),
		"no end":                strings.Join(lines[:len(lines)-2], ""),
		"something behind":      whole + "{}\n",
		"a value changed":       strings.Replace(whole, `"value":"wyg="`, `"value":"wyk="`, 1),
		"a file's name":         strings.Replace(whole, "root.pem", "../../x", 1),
		"an unknown field":      strings.Replace(whole, `{"row":{`, `{"row":{"more":1,`, 1),
		"a line of two":         strings.Replace(whole, `{"row":`, `{"header":null,"end":{},"row":`, 1),
		"a line without an end": strings.Repeat("x", maxLine+1),
		"another program's":     "{\"header\":{\"format\":\"tar\",\"version\":1}}\n",
		"nothing":               "",
	} {
		if text == whole {
			t.Errorf("%s: the test changes nothing", what)
		}
		if err := Check(bytes.NewReader(zipped(text))); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	newer := strings.Replace(whole, `"version":1`, `"version":2`, 1)
	if err := Check(bytes.NewReader(zipped(newer))); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("of a later version: %v", err)
	}
	if err := Check(strings.NewReader("not gzip")); !errors.Is(err, errDamaged) {
		t.Errorf("not compressed: %v", err)
	}
}

// FuzzReader: whatever is read without complaint, written again reads the same.
func FuzzReader(f *testing.F) {
	f.Add(unzipped(f, written(f, files, records[:3])))
	f.Add("{\"header\":{}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewReader(bytes.NewReader(zipped(text)))
		if err != nil {
			return
		}
		var got []kv.Record
		for {
			record, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
			got = append(got, record)
		}
		again := written(t, r.Files, got)
		programs.Must(t, Check(bytes.NewReader(again)))
	})
}
