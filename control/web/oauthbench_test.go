package web

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// Refresh rotations a second through HTTP without TLS, by clients that each hold
// a grant of their own among many others', on both stores; PostgreSQL waits for
// the disk at every commit, as bolt does.
func BenchmarkRefresh(b *testing.B) {
	server := programs.Got(pgtest.Start(pgtest.Options{Durable: true}))(b)
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
	})
	for _, store := range []struct {
		name string
		open func(testing.TB) *rig
	}{
		{"bolt", stores["bolt"]},
		{"postgres", func(b testing.TB) *rig { return newRigOn(b, openStore(b, server.Database(b))) }},
	} {
		for _, clients := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d_clients", store.name, clients), func(b *testing.B) {
				benchmarkRefresh(b, store.open(b), clients)
			})
		}
	}
}

// otherGrants is how many rows the clients' grants are scattered among.
const otherGrants = 50_000

func benchmarkRefresh(b *testing.B, r *rig, clients int) {
	row := []byte(`{"id":"` + strings.Repeat("x", 500) + `"}`)
	for done := 0; done < otherGrants; done += 1000 {
		err := r.store.Update(b.Context(), func(tx kv.Tx) error {
			for range 1000 {
				if err := tx.Put("grant/"+strings.ToLower(rand.Text()), row, time.Hour); err != nil {
					return err
				}
			}
			return nil
		})
		programs.Must(b, err)
	}
	server := httptest.NewServer(New(r.svc, Config{}))
	defer server.Close()
	c := r.remote(0)
	tokens := make([]string, clients)
	for i := range tokens {
		short := "home-" + strconv.Itoa(i)
		home := must(r.svc.Computers.Ensure(b.Context(), short+"@example.com", short))
		a := control.Authorization{ClientID: c.client.ID, RedirectURI: clientRedirect, Challenge: challenge()}
		code := must(r.svc.Grants.Authorize(b.Context(), a, control.Account{ID: home.AccountID}, short))
		cred := control.Credentials{ID: c.client.ID, Secret: c.config.ClientSecret}
		tokens[i] = must(r.svc.Grants.Exchange(b.Context(), cred, control.Exchange{Code: code, RedirectURI: clientRedirect, Verifier: verifier})).Refresh
	}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	refresh := func(token string) (next string, err error) {
		body := url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {token},
			"client_id": {c.client.ID}, "client_secret": {c.config.ClientSecret},
		}
		resp, err := (&http.Client{Transport: transport}).Post(server.URL+controlapi.PathToken,
			"application/x-www-form-urlencoded", strings.NewReader(body.Encode()))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var out tokenAnswer
		err = json.NewDecoder(resp.Body).Decode(&out)
		return out.RefreshToken, err
	}
	work := make(chan struct{})
	took := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range clients {
		wg.Go(func() {
			for range work {
				began := time.Now()
				next, err := refresh(tokens[i])
				if err != nil || next == "" {
					b.Errorf("refresh: %q, %v", next, err)
					continue
				}
				tokens[i] = next
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "refreshes/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}
