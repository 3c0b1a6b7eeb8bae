package main

import (
	"bytes"
	"crypto/ed25519"
	"debug/macho"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/update"
	"porchlight/test/programs"
)

// TestSeal: minisign itself takes the signature, and refuses it for anything else; the
// notice beside it is of that version and expires.
func TestSeal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Fatal("minisign is not here: run build/setup.sh test")
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	programs.Must(t, run([]string{"key", in("key")}))
	if info, err := os.Stat(in("key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info, err)
	}
	if run([]string{"key", in("key")}) == nil {
		t.Error("a key was replaced")
	}
	programs.Must(t, os.WriteFile(in(sumsFile), []byte("00  porchlight_1.2.3_linux_amd64\n"), 0o600))
	programs.Must(t, run([]string{"seal", in("key"), "1.2.3", dir}))
	verify := func() (string, error) {
		out, err := exec.Command("minisign", "-Vm", in(sumsFile), "-p", in(publicFile)).CombinedOutput()
		return string(out), err
	}
	if out, err := verify(); err != nil || !strings.Contains(out, "Trusted comment: porchlight 1.2.3\n") {
		t.Errorf("minisign says %v: %s", err, out)
	}
	sealed := programs.Got(os.ReadFile(in(sealFile)))(t)
	programs.Must(t, os.WriteFile(in(sealFile), bytes.Replace(sealed, []byte("porchlight 1.2.3"), []byte("porchlight 1.9.3"), 1), 0o600))
	if out, err := verify(); err == nil {
		t.Errorf("another version is taken: %s", out)
	}
	programs.Must(t, os.WriteFile(in(sealFile), sealed, 0o600))
	programs.Must(t, os.WriteFile(in(sumsFile), []byte("01  porchlight_1.2.3_linux_amd64\n"), 0o600))
	if out, err := verify(); err == nil {
		t.Errorf("other sums are taken: %s", out)
	}

	var file struct{ Manifest []byte }
	programs.Must(t, json.Unmarshal(programs.Got(os.ReadFile(in(noticeFile)))(t), &file))
	var m update.Manifest
	programs.Must(t, json.Unmarshal(file.Manifest, &m))
	if m.Version != "1.2.3" || m.Expires.Sub(m.Date) != noticeDays*24*time.Hour {
		t.Errorf("the notice says %+v", m)
	}
}

// TestPublicHalf: the key as update notices name it and as minisign does is the same.
func TestPublicHalf(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := key.Public().(ed25519.PublicKey)
	line := strings.Split(string(minisignPublic(public)), "\n")[1]
	if raw := programs.Got(base64.StdEncoding.DecodeString(line))(t); !bytes.Equal(raw[len(raw)-ed25519.PublicKeySize:], public) || !strings.HasPrefix(line, "RW") {
		t.Errorf("minisign's is %s", line)
	}
}

// TestJoin: what macOS reads of a joined program are the two it was made of.
func TestJoin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var from []string
	var parts [][]byte
	for i, cpu := range []macho.Cpu{macho.CpuAmd64, macho.CpuArm64} {
		var part bytes.Buffer
		programs.Must(t, binary.Write(&part, binary.LittleEndian, macho.FileHeader{Magic: macho.Magic64, Cpu: cpu, SubCpu: uint32(3 * (1 - i)), Type: macho.TypeExec}))
		part.Write(make([]byte, 4)) // reserved
		part.Write(bytes.Repeat([]byte{byte('a' + i)}, 20_000*(i+1)))
		from = append(from, filepath.Join(dir, cpu.String()))
		parts = append(parts, part.Bytes())
		programs.Must(t, os.WriteFile(from[i], part.Bytes(), 0o600))
	}
	to := filepath.Join(dir, "universal")
	programs.Must(t, run(append([]string{"join", to}, from...)))
	raw := programs.Got(os.ReadFile(to))(t)
	fat := programs.Got(macho.NewFatFile(bytes.NewReader(raw)))(t)
	if len(fat.Arches) != 2 {
		t.Fatalf("it holds %d", len(fat.Arches))
	}
	for i, arch := range fat.Arches {
		if got := raw[arch.Offset : arch.Offset+arch.Size]; !bytes.Equal(got, parts[i]) || arch.Offset%(1<<fatAlign) != 0 {
			t.Errorf("%v at %d are other bytes", arch.Cpu, arch.Offset)
		}
	}
	programs.Must(t, os.WriteFile(from[1], []byte("\x7fELF"), 0o600))
	if run(append([]string{"join", to}, from...)) == nil {
		t.Error("a program for Linux was joined")
	}
}
