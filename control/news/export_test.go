package news

import (
	"errors"

	"github.com/nats-io/nats-server/v2/server"
)

// RefuseOnce has the server refuse the next addresses it is told.
func (n *News) RefuseOnce() {
	n.routes.Lock()
	defer n.routes.Unlock()
	n.reload = func(*server.Options) error {
		n.reload = n.server.ReloadOptions
		return errors.New("not now")
	}
}
