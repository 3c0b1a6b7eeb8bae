package serve

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"porchlight/control/kv"
	"porchlight/control/mail"
)

// mailStats are the mails to be delivered by SMTP. What became of them is counted
// by this node; what waits is the store's.
type mailStats struct {
	smtp  *mail.SMTP
	store kv.Store
}

var (
	descMails       = prometheus.NewDesc("porchlight_mails_total", "Mails taken by the mail server, put off by it, refused by it, or given up for their age.", []string{"outcome"}, nil)
	descUnreachable = prometheus.NewDesc("porchlight_mail_server_unreachable_total", "Connections to the mail server that did not come about.", nil, nil)
	descWaiting     = prometheus.NewDesc("porchlight_mails_waiting", "Mails that are still to be delivered, counted up to 1000.", nil, nil)
	descOldest      = prometheus.NewDesc("porchlight_mails_waiting_seconds", "Age of the oldest of them.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s mailStats) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descMails, descUnreachable, descWaiting, descOldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Without the store, what waits is left
// out: no number is better than a wrong one.
func (s mailStats) Collect(ch chan<- prometheus.Metric) {
	stats := s.smtp.Stats()
	for outcome, v := range map[string]uint64{
		"delivered": stats.Delivered, "refused": stats.Refused, "expired": stats.Expired, "put_off": stats.PutOff,
	} {
		ch <- prometheus.MustNewConstMetric(descMails, prometheus.CounterValue, float64(v), outcome)
	}
	ch <- prometheus.MustNewConstMetric(descUnreachable, prometheus.CounterValue, float64(stats.Unreachable))
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	waiting, err := mail.Queued(ctx, s.store)
	if err != nil {
		return
	}
	var oldest time.Duration
	for _, w := range waiting {
		oldest = max(oldest, time.Since(w.At))
	}
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(len(waiting)))
	ch <- prometheus.MustNewConstMetric(descOldest, prometheus.GaugeValue, oldest.Seconds())
}
