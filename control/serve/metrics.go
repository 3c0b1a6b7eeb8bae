package serve

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/relay"
)

// counts are the requests to the auth host, and to --admin-address. They carry no address and no path:
// paths may hold what is not for everybody.
type counts struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
}

func newCounts() *counts {
	return &counts{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "porchlight_http_requests_total",
			Help: "Requests to the auth host, by method and class of the answer's status.",
		}, []string{"method", "class"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "porchlight_http_request_seconds",
			Help:    "Time to the end of an answer; syncs wait on purpose for up to 25 seconds.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
	}
}

// handler counts what next answers.
func (c *counts) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			c.requests.WithLabelValues(method(r.Method), strconv.Itoa(s.status/100)+"xx").Inc()
			c.seconds.Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(s, r)
	})
}

// method is bounded: a client may send any word.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS":
		return m
	}
	return "other"
}

// statusWriter remembers the status. http.ResponseController reaches through it.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *statusWriter) WriteHeader(status int) {
	if !w.wrote && status >= 200 {
		w.status, w.wrote = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newRegistry(c *counts, r *relay.Relay, store kv.Store, smtp *mail.SMTP, certEnds func() time.Time) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		c.requests, c.seconds,
		relayStats{relay: r}, certStats{ends: certEnds},
	)
	if p, ok := store.(pool); ok {
		registry.MustRegister(poolStats{store: p})
	}
	if smtp != nil {
		registry.MustRegister(mailStats{smtp: smtp, store: store})
	}
	return registry
}

// undescribed are metrics some of which are left out at times, so that they are not told
// of before.
type undescribed struct{}

// Describe implements prometheus.Collector.
func (undescribed) Describe(chan<- *prometheus.Desc) {}

// relayStats turns the relay's own numbers into metrics when they are asked for.
type relayStats struct {
	undescribed
	relay *relay.Relay
}

// relayMetric is one of those numbers.
type relayMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(relay.Stats) float64
}

func relayGauge(name, help string, value func(relay.Stats) int) relayMetric {
	return relayMetric{relayDesc(name, help), prometheus.GaugeValue, func(s relay.Stats) float64 { return float64(value(s)) }}
}

func relayCount(name, help string, value func(relay.Stats) uint64) relayMetric {
	return relayMetric{relayDesc(name, help), prometheus.CounterValue, func(s relay.Stats) float64 { return float64(value(s)) }}
}

func relayDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("porchlight_relay_"+name, help, labels, nil)
}

var relayMetrics = []relayMetric{
	relayGauge("tunnels", "Control connections of agents, without the extra ones.", func(s relay.Stats) int { return s.Sessions - s.Extra }),
	relayGauge("extra_tunnels", "Control connections of agents that came for visitors, besides others.", func(s relay.Stats) int { return s.Extra }),
	relayGauge("parked_connections", "Idle data connections.", func(s relay.Stats) int { return s.Parked }),
	relayGauge("visitors", "Visits waiting or under way.", func(s relay.Stats) int { return s.Visitors }),
	relayGauge("known_addresses", "Addresses let in by computers lately, for which places are kept.", func(s relay.Stats) int { return s.LetIn }),
	relayGauge("held_bytes", "Bytes of heads of requests to the auth host, and for their answers, that are held; in parts of 20 KiB.", func(s relay.Stats) int { return s.Held }),
	relayCount("visits_total", "Visits joined to a data connection.", func(s relay.Stats) uint64 { return s.Visits }),
	relayCount("bytes_up_total", "Bytes of finished visits, visitor to agent.", func(s relay.Stats) uint64 { return s.BytesUp }),
	relayCount("bytes_down_total", "Bytes of finished visits, agent to visitor.", func(s relay.Stats) uint64 { return s.BytesDown }),
	relayCount("retried_visits_total", "Visits whose first data connection had died.", func(s relay.Stats) uint64 { return s.Retried }),
	relayCount("unknown_names_total", "Visitors for a name that is not here.", func(s relay.Stats) uint64 { return s.Unknown }),
	relayCount("timed_out_visits_total", "Visitors no data connection came for.", func(s relay.Stats) uint64 { return s.TimedOut }),
	relayCount("malformed_total", "Connections whose first bytes were not understood.", func(s relay.Stats) uint64 { return s.Malformed }),
	relayCount("bad_tickets_total", "Data connections refused.", func(s relay.Stats) uint64 { return s.BadTickets }),
	relayCount("bad_credentials_total", "Control connections refused for their credential.", func(s relay.Stats) uint64 { return s.Unauthentic }),
	relayCount("passed_on_total", "Visitors handed to another node.", func(s relay.Stats) uint64 { return s.PassedOn }),
	relayCount("taken_over_total", "Visitors taken over from another node.", func(s relay.Stats) uint64 { return s.TakenOver }),
	relayCount("asked_to_come_total", "Times an agent was asked to connect to a node that passes its visitors on.", func(s relay.Stats) uint64 { return s.AskedToCome }),
	relayCount("peer_failures_total", "Nodes that did not answer, and connections of peers refused.", func(s relay.Stats) uint64 { return s.PeerFailures }),
	relayCount("deferred_tunnels_total", "Control connections put off after a start.", func(s relay.Stats) uint64 { return s.Deferred }),
}

var descLimited = relayDesc("limited_total", "Connections closed for a limit, by its name.", "limit")

// Collect implements prometheus.Collector.
func (s relayStats) Collect(ch chan<- prometheus.Metric) {
	stats := s.relay.Stats()
	for _, m := range relayMetrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats))
	}
	for limit, v := range stats.LimitedBy {
		ch <- prometheus.MustNewConstMetric(descLimited, prometheus.CounterValue, float64(v), limit)
	}
}

// pool is a store with connections to PostgreSQL, and calls that wait for one;
// poolStats is what it says of them.
type pool interface {
	Connections() (busy, idle, most int)
	Queue() kv.Queue
	ClockAhead() (ahead time.Duration, known bool)
}

type poolStats struct {
	undescribed
	store pool
}

var (
	descPool     = prometheus.NewDesc("porchlight_postgres_connections", "Connections to PostgreSQL, by state.", []string{"state"}, nil)
	descInLine   = prometheus.NewDesc("porchlight_store_waiting", "Calls that wait for a connection to PostgreSQL.", nil, nil)
	descSentAway = prometheus.NewDesc("porchlight_store_refused_total", "Calls answered with 503 because too many waited.", nil, nil)
	descAhead    = prometheus.NewDesc("porchlight_store_clock_ahead_seconds", "What PostgreSQL's clock is ahead of this machine's, from a second on; left out while it was not told.", nil, nil)
	descDropped  = prometheus.NewDesc("porchlight_store_dropped_total", "Calls whose asker went while they waited; they cost PostgreSQL nothing.", nil, nil)
)

// Collect implements prometheus.Collector.
func (s poolStats) Collect(ch chan<- prometheus.Metric) {
	busy, idle, most := s.store.Connections()
	for state, v := range map[string]int{"busy": busy, "idle": idle, "max": most} {
		ch <- prometheus.MustNewConstMetric(descPool, prometheus.GaugeValue, float64(v), state)
	}
	queue := s.store.Queue()
	ch <- prometheus.MustNewConstMetric(descInLine, prometheus.GaugeValue, float64(queue.Waiting))
	ch <- prometheus.MustNewConstMetric(descSentAway, prometheus.CounterValue, float64(queue.Refused))
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(queue.Dropped))
	if ahead, known := s.store.ClockAhead(); known {
		ch <- prometheus.MustNewConstMetric(descAhead, prometheus.GaugeValue, ahead.Seconds())
	}
}

// certStats is the auth host's certificate.
type certStats struct {
	undescribed
	ends func() time.Time
}

var descCertEnds = prometheus.NewDesc("porchlight_certificate_ends_timestamp_seconds", "When the auth host's certificate ends, in Unix time; left out where there is none.", nil, nil)

// Collect implements prometheus.Collector.
func (s certStats) Collect(ch chan<- prometheus.Metric) {
	if ends := s.ends(); !ends.IsZero() {
		ch <- prometheus.MustNewConstMetric(descCertEnds, prometheus.GaugeValue, float64(ends.Unix()))
	}
}

// mailStats are the mails to be delivered by SMTP. What became of them is counted
// by this node; what waits is the store's.
type mailStats struct {
	undescribed
	smtp  *mail.SMTP
	store kv.Store
}

var (
	descMails       = prometheus.NewDesc("porchlight_mails_total", "Mails taken by the mail server, put off by it, refused by it, or given up for their age.", []string{"outcome"}, nil)
	descUnreachable = prometheus.NewDesc("porchlight_mail_server_unreachable_total", "Connections to the mail server that did not come about.", nil, nil)
	descWaiting     = prometheus.NewDesc("porchlight_mails_waiting", "Mails that are still to be delivered, counted up to 1000.", nil, nil)
	descOldest      = prometheus.NewDesc("porchlight_mails_waiting_seconds", "Age of the oldest of them.", nil, nil)
)

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
