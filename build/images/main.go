// Command images packs static programs into images that hold nothing else: the program, the
// certificates of public authorities, and a folder for data. No container engine is needed,
// and the same programs make the same images, byte for byte.
//
//	go run . PROGRAMS OUT VERSION SECONDS
//
// PROGRAMS has a folder for each architecture (amd64, arm64) with porchlight and
// porchlight-control; OUT gets for each program an OCI layout of all architectures, and an
// archive of each that `podman load` and `docker load` take. SECONDS is the time written into
// all of it.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user that an image's program runs as.
const nobody = 65532

// program is what an image is made of.
type program struct {
	name, title string
	command     []string
	env         []string
	ports       []string
	most        int64 // bytes of the compressed image; 0 for no bound
}

var programs = []program{
	{
		name: "porchlight-control", title: "Porchlight control plane and relay",
		command: []string{"serve"},
		env:     []string{"PORCHLIGHT_CONTROL_DATA=/data", "PORCHLIGHT_CONTROL_LISTEN=:8443", "PORCHLIGHT_CONTROL_PUBLIC_PORT=443"},
		ports:   []string{"8443/tcp"},
		most:    20 << 20,
	},
	{
		name: "porchlight", title: "Porchlight agent",
		command: []string{"agent"},
		// Secrets are kept apart from the data, which their owner may copy elsewhere.
		env: []string{"PORCHLIGHT_DATA=/data/computer", "XDG_CONFIG_HOME=/data/config"},
	},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: images PROGRAMS OUT VERSION SECONDS")
	}
	seconds, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := p.pack(args[0], args[1], args[2], time.Unix(seconds, 0).UTC()); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (p program) pack(from, out, version string, at time.Time) error {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		binary, err := os.ReadFile(filepath.Join(from, arch, p.name))
		if err != nil {
			return err
		}
		image, err := p.image(binary, arch, version, at)
		if err != nil {
			return err
		}
		size, err := sizeOf(image)
		if err != nil {
			return err
		}
		fmt.Printf("%s for %s: %.1f MB compressed\n", p.name, arch, float64(size)/1e6)
		if p.most > 0 && size > p.most {
			return fmt.Errorf("more than %d bytes", p.most)
		}
		// One name alone: of several the order in the archive is another each time.
		tag, err := name.NewTag("localhost/" + p.name + ":latest")
		if err != nil {
			return err
		}
		if err := tarball.WriteToFile(filepath.Join(out, fmt.Sprintf("%s_%s_%s.tar", p.name, version, arch)), tag, image); err != nil {
			return err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	dir := filepath.Join(out, p.name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_, err := layout.Write(dir, all)
	return err
}

// image is a program's for one architecture.
func (p program) image(binary []byte, arch, version string, at time.Time) (v1.Image, error) {
	layer, err := p.layer(binary, at)
	if err != nil {
		return nil, err
	}
	file := &v1.ConfigFile{
		Architecture: arch, OS: "linux", Created: v1.Time{Time: at},
		Config: v1.Config{
			User: fmt.Sprintf("%d:%d", nobody, nobody), WorkingDir: "/data", Env: p.env,
			Entrypoint: []string{"/" + p.name}, Cmd: p.command, StopSignal: "SIGTERM",
			Volumes: map[string]struct{}{"/data": {}}, ExposedPorts: map[string]struct{}{},
			Labels: map[string]string{"org.opencontainers.image.title": p.title, "org.opencontainers.image.version": version},
		},
	}
	for _, port := range p.ports {
		file.Config.ExposedPorts[port] = struct{}{}
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "porchlight/build/images"},
	})
}

// layer is all files of an image.
func (p program) layer(binary []byte, at time.Time) (v1.Layer, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	add := func(h tar.Header, content []byte) error {
		h.Size, h.ModTime, h.Format = int64(len(content)), at, tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // one that counts for some certificates only, which a file cannot say
		}
		if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		tar.Header
		content []byte
	}{
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, fmt.Appendf(nil, "root:x:0:0::/:/\nporchlight:x:%d:%d::/data:/\n", nobody, nobody)},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/ssl/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/ssl/certs/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeReg, Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, authorities.Bytes()},
		{tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o700, Uid: nobody, Gid: nobody}, nil},
		{tar.Header{Typeflag: tar.TypeReg, Name: p.name, Mode: 0o755}, binary},
	} {
		if err := add(f.Header, f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
}

// sizeOf is what is fetched of an image.
func sizeOf(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}
