package news

import (
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// How long a node may be silent until it is taken for gone.
const (
	GoneAfter   = goneAfter
	SilentAfter = silentAfter
	AnswerWait  = answerWait
)

// Pings are how often connections between nodes are tried, and how many tries may stay
// without an answer.
func Pings() (interval time.Duration, out int) {
	o := options(Config{Node: "one", Run: "run", Listen: "127.0.0.1:0"}, nil, "")
	return o.Cluster.PingInterval, o.Cluster.MaxPingsOut
}

// RefuseOnce has the server refuse the next addresses it is told.
func (n *News) RefuseOnce() {
	n.routes.Lock()
	defer n.routes.Unlock()
	n.reload = func(*server.Options) error {
		n.reload = n.server.Load().ReloadOptions
		return errors.New("not now")
	}
}
