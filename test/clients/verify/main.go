// Command verify is an app that believes who is there by X-Service-Token alone, as
// docs/writing-an-app.md has it. ADDRESS is its own, https://NAME.HOST; it listens on PORT.
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

type claims struct {
	Email string `json:"email"`
	Role  string `json:"role"`
	jwt.RegisteredClaims
}

// keySet is what is known of the keys at an address.
type keySet struct {
	url  string
	mu   sync.Mutex
	last time.Time // looked
	keys map[string]ed25519.PublicKey
}

// of finds the key that a token names. For one it does not know it looks again, at most
// once a minute.
func (s *keySet) of(t *jwt.Token) (any, error) {
	if t.Header["typ"] != "porchlight-id+jwt" {
		return nil, errors.New("it is a token for something else")
	}
	id, _ := t.Header["kid"].(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[id] == nil && time.Since(s.last) > time.Minute {
		s.last = time.Now()
		if err := s.fetch(); err != nil {
			return nil, err
		}
	}
	if s.keys[id] == nil {
		return nil, errors.New("its key is not known")
	}
	return s.keys[id], nil
}

func (s *keySet) fetch() error {
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(s.url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var set struct{ Keys []struct{ Kid, X string } }
	if err := json.NewDecoder(res.Body).Decode(&set); err != nil {
		return err
	}
	s.keys = map[string]ed25519.PublicKey{}
	for _, k := range set.Keys {
		if x, err := base64.RawURLEncoding.DecodeString(k.X); err == nil && len(x) == ed25519.PublicKeySize {
			s.keys[k.Kid] = x
		}
	}
	return nil
}

func main() {
	address := os.Getenv("ADDRESS")
	_, root, _ := strings.Cut(address, ".")
	keys := &keySet{url: address + "/.porchlight/jwks.json"}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var who claims
		_, err := jwt.ParseWithClaims(r.Header.Get("X-Service-Token"), &who, keys.of, jwt.WithValidMethods([]string{"EdDSA"}),
			jwt.WithIssuer("https://"+root), jwt.WithAudience(address), jwt.WithExpirationRequired())
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "%s %s %s", who.Subject, who.Email, who.Role)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
