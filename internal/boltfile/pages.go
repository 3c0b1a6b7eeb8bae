package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	bolt "go.etcd.io/bbolt"
)

// How bbolt lays out a file, since its first version. A page begins with its number,
// its kind, how many elements it has, and how many pages more belong to it.
const (
	pageHeader   = 16
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	element      = 16 // of a branch: the number of a page is its second half; of a leaf: flags, where, and how long key and value are
	bucketHeader = 16 // of the value that is a bucket: its page, or 0, and then its only page follows; its sequence
	headLength   = 64 // behind the header of pages 0 and 1; the last 8 bytes are a checksum
	noFreelist   = ^uint64(0)
)

// pages are those of one commit.
type pages struct {
	tx   *bolt.Tx
	file *os.File
	size int64  // of a page
	used []bool // by number
}

// checkPages follows every page that is in use and refuses those that are used twice,
// or listed as free: a later commit would write over them.
func checkPages(tx *bolt.Tx, db *bolt.DB, file *os.File) error {
	size := int64(db.Info().PageSize)
	p := &pages{tx: tx, file: file, size: size, used: make([]bool, tx.Size()/size)}
	free := 0
	for id := 2; id < len(p.used); id++ {
		if p.free(id) {
			free++
		}
	}
	if free != db.Stats().FreePageN {
		return errors.New("the list of its free pages is damaged")
	}
	list, err := p.freelist()
	if err != nil {
		return err
	}
	if list != noFreelist {
		if err := p.follow(list, freelistPage, false); err != nil {
			return err
		}
	}
	return p.follow(uint64(tx.Cursor().Bucket().RootPage()), branchPage|leafPage, true)
}

func (p *pages) free(id int) bool {
	info, err := p.tx.Page(id)
	return err == nil && info != nil && info.Type == "free"
}

// freelist is the page that the head of this commit names.
func (p *pages) freelist() (uint64, error) {
	for id := range int64(2) {
		head, err := p.read(id*p.size+pageHeader, headLength)
		if err != nil {
			return 0, err
		}
		sum := fnv.New64a()
		sum.Write(head[:56])
		if binary.NativeEndian.Uint64(head[48:]) == uint64(p.tx.ID()) && binary.NativeEndian.Uint64(head[56:]) == sum.Sum64() {
			return binary.NativeEndian.Uint64(head[32:]), nil
		}
	}
	return 0, errors.New("it has no head")
}

// follow marks a page of one of those kinds, and those below it. In the root bucket those
// of the others are below it, too.
func (p *pages) follow(id uint64, kinds uint16, root bool) error {
	damaged := fmt.Errorf("its page %d is damaged", id)
	if id < 2 || id >= uint64(len(p.used)) {
		return damaged
	}
	offset := int64(id) * p.size
	header, err := p.read(offset, pageHeader)
	if err != nil {
		return err
	}
	kind, elements := binary.NativeEndian.Uint16(header[8:]), int(binary.NativeEndian.Uint16(header[10:]))
	end := id + 1 + uint64(binary.NativeEndian.Uint32(header[12:]))
	if binary.NativeEndian.Uint64(header) != id || kind&kinds == 0 || end > uint64(len(p.used)) {
		return damaged
	}
	for page := id; page < end; page++ {
		if p.used[page] || p.free(int(page)) {
			return damaged
		}
		p.used[page] = true
	}
	if kind != branchPage && !root {
		return nil
	}
	for i := range int64(elements) {
		offset := offset + pageHeader + i*element
		e, err := p.read(offset, element)
		switch {
		case err != nil:
		case kind == branchPage && offset+int64(binary.NativeEndian.Uint32(e))+int64(binary.NativeEndian.Uint32(e[4:])) > int64(end)*p.size:
			return damaged // its key would end behind the page, and a commit copies it
		case kind == branchPage:
			err = p.follow(binary.NativeEndian.Uint64(e[8:]), branchPage|leafPage, root)
		default:
			err = p.followBucket(offset+int64(binary.NativeEndian.Uint32(e[4:]))+int64(binary.NativeEndian.Uint32(e[8:])), int64(binary.NativeEndian.Uint32(e[12:])))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followBucket follows the pages of the bucket whose value is there in the file.
func (p *pages) followBucket(offset, length int64) error {
	header, err := p.read(offset, bucketHeader)
	if err != nil {
		return err
	}
	if id := binary.NativeEndian.Uint64(header); id != 0 {
		return p.follow(id, branchPage|leafPage, false)
	}
	if header, err = p.read(offset+bucketHeader, pageHeader); err != nil {
		return err
	}
	damaged := errors.New("one of its buckets is damaged")
	if binary.NativeEndian.Uint16(header[8:]) != leafPage {
		return damaged
	}
	for i := range int64(binary.NativeEndian.Uint16(header[10:])) {
		within := bucketHeader + pageHeader + i*element
		e, err := p.read(offset+within, element)
		if err != nil {
			return err
		}
		for _, part := range []int{4, 8, 12} { // where the row lies from here, its key, its value
			within += int64(binary.NativeEndian.Uint32(e[part:]))
		}
		if within > length {
			return damaged
		}
	}
	return nil
}

func (p *pages) read(offset int64, length int) ([]byte, error) {
	b := make([]byte, length)
	_, err := p.file.ReadAt(b, offset)
	return b, err
}
