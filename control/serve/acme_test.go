package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/certmagic"

	"porchlight/control/certstore"
	"porchlight/control/kv"
	"porchlight/internal/acmeorder"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

// noDatabase is a store whose database does not answer.
type noDatabase struct{ kv.Store }

func (noDatabase) View(context.Context, func(kv.Tx) error) error            { return kv.ErrUnavailable }
func (noDatabase) ViewOf(context.Context, kv.Rows, func(kv.Tx) error) error { return kv.ErrUnavailable }
func (noDatabase) Update(context.Context, func(kv.Tx) error) error          { return kv.ErrUnavailable }

// A node that starts while the database does not answer serves what its sealed copy
// holds, and asks no authority for anything.
func TestSealedCopyServesWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	const host, nowhere = "control.porch.test", "https://127.0.0.1:1/dir"
	dir := t.TempDir()
	ca, err := localca.Open(filepath.Join(dir, "ca"), localca.Options{Names: []string{host}, Log: slog.New(slog.DiscardHandler)})
	programs.Must(t, err)
	certFile, keyFile, sealKey := filepath.Join(dir, "c"), filepath.Join(dir, "k"), filepath.Join(dir, "seal-key")
	leaf := writePair(t, ca, host, certFile, keyFile)
	programs.Got(certstore.MakeKeys(sealKey))(t)
	n := &Node{cfg: Config{DataDir: dir, SealKey: sealKey, ACMEDirectory: nowhere, Log: slog.New(slog.DiscardHandler)}, store: noDatabase{}}
	n.cfg.AuthHost = host
	programs.Must(t, n.openACME(t.Context()))

	magic, cache, err := acmeorder.New(acmeorder.Config{Storage: n.acme.shared, Directory: nowhere})
	programs.Must(t, err)
	issuer := magic.Issuers[0].IssuerKey()
	cache.Stop()
	for key, from := range map[string]string{
		certmagic.StorageKeys.SiteCert(issuer, host):       certFile,
		certmagic.StorageKeys.SitePrivateKey(issuer, host): keyFile,
		certmagic.StorageKeys.SiteMeta(issuer, host):       "",
	} {
		value := []byte(`{"sans":["` + host + `"]}`)
		if from != "" {
			value = programs.Got(os.ReadFile(from))(t)
		}
		programs.Must(t, n.acme.shared.Copy().Store(t.Context(), key, value))
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.acme.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	programs.Eventually(t, "the certificate of the copy", n.acme.has.Load)
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		_ = tls.Server(there, n.acme.config()).HandshakeContext(ctx) // the visitor says how it went
	}()
	visitor := tls.Client(here, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	programs.Must(t, visitor.HandshakeContext(ctx))
	if got := n.acme.ends(); !got.Equal(leaf.NotAfter) {
		t.Errorf("it ends %v, want %v", got, leaf.NotAfter)
	}
	if got := visitor.ConnectionState().PeerCertificates[0]; !got.Equal(leaf) {
		t.Errorf("it serves a certificate of %v", got.Subject)
	}
}
