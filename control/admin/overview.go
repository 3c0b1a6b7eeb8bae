package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// What operators see (control.Overview), over the socket and, for tokens, over HTTP: one
// table for both.

// overviewRoutes are the questions, below a path.
func (a *Admin) overviewRoutes(below string) []route {
	o := a.cfg.Overview
	return []route{
		{"GET", below + "/accounts", paged(o.Accounts)},
		{"GET", below + "/accounts/{id}", one(o.Account)},
		{"GET", below + "/computers", paged(o.Computers)},
		{"GET", below + "/computers/{id}", one(o.Computer)},
		{"GET", below + "/certificates", paged(o.Certificates)},
		{"GET", below + "/usage", listed(o.Usage)},
		{"GET", below + "/nodes", listed(o.Nodes)},
		{"GET", below + "/limits", listed(func(context.Context) ([]control.Limit, error) { return o.Limits(), nil })},
		{"GET", below + "/mails/failed", paged(o.FailedMails)},
		{"GET", below + "/mails/waiting", paged(o.WaitingMails)},
		{"GET", below + "/clients", paged(o.Clients)},
		{"GET", below + "/suspensions", paged(o.Suspensions)},
		{"GET", below + "/audit", paged(o.Audit)},
	}
}

// paged answers with the page that the query asks for.
func paged[T any](list func(context.Context, control.Query) (control.Page[T], error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := queryOf(r)
		if err != nil {
			return err
		}
		page, err := list(r.Context(), q)
		if err != nil {
			return err
		}
		controlapi.WriteJSON(w, http.StatusOK, page)
		return nil
	}
}

// one answers with what is at the id in the path.
func one[T any](find func(context.Context, string) (T, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		found, err := find(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		controlapi.WriteJSON(w, http.StatusOK, found)
		return nil
	}
}

func queryOf(r *http.Request) (q control.Query, err error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, refuse("The request is not understood: its query.")
	}
	for name, values := range given {
		value := values[0]
		switch {
		case len(values) > 1:
			return q, refuse("The request is not understood: %s is there twice.", name)
		case name == "prefix":
			q.Prefix = value
		case name == "by":
			q.By = value
		case name == "after":
			q.After = value
		case name == "kind":
			q.Kind = value
		case name == "about":
			q.About = value
		case name == "limit":
			if q.Limit, err = strconv.Atoi(value); err != nil || q.Limit <= 0 {
				return q, refuse("A page has 1 to %d rows (limit).", control.MaxPage)
			}
		default:
			return q, refuse("A list is asked for by prefix, by, after and limit, and the audit log by kind and about.")
		}
	}
	return q, nil
}

// Listing is a list of the overview for Client.
type Listing[T any] struct{ path string }

// The lists, for Listed.
var (
	Accounts     = Listing[control.Account]{"/overview/accounts"}
	Computers    = Listing[control.ListedComputer]{"/overview/computers"}
	Certificates = Listing[control.EndingCertificate]{"/overview/certificates"}
	FailedMails  = Listing[control.Undelivered]{"/overview/mails/failed"}
	WaitingMails = Listing[control.Undelivered]{"/overview/mails/waiting"}
	Clients      = Listing[control.ListedClient]{"/overview/clients"}
	Suspensions  = Listing[control.Suspension]{"/overview/suspensions"}
)

// Listed is a page of a list, as control.Overview has it.
func Listed[T any](ctx context.Context, c *Client, list Listing[T], q control.Query) (control.Page[T], error) {
	v := url.Values{}
	for name, value := range map[string]string{"prefix": q.Prefix, "by": q.By, "after": q.After, "kind": q.Kind, "about": q.About} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return asked[control.Page[T]](ctx, c, "GET", list.path+"?"+v.Encode(), nil)
}

// Account is one account as operators see it.
func (c *Client) Account(ctx context.Context, idOrMail string) (control.AccountDetail, error) {
	return asked[control.AccountDetail](ctx, c, "GET", "/overview/accounts/"+url.PathEscape(idOrMail), nil)
}

// Computer is one computer as operators see it.
func (c *Client) Computer(ctx context.Context, idOrName string) (control.ComputerDetail, error) {
	return asked[control.ComputerDetail](ctx, c, "GET", "/overview/computers/"+url.PathEscape(idOrName), nil)
}

// Certificates are all computers of which a certificate ends soon.
func (c *Client) Certificates(ctx context.Context) (all []control.EndingCertificate, err error) {
	all = []control.EndingCertificate{}
	for q := (control.Query{Limit: control.MaxPage}); ; {
		p, err := Listed(ctx, c, Certificates, q)
		if all, q.After = append(all, p.Rows...), p.Next; err != nil || p.Next == "" {
			return all, err
		}
	}
}

// Usage is what all computers carried together.
func (c *Client) Usage(ctx context.Context) ([]control.UsageDay, error) {
	return asked[[]control.UsageDay](ctx, c, "GET", "/overview/usage", nil)
}

// Nodes are the nodes that are there.
func (c *Client) Nodes(ctx context.Context) ([]control.Node, error) {
	return asked[[]control.Node](ctx, c, "GET", "/overview/nodes", nil)
}

// Limits are the bounds of the node that answers.
func (c *Client) Limits(ctx context.Context) ([]control.Limit, error) {
	return asked[[]control.Limit](ctx, c, "GET", "/overview/limits", nil)
}
