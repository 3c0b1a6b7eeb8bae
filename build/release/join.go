package main

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

const (
	fatAlign = 14 // every part begins at a multiple of 1<<14, the pages of arm64
	maxFat   = 1 << 31
)

// join writes one program for both kinds of Mac, from one for each. Nothing on Linux that
// the module proxy serves does this; what macOS reads is a table in front of the parts.
func join(to string, from []string) error {
	table := []uint32{macho.MagicFat, uint32(len(from))}
	var parts [][]byte
	at := 1 << fatAlign
	for _, path := range from {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		part, err := macho.NewFile(bytes.NewReader(raw))
		if err != nil {
			return fmt.Errorf("%s is no program for a Mac: %w", path, err)
		}
		table = append(table, uint32(part.Cpu), part.SubCpu, uint32(at), uint32(len(raw)), fatAlign)
		parts = append(parts, raw)
		at = (at + len(raw) + 1<<fatAlign - 1) &^ (1<<fatAlign - 1)
	}
	if at > maxFat {
		return errors.New("the parts are too large for one file")
	}
	var out bytes.Buffer
	_ = binary.Write(&out, binary.BigEndian, table) // a Buffer does not fail
	for i, part := range parts {
		out.Write(make([]byte, int(table[2+5*i+2])-out.Len()))
		out.Write(part)
	}
	if _, err := macho.NewFatFile(bytes.NewReader(out.Bytes())); err != nil {
		return fmt.Errorf("what came of joining is no program for a Mac: %w", err)
	}
	return os.WriteFile(to, out.Bytes(), 0o755) //nolint:gosec // a program, for everybody
}
