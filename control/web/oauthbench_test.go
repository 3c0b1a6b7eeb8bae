package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
)

func benchmarkRefresh(b *testing.B, r *rig, clients int) {
	server := httptest.NewServer(New(r.svc, Config{}))
	defer server.Close()
	c := r.remote(0)
	tokens := make([]string, clients)
	for i := range tokens {
		a := control.Authorization{ClientID: c.client.ID, RedirectURI: clientRedirect, Challenge: challenge()}
		code := must(r.svc.Authorize(b.Context(), a, control.Account{ID: r.owner.AccountID}, "maya"))
		cred := control.Credentials{ID: c.client.ID, Secret: c.config.ClientSecret}
		tokens[i] = must(r.svc.ExchangeCode(b.Context(), cred, control.Exchange{Code: code, RedirectURI: clientRedirect, Verifier: verifier})).Refresh
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
