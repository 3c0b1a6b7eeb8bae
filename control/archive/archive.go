// Package archive is the file a control plane is backed up to and moved by.
//
// It is gzip around lines of JSON: a header, files, rows in key order, and an
// end that says how much there was and what it hashed to. A file without its
// end is half a file, whatever the reason, and Reader says so; nothing of an
// archive should be used before it has been read to its end once (Check).
//
// An archive holds everything its control plane knows, the signing key
// included. It is not encrypted.
package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"porchlight/control/kv"
)

const (
	format  = "porchlight-control"
	version = 1

	// maxFile bounds a file, in bytes, and maxFiles how many there are.
	maxFile  = 1 << 20
	maxFiles = 16
	// maxLine has room for the largest value in base64, with its key.
	maxLine = 2 << 20
)

// errDamaged is wrapped by Reader for what is no archive, or not a whole one.
var errDamaged = errors.New("the file is damaged, or is no backup of a Porchlight control plane")

// line is one line; exactly one field is set.
type line struct {
	Header *header `json:"header,omitempty"`
	File   *File   `json:"file,omitempty"`
	Row    *row    `json:"row,omitempty"`
	End    *end    `json:"end,omitempty"`
}

type header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	At      time.Time `json:"at"`
}

// File is a small file beside the rows, of the certificate authority.
type File struct {
	Name string `json:"name"` // a single path element
	Data []byte `json:"data"`
}

type row struct {
	Key     []byte     `json:"key"`
	Value   []byte     `json:"value"`
	Expires *time.Time `json:"expires,omitempty"`
}

type end struct {
	Files  int    `json:"files"`
	Rows   int    `json:"rows"`
	SHA256 string `json:"sha256"` // of every byte before this line, in hex
}

// Writer writes one archive.
type Writer struct {
	zip   *gzip.Writer
	sum   hash.Hash
	count end
}

// NewWriter begins an archive made at a time.
func NewWriter(w io.Writer, at time.Time) (*Writer, error) {
	a := &Writer{zip: gzip.NewWriter(w), sum: sha256.New()}
	return a, a.put(line{Header: &header{Format: format, Version: version, At: at.UTC()}})
}

func (w *Writer) put(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode the archive: %w", err)
	}
	b = append(b, '\n')
	w.sum.Write(b)
	_, err = w.zip.Write(b)
	return err
}

// File writes a file; all of them come before the rows.
func (w *Writer) File(f File) error {
	if w.count.Rows > 0 || w.count.Files == maxFiles || !validFile(f) {
		return fmt.Errorf("archive: the file %q cannot be written", f.Name)
	}
	w.count.Files++
	return w.put(line{File: &f})
}

// Row writes a row; keys rise.
func (w *Writer) Row(r kv.Record) error {
	out := row{Key: []byte(r.Key), Value: r.Value}
	if !r.Expires.IsZero() {
		at := r.Expires.UTC()
		out.Expires = &at
	}
	w.count.Rows++
	return w.put(line{Row: &out})
}

// Close writes the end and says how many rows there were. An archive that is
// not closed cannot be read.
func (w *Writer) Close() (rows int, err error) {
	e := w.count
	e.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	return e.Rows, errors.Join(w.put(line{End: &e}), w.zip.Close())
}

// Reader reads one archive.
type Reader struct {
	At    time.Time // when it was made
	Files []File

	lines *bufio.Reader
	sum   hash.Hash
	count end
	row   *row  // read ahead
	err   error // what every later Next returns
}

// NewReader reads the header and the files. The error wraps errDamaged, or is
// r's.
func NewReader(r io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, damaged(err)
	}
	a := &Reader{lines: bufio.NewReaderSize(zip, 64<<10), sum: sha256.New()}
	first, err := a.readLine()
	switch {
	case err != nil:
		return nil, err
	case first.Header == nil || first.Header.Format != format:
		return nil, damaged(errors.New("it does not begin as one"))
	case first.Header.Version != version:
		return nil, fmt.Errorf("the backup was made by another version of this program (format %d, this one reads %d)", first.Header.Version, version)
	}
	a.At = first.Header.At
	for {
		l, err := a.readLine()
		if err != nil {
			return nil, err
		}
		switch {
		case l.File != nil:
			if a.count.Files++; a.count.Files > maxFiles || !validFile(*l.File) {
				return nil, damaged(errors.New("it holds a file it should not"))
			}
			a.Files = append(a.Files, *l.File)
			continue
		case l.Row != nil:
			a.row = l.Row
		case l.End != nil:
			a.err = a.finish(*l.End)
		default:
			return nil, damaged(errors.New("it holds two headers"))
		}
		return a, nil
	}
}

// Next returns the rows and then io.EOF, once the end has been found to be
// right. Other errors wrap errDamaged, or are the underlying reader's.
func (a *Reader) Next() (kv.Record, error) {
	if a.err != nil {
		return kv.Record{}, a.err
	}
	r := a.row
	a.count.Rows++
	a.row = nil
	a.err = a.ahead()
	record := kv.Record{Key: string(r.Key), Value: r.Value}
	if r.Expires != nil {
		record.Expires = *r.Expires
	}
	return record, nil
}

func (a *Reader) ahead() error {
	l, err := a.readLine()
	switch {
	case err != nil:
		return err
	case l.Row != nil:
		a.row = l.Row
		return nil
	case l.End != nil:
		return a.finish(*l.End)
	}
	return damaged(errors.New("its parts are out of order"))
}

// finish compares what was read with the end, behind which nothing may follow.
func (a *Reader) finish(e end) error {
	if e != a.count {
		return damaged(errors.New("its parts do not add up"))
	}
	if _, err := a.lines.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged(errors.New("something follows its end"))
	}
	return io.EOF
}

// readLine reads one line. The hash it leaves in a.count is that of everything
// before this line.
func (a *Reader) readLine() (line, error) {
	a.count.SHA256 = hex.EncodeToString(a.sum.Sum(nil))
	var raw []byte
	for {
		part, err := a.lines.ReadSlice('\n')
		raw = append(raw, part...)
		if len(raw) > maxLine {
			return line{}, damaged(errors.New("a line is too long"))
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) { // not to be taken for Next's own
			return line{}, damaged(errors.New("it ends early"))
		}
		if err != nil {
			return line{}, damaged(err)
		}
		break
	}
	a.sum.Write(raw)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var l line
	if err := dec.Decode(&l); err != nil {
		return line{}, damaged(err)
	}
	set := 0
	for _, is := range []bool{l.Header != nil, l.File != nil, l.Row != nil, l.End != nil} {
		if is {
			set++
		}
	}
	if set != 1 || dec.More() {
		return line{}, damaged(errors.New("a line is not what it should be"))
	}
	return l, nil
}

// Check reads r to its end and reports the first thing that is wrong.
func Check(r io.Reader) error {
	a, err := NewReader(r)
	if err != nil {
		return err
	}
	for {
		if _, err := a.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func validFile(f File) bool {
	return f.Name != "" && len(f.Name) < 100 && len(f.Data) <= maxFile && f.Name[0] != '.' &&
		!strings.ContainsFunc(f.Name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.')
		})
}

func damaged(err error) error { return fmt.Errorf("%w: %w", errDamaged, err) }
