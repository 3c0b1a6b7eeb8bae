package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// What an operator asks of a store with many accounts, as a program asks it: over HTTP with a
// token, so that the store's time is in each figure, and somewhat more.

// asked is what operators ask, each by the path below admin.APIPath.
var asked = []struct{ name, path string }{
	{"accounts, first page", "accounts?limit=200"},
	{"accounts, a page in the middle", "accounts?limit=200&after=MIDDLE"},
	{"accounts by mail", "accounts?prefix=person000"},
	{"accounts by id", "accounts?by=id&limit=200"},
	{"accounts by domain, of which all are", "accounts?limit=200&prefix=" + url.QueryEscape("@people.ex")},
	{"an account with 50 computers", "accounts/" + mailOf(0)},
	{"computers, first page", "computers?limit=200"},
	{"computers by name", "computers?limit=200&prefix=home-1"},
	{"a computer with 90 days", "computers/home-0"},
	{"bytes and visits of all, 90 days", "usage"},
	{"clients by name", "clients?prefix=program"},
	{"suspensions", "suspensions?limit=200"},
	{"mails that did not arrive", "mails/failed?limit=200"},
	{"mails that wait", "mails/waiting?limit=200"},
	{"the audit log, newest first", "audit?limit=200"},
	{"the audit log by kind", "audit?limit=200&kind=suspended"},
	{"the audit log by account", "audit?limit=200&about=" + mailOf(7)},
	{"certificates that end, first page", "certificates?limit=200"},
	{"whom an account's suspension cuts off", pathCuts + "?kind=account&id=" + mailOf(0)},
	{"whom a domain's suspension cuts off, of which all are", pathCuts + "?kind=domain&id=people.example"},
}

// pathCuts is asked by /admin alone, not by programs: here it is beside what those ask.
const pathCuts = "cuts"

// The contenders: a control plane on each store.
const (
	manyOnBolt     = "Porchlight, bbolt, 100,000 accounts"
	manyOnPostgres = "Porchlight, PostgreSQL, 100,000 accounts"
)

func askedName(name string) string { return "operator asks: " + name }

func mailOf(n int) string { return fmt.Sprintf("person%06d@people.example", n) }

// operatorWork is the work of the control part that has goals of the store's time.
func operatorWork() (all []work, goals []goal) {
	stores := []string{manyOnBolt, manyOnPostgres}
	for _, a := range asked {
		all = append(all, work{"operator", askedName(a.name), stores, func(ctx context.Context, st *stage, c contender) ([]reading, error) {
			return asks(ctx, st, c, strings.Replace(a.path, "MIDDLE", url.QueryEscape(mailOf(st.accounts/2)), 1))
		}})
		for _, store := range stores {
			goals = append(goals, goal{name: askedName(a.name), metric: p99, ours: store, limit: 100})
		}
	}
	return all, goals
}

// asks is one question again and again, by one operator.
func asks(ctx context.Context, st *stage, c contender, path string) ([]reading, error) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	got, err := timed(ctx, st, c, 1, func(ctx context.Context, _ int) error {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.addr+admin.APIPath+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+c.tokens[0])
		res, err := client.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || len(body) < 50 || strings.Contains(string(body), `"partial"`) {
			return fmt.Errorf("%s: %s, %.100s, %w", path, res.Status, body, err)
		}
		return nil
	})
	return slices.DeleteFunc(got, func(r reading) bool { return r.metric != p99 }), err
}

// startOperators starts a control plane with many accounts on each store that is there.
func (st *stage) startOperators(ctx context.Context, stores map[string]string) error {
	for _, name := range []string{manyOnBolt, manyOnPostgres} {
		if stores[name] == "" || !st.measures(name) || !st.wants("operator") {
			continue
		}
		is, pid, err := st.role(ctx, st.self, "operator", stores[name], fmt.Sprint(st.accounts))
		if err != nil {
			return err
		}
		st.stand(contender{name: name, addr: is.Addr, pid: pid, tokens: is.Tokens})
	}
	return nil
}

// playOperator is a control plane that operators ask. Arguments: the URL of a store, and how
// many accounts there are.
func playOperator(ctx context.Context, ln net.Listener, args []string) error {
	if len(args) != 2 {
		return errors.New("want a store and how many accounts")
	}
	accounts, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	store, err := kv.Open(ctx, args[0], kv.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := fillAccounts(ctx, store, accounts); err != nil {
		return err
	}
	naming := control.Naming{Domain: "localhost", AuthHost: "control.localhost", PublicPort: 8443}
	svc, err := control.New(control.Config{Store: store, Naming: naming, Mail: mail.NewOutbox(store, nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	began := time.Now()
	if err := svc.Overview.IndexAll(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "indexes of %d accounts were made in %v\n", accounts, time.Since(began).Round(time.Millisecond))
	a, err := admin.New(admin.Config{
		Accounts: svc.Accounts, Computers: svc.Computers, Clients: svc.Clients, Keys: svc.Keys, Suspensions: svc.Suspensions,
		Operators: svc.Operators, Tokens: svc.AdminTokens, Overview: svc.Overview, Challenges: svc.Challenges, Store: store, Naming: naming,
	})
	if err != nil {
		return err
	}
	_, token, err := svc.AdminTokens.Add(ctx, "benchmark", []control.TokenScope{control.ScopeRead}, 0)
	if err != nil {
		return err
	}
	if err := announce(ready{Addr: ln.Addr().String(), Tokens: []string{token}}); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", a.API())
	mux.HandleFunc("GET "+admin.APIPath+pathCuts, func(w http.ResponseWriter, r *http.Request) {
		cuts, err := svc.Overview.Cuts(r.Context(), control.SuspensionKind(r.FormValue("kind")), r.FormValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		controlapi.WriteJSON(w, http.StatusOK, cuts)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// fillAccounts fills a new store with the rows of a version that had no indexes: so many
// accounts with a computer each, the first with 50, and with all else that operators list.
func fillAccounts(ctx context.Context, store kv.Store, accounts int) error {
	rows := map[string]string{}
	put := func(key string, row any) {
		b, err := json.Marshal(row)
		if err != nil {
			panic(err) // they are of simple fields
		}
		rows[key] = string(b)
	}
	type fields = map[string]any
	ids := make([]string, accounts)
	now := time.Now().UTC()
	for i := range accounts {
		ids[i] = strings.ToLower(rand.Text())
		put("account-email/"+mailOf(i), ids[i])
		put("account/"+ids[i], fields{"id": ids[i], "email": mailOf(i), "createdAt": now, "mayEnrol": true})
	}
	var first string // computer
	for i := range accounts + 49 {
		id, name := strings.ToLower(rand.Text()), fmt.Sprint("home-", i)
		owner := ids[max(i-49, 0)]
		if i == 0 {
			first = id
		}
		put("computer-name/"+name, id)
		computer := fields{"id": id, "name": name, "ownerId": owner, "credentialHash": strings.Repeat("c", 64), "createdAt": now}
		if i%100 == 0 {
			ends := now.Truncate(time.Second).Add(time.Duration(i) * time.Second)
			computer["certificateEnds"] = ends
			put("certificate-ends/"+ends.Format("20060102T150405Z")+"/"+id, fields{})
		}
		put("computer/"+id, computer)
		put("membership/"+owner+"/"+id, fields{})
		put("person/"+id+"/"+owner, fields{"accountId": owner, "email": mailOf(max(i-49, 0)), "role": "owner", "status": "active"})
	}
	for i := range min(accounts, 900) {
		member := ids[i]
		put("person/"+first+"/"+member, fields{"accountId": member, "email": mailOf(i), "role": "member", "status": "active"})
		put("suspended/account/"+member, fields{"kind": "account", "id": member, "name": mailOf(i), "reason": "a complaint", "by": "command-line", "at": now})
		id := strings.ToLower(rand.Text())
		put("client/"+id, fields{"id": id, "name": fmt.Sprint("Program ", i), "redirectUris": []string{"https://program.example/cb"}, "secretHash": strings.Repeat("c", 64), "createdAt": now})
	}
	monday := now.Truncate(24*time.Hour).AddDate(0, 0, -int(now.Weekday()+6)%7)
	for week := range 13 {
		days := fields{}
		for day := range 7 {
			days[monday.AddDate(0, 0, day-7*week).Format(time.DateOnly)] = []int{1234, 5_000_000, 900_000_000}
		}
		for node := range 3 {
			put(fmt.Sprintf("usage/%s/%s/node%d", first, monday.AddDate(0, 0, -7*week).Format(time.DateOnly), node), days)
			put(fmt.Sprintf("usage-sum/%s/node%d", monday.AddDate(0, 0, -7*week).Format(time.DateOnly), node), days)
		}
	}
	for i := range 500 {
		put(fmt.Sprintf("mail-failed/%016x-%d", i, i), fields{"to": mailOf(i), "subject": "Sign in", "at": now, "failedAt": now, "reason": "refused", "code": 550, "tries": 1})
		put(fmt.Sprintf("mail/%016x-%d", now.Add(time.Hour).UnixNano()+int64(i), i), fields{"to": mailOf(i), "subject": "Sign in", "text": strings.Repeat("x", 1000), "putAt": now})
	}
	for node := range 3 {
		name := fmt.Sprint("node", node)
		for seq := range accounts / 4 {
			kind, on := "sign-in", ids[0]
			if seq%500 == 0 {
				kind, on = "suspended", ids[7]
			}
			put(fmt.Sprintf("audit/%s/%016x", name, seq+1), fields{"node": name, "seq": seq + 1, "at": now, "kind": kind, "on": on, "prev": strings.Repeat("p", 64), "hash": strings.Repeat("h", 64)})
		}
		put("audit-end/"+name, fields{"node": name, "seq": accounts / 4, "at": now})
	}
	keys := slices.Sorted(maps.Keys(rows))
	_, err := store.Load(ctx, func() (kv.Record, error) {
		if len(keys) == 0 {
			return kv.Record{}, io.EOF
		}
		r := kv.Record{Key: keys[0], Value: []byte(rows[keys[0]])}
		keys = keys[1:]
		return r, ctx.Err()
	})
	return err
}
