package web

import (
	"net/http"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/internal/words"
)

// The first page of /admin: what needs a look before anything else, and how much is carried.

// adminOverview is the first page.
type adminOverview struct {
	Figures []adminFigure
	Look    []adminLook
	Nodes   adminTable
	Usage   *adminUsage
}

// adminFigure is a number at the top.
type adminFigure struct{ Number, Of, More, Path string }

// adminLook is something that needs a look, and where.
type adminLook struct{ Says, More, Path string }

func (h *handler) adminOverview(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), languageOf(r)
	usage, err := h.svc.Overview.Usage(ctx)
	if err != nil {
		return err
	}
	nodes, err := h.svc.Overview.Nodes(ctx)
	if err != nil {
		return err
	}
	failed, err := h.svc.Overview.FailedMails(ctx, control.Query{Limit: control.MaxPage})
	if err != nil {
		return err
	}
	o := adminOverview{Nodes: nodeTable(l, nodes), Usage: h.usageOf(l, usage)}
	today := usageOn(usage, h.now())
	yesterday := usageOn(usage, h.now().AddDate(0, 0, -1))
	mails := l.Count(len(failed.Rows), "%d", "%d")
	if failed.Next != "" {
		mails += "+"
	}
	o.Figures = []adminFigure{
		{bytesSaid(l, carriedOn(today)), l.Say("Carried today"), l.Say("%s yesterday", bytesSaid(l, carriedOn(yesterday))), pathAdmin + "/computers"},
		{l.Count(int(today.Visits), "%d", "%d"), l.Say("Visits today"), l.Count(int(yesterday.Visits), "%d yesterday", "%d yesterday"), pathAdmin + "/computers"},
		{l.Count(len(nodes), "%d", "%d"), l.Say("Nodes"), h.nodesSaid(l, nodes), pathAdmin + "/nodes"},
		{mails, l.Say("Mails not arrived"), l.Say("in seven days"), pathAdmin + "/mails"},
	}
	ending, err := h.svc.Overview.Certificates(ctx, control.Query{Limit: control.MaxPage})
	if err != nil {
		return err
	}
	o.Look = append(h.looks(l, usage, failed), endingLook(l, ending)...)
	return h.showAdmin(w, r, http.StatusOK, "admin", pathAdmin, page{Title: l.Say("Overview")}, func(p *adminPage) { p.Overview = &o })
}

func (h *handler) nodesSaid(l words.Language, nodes []control.Node) string {
	draining := 0
	for _, n := range nodes {
		if n.Draining {
			draining++
		}
	}
	if draining > 0 {
		return l.Count(draining, "%d is draining", "%d are draining")
	}
	return l.Say("all serve")
}

const (
	// usualDays is over how many days what is carried is compared, and unusual how many times
	// as much is worth a look.
	usualDays = 14
	unusual   = 3
	// unusualFrom is from how many bytes.
	unusualFrom = 1 << 30
)

// looks are what needs a look, worst first.
func (h *handler) looks(l words.Language, usage []control.UsageDay, failed control.Page[control.Undelivered]) (out []adminLook) {
	if h.certEnds != nil {
		if ends := h.certEnds(); !ends.IsZero() && ends.Sub(h.now()) < control.CertificateSoon {
			out = append(out, adminLook{l.Say("The auth host’s certificate ends on %s", day(l, ends)), l.Say("It is not being renewed: the log says why."), pathAdmin + "/nodes"})
		}
	}
	for _, limit := range h.svc.Overview.Limits() {
		if limit.Reached > 0 {
			out = append(out, adminLook{l.Say("The limit %s was reached", limit.Name), l.Count(int(limit.Reached), "%d time since this node began.", "%d times since this node began."), pathAdmin + "/nodes"})
		}
	}
	if look, some := h.mailLook(l, failed); some {
		out = append(out, look)
	}
	var before uint64
	for i := 1; i <= usualDays; i++ {
		before += carriedOn(usageOn(usage, h.now().AddDate(0, 0, -i)))
	}
	if today := carriedOn(usageOn(usage, h.now())); today > unusualFrom && before > 0 && today > unusual*before/usualDays {
		out = append(out, adminLook{l.Say("%s carried today", bytesSaid(l, today)), l.Say("A usual day has %s.", bytesSaid(l, before/usualDays)), pathAdmin + "/computers"})
	}
	return out
}

// endingLook is where certificates of computers end.
func endingLook(l words.Language, p control.Page[control.EndingCertificate]) []adminLook {
	n := len(p.Rows)
	if n == 0 {
		return nil
	}
	look := adminLook{
		l.Count(n, "The certificate of %d computer is not renewed", "The certificates of %d computers are not renewed"),
		l.Say("The first ends on %s.", day(l, p.Rows[0].Ends)), pathAdmin + "/computers?kind=" + kindCertificates,
	}
	if p.Next != "" {
		look.Says = l.Say("The certificates of %d computers or more are not renewed", n)
	}
	return []adminLook{look}
}

// mailLook is where most of yesterday's and today's mails did not arrive.
func (h *handler) mailLook(l words.Language, failed control.Page[control.Undelivered]) (look adminLook, some bool) {
	domains, most := map[string]int{}, ""
	for _, m := range failed.Rows {
		if _, domain, _ := strings.Cut(m.To, "@"); h.now().Sub(m.FailedAt) < 48*time.Hour {
			domains[domain]++
			if domains[domain] > domains[most] || domains[domain] == domains[most] && domain < most {
				most = domain
			}
		}
	}
	code := ""
	for _, m := range failed.Rows {
		if strings.HasSuffix(m.To, "@"+most) && m.Code != 0 {
			code = itoa(m.Code)
			break
		}
	}
	n := domains[most]
	if n == 0 {
		return look, false
	}
	look = adminLook{l.Count(n, "%d mail to %[2]s did not arrive", "%d mails to %[2]s did not arrive", most), l.Say("Since yesterday."), pathAdmin + "/mails"}
	if code != "" {
		look.More = l.Say("Since yesterday; the mail server answered with code %s.", code)
	}
	return look, true
}

// adminUsage is what was carried in 90 days.
type adminUsage struct {
	Says string // of the bars, in words
	Bars []adminBar
	Days adminTable // newest first
}

// adminBar is a day, in a picture 900 wide and 100 high.
type adminBar struct{ X, Y, Height int }

func (h *handler) usageOf(l words.Language, usage []control.UsageDay) *adminUsage {
	var all, most uint64
	by := map[string]control.UsageDay{}
	for _, d := range usage {
		by[d.Day] = d
		all += carriedOn(d)
		most = max(most, carriedOn(d))
	}
	if all == 0 {
		return &adminUsage{Says: l.Say("Nothing in 90 days.")}
	}
	u := &adminUsage{Says: l.Say("%[1]s in 90 days, at most %[2]s a day", bytesSaid(l, all), bytesSaid(l, most))}
	u.Days.Columns = []adminColumn{{l.Say("Day"), "t"}, {l.Say("Visits"), "n"}, {l.Say("To visitors"), "n"}, {l.Say("From visitors"), "n opt-col"}}
	for i := range control.UsageDays {
		at := h.now().UTC().AddDate(0, 0, i-control.UsageDays+1)
		d, some := by[at.Format(time.DateOnly)]
		if !some {
			continue
		}
		height := max(2, int(carriedOn(d)*100/most))
		u.Bars = append(u.Bars, adminBar{i * 10, 100 - height, height})
		row := []adminCell{{Text: day(l, at)}, {Text: l.Count(int(d.Visits), "%d", "%d")}, {Text: bytesSaid(l, d.BytesDown)}, {Text: bytesSaid(l, d.BytesUp)}}
		u.Days.Rows = append([][]adminCell{row}, u.Days.Rows...)
	}
	return u
}

func carriedOn(d control.UsageDay) uint64 { return d.BytesUp + d.BytesDown }

// usageOn is that of a day, or nothing.
func usageOn(usage []control.UsageDay, at time.Time) control.UsageDay {
	for _, d := range usage {
		if d.Day == at.UTC().Format(time.DateOnly) {
			return d
		}
	}
	return control.UsageDay{}
}

// bytesSaid is an amount in words, with up to four digits.
func bytesSaid(l words.Language, n uint64) string {
	switch {
	case n < 10_000:
		return l.Count(int(n), "%d B", "%d B")
	case n < 10_000_000:
		return l.Count(int(n/1000), "%d KB", "%d KB")
	case n < 10_000_000_000:
		return l.Count(int(n/1_000_000), "%d MB", "%d MB")
	case n < 10_000_000_000_000:
		return l.Count(int(n/1_000_000_000), "%d GB", "%d GB")
	}
	return l.Count(int(n/1_000_000_000_000), "%d TB", "%d TB")
}
