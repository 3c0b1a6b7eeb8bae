package containers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"porchlight/test/programs"
)

// makePostgres makes the image of the database, where it is not there yet.
func makePostgres(t *testing.T) {
	t.Helper()
	made := exec.Command("./postgres.sh")
	made.Stderr = os.Stderr
	programs.Must(t, made.Run())
}

// postgres has compose use the image of the database.
func (e *engine) postgres() (env []string) {
	e.t.Helper()
	makePostgres(e.t)
	e.podman("load", "--input", filepath.Join("..", "..", "out", "postgres.tar"))
	return []string{"POSTGRES_IMAGE=localhost/postgres:test", "POSTGRES_PASSWORD=porchlight"}
}

// certificate makes one of the auth host, which stands for itself, into a folder for compose.
func (e *engine) certificate(dir string) (authority string) {
	t := e.t
	t.Helper()
	key := programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"control.porch.localhost"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der := programs.Got(x509.CreateCertificate(rand.Reader, of, of, key.Public(), key))(t)
	private := programs.Got(x509.MarshalPKCS8PrivateKey(key))(t)
	authority = filepath.Join(dir, "cert.pem")
	programs.Must(t,
		os.MkdirAll(dir, 0o755),
		os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
	give := []string{"chown", "65532:65532", filepath.Join(dir, "key.pem")}
	if os.Getuid() != 0 {
		give = append([]string{"podman", "unshare"}, give...)
	}
	programs.Got(e.try(give[0], give[1:]...))(t)
	return authority
}
