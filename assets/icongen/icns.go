package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
)

// icnsTypes are the entries of a bundle that hold a PNG, by its size in pixels.
// A size with two entries is an icon and the doubled form of a smaller one.
var icnsTypes = []struct {
	name string
	size int
}{
	{"icp4", 16}, {"icp5", 32}, {"icp6", 64}, {"ic07", 128}, {"ic08", 256}, {"ic09", 512}, {"ic10", 1024},
	{"ic11", 32}, {"ic12", 64}, {"ic13", 256}, {"ic14", 512},
}

// writeICNS packs dir/icon-N.png into one file: a header of a name and a length,
// and the same before each picture, all big endian.
func writeICNS(file, dir string) error {
	var body bytes.Buffer
	for _, t := range icnsTypes {
		raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("icon-%d.png", t.size)))
		if err != nil {
			return err
		}
		if c, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil || c.Width != t.size || c.Height != t.size {
			return fmt.Errorf("icon-%d.png is not a PNG of that size", t.size)
		}
		body.WriteString(t.name)
		body.Write(binary.BigEndian.AppendUint32(nil, uint32(8+len(raw))))
		body.Write(raw)
	}
	out := binary.BigEndian.AppendUint32([]byte("icns"), uint32(8+body.Len()))
	return os.WriteFile(file, append(out, body.Bytes()...), 0o644)
}
