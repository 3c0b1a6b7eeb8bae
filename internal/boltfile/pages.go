package boltfile

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"

	bolt "go.etcd.io/bbolt"

	"porchlight/internal/words"
)

// Of a page as bbolt lays it out: a header, elements, and the keys and values that they
// point at.
const (
	headerLen  = 16 // number, kind, count of elements, how many more pages belong to it
	elementLen = 16

	branchKind = 0x01
	leafKind   = 0x02
	freeKind   = 0x10

	bucketFlag = 0x01 // of an element of a leaf: the value is a bucket

	metaLen    = 64         // of it
	metaSummed = 56         // and of what its checksum is of
	longList   = 0xffff     // this count stands in front of the list of free pages
	noList     = ^uint64(0) // there is none
)

var (
	u16 = binary.NativeEndian.Uint16
	u32 = binary.NativeEndian.Uint32
	u64 = binary.NativeEndian.Uint64
)

// reader reads all of a database. It takes nothing for granted that the file says of
// itself: bbolt would follow it anywhere. What it accepts, bbolt reads as it was
// written: each page has one place, and each key is where a search for it leads.
type reader struct {
	file  *os.File
	size  int64  // of a page
	taken []bool // whose place is known, of all pages
	buf   []byte

	rows       uint64 // the hashes of all rows, added
	row, check []byte // what sumBucket and checkBucket hold; not nil where there are such
}

// readAll reads what the transaction sees.
func readAll(tx *bolt.Tx, file *os.File) (*reader, error) {
	size := int64(tx.DB().Info().PageSize)
	r := &reader{file: file, size: size, taken: make([]bool, tx.Size()/size)}
	metas := make([]byte, 2*size)
	if _, err := file.ReadAt(metas, 0); err != nil {
		return nil, err
	}
	last := int64(tx.ID() % 2)
	if undone(metas[(1-last)*size+headerLen:], uint64(tx.ID())) {
		return nil, words.Errorf("what was written last cannot be read")
	}
	meta := metas[last*size+headerLen:]
	root, err := r.page(u64(meta[16:]), leafKind|branchKind)
	if err == nil {
		err = r.tree(root, nil, nil, nil)
	}
	if err == nil && u64(meta[32:]) != noList {
		err = r.free(u64(meta[32:]))
	}
	return r, err
}

// undone says whether a page that names a transaction, which is not valid, names one
// after this when one of its bits is another. bbolt then goes by the page before it.
func undone(meta []byte, after uint64) bool {
	meta = bytes.Clone(meta[:metaLen])
	valid := func() bool {
		h := fnv.New64a()
		h.Write(meta[:metaSummed])
		return h.Sum64() == u64(meta[metaSummed:])
	}
	if valid() {
		return false
	}
	for bit := range len(meta) * 8 {
		meta[bit/8] ^= 1 << (bit % 8)
		if valid() && u64(meta[48:]) > after {
			return true
		}
		meta[bit/8] ^= 1 << (bit % 8)
	}
	return false
}

func wrong(page uint64) error {
	return words.Errorf("its page %d is not what it should be", int(page))
}

// page reads a page and those that belong to it.
func (r *reader) page(id uint64, kinds uint16) ([]byte, error) {
	raw := make([]byte, r.size)
	if id < 2 || id >= uint64(len(r.taken)) {
		return nil, wrong(id)
	}
	if _, err := r.file.ReadAt(raw, int64(id)*r.size); err != nil {
		return nil, err
	}
	kind, more := u16(raw[8:]), uint64(u32(raw[12:]))
	if u64(raw) != id || kind&kinds == 0 || kind&(kind-1) != 0 || more >= uint64(len(r.taken))-id {
		return nil, wrong(id)
	}
	for i := id; i <= id+more; i++ {
		if !r.take(i) {
			return nil, wrong(id)
		}
	}
	if more > 0 {
		raw = append(raw, make([]byte, int64(more)*r.size)...)
		if _, err := r.file.ReadAt(raw[r.size:], int64(id+1)*r.size); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// take says of a page that its place is known, which may be so once.
func (r *reader) take(id uint64) bool {
	if id < 2 || id >= uint64(len(r.taken)) || r.taken[id] {
		return false
	}
	r.taken[id] = true
	return true
}

// tree reads a page of a bucket, or of the buckets themselves where the name is nil, and
// those below it. Its keys rise, from first, which bbolt looks for when it changes the
// page, and stay below most; nil is any.
func (r *reader) tree(raw, bucket, first, most []byte) error {
	id, isLeaf, count := u64(raw), u16(raw[8:]) == leafKind, int(u16(raw[10:]))
	if headerLen+count*elementLen > len(raw) || count == 0 && first != nil {
		return wrong(id)
	}
	element := func(i int) (e, key, value []byte) {
		e = raw[headerLen+i*elementLen:]
		at, keyLen, valueLen := uint64(u32(e)), uint64(u32(e[4:])), uint64(0)
		if isLeaf {
			at, keyLen, valueLen = uint64(u32(e[4:])), uint64(u32(e[8:])), uint64(u32(e[12:]))
		}
		if keyLen == 0 || at+keyLen+valueLen > uint64(len(e)) {
			return nil, nil, nil
		}
		return e, e[at : at+keyLen], e[at+keyLen : at+keyLen+valueLen]
	}
	for i := range count {
		e, key, value := element(i)
		next := most
		if i+1 < count {
			_, next, _ = element(i + 1)
		}
		if key == nil || i+1 < count && next == nil || next != nil && bytes.Compare(key, next) >= 0 {
			return wrong(id)
		}
		if i == 0 && first != nil && !bytes.Equal(key, first) {
			return wrong(id)
		}
		var err error
		switch {
		case !isLeaf:
			var below []byte
			if below, err = r.page(u64(e[8:]), leafKind|branchKind); err == nil {
				err = r.tree(below, bucket, key, next)
			}
		case bucket == nil && u32(e) == bucketFlag:
			err = r.bucket(id, key, value)
		case bucket != nil && u32(e) == 0:
			r.add(bucket, key, value)
		default:
			err = wrong(id) // there are no buckets in buckets, and nothing is beside them
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket reads a bucket from what its name points at: where its pages begin and its
// sequence, and where they begin nowhere, a small one without a number of its own.
func (r *reader) bucket(id uint64, name, value []byte) (err error) {
	if len(value) < headerLen {
		return wrong(id)
	}
	first, sequence, raw := u64(value), value[8:headerLen], value[headerLen:]
	if first != 0 {
		raw, err = r.page(first, leafKind|branchKind)
	} else if len(raw) < headerLen || u64(raw) != 0 || u16(raw[8:]) != leafKind || u32(raw[12:]) != 0 {
		err = wrong(id)
	}
	if err != nil {
		return err
	}
	r.add(name, nil, sequence)
	return r.tree(raw, name, nil, nil)
}

// add counts a row in, or keeps what it says of all rows.
func (r *reader) add(bucket, key, value []byte) {
	var kept *[]byte
	switch string(bucket) {
	case sumBucket:
		kept = &r.row
	case checkBucket:
		kept = &r.check
	default:
		var h uint64
		r.buf, h = hash(r.buf, bucket, key, value)
		r.rows += h
		return
	}
	if *kept == nil {
		*kept = []byte{}
	}
	if string(key) == sumKey {
		*kept = value
	}
}

// free reads the list of free pages, in which none may be that is in use.
func (r *reader) free(id uint64) error {
	raw, err := r.page(id, freeKind)
	if err != nil {
		return err
	}
	count, ids := uint64(u16(raw[10:])), raw[headerLen:]
	if count == longList {
		count, ids = u64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return wrong(id)
	}
	for i := range count {
		if !r.take(u64(ids[8*i:])) {
			return wrong(id)
		}
	}
	return nil
}
