package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"porchlight/control/admin"
	"porchlight/control/archive"
	"porchlight/control/kv"
	"porchlight/control/relay/peers"
	"porchlight/internal/boltfile"
)

// Upgrade is what stands between a store and a program that is to be started on it.
type Upgrade struct {
	Version string `json:"version"` // of the program
	Format  int    `json:"format"`  // to which it brings rows
	Store   struct {
		Shared bool `json:"shared"` // several nodes may use it
		Served bool `json:"served"` // a node of this data directory runs
		Format int  `json:"format"` // of its rows now
	} `json:"store"`
	Migrations []UpgradeStep  `json:"migrations"`
	Migrating  string         `json:"migrating,omitempty"` // who is at it now
	Kept       string         `json:"kept,omitempty"`      // a copy from before, which this program can read
	Nodes      []peers.Living `json:"nodes"`
	Safe       bool           `json:"safe"` // the program may be started now, beside what runs where that is told
	Says       []string       `json:"says"`
	Next       string         `json:"next"`
}

// UpgradeStep is what would change in the store.
type UpgradeStep struct {
	Format int    `json:"format"`
	About  string `json:"about"`
	Beside bool   `json:"beside"` // nodes of the version before go on
}

// CheckUpgrade says what starting the program of a version on a store would do, and
// changes nothing. The error wraps kv.ErrNoStore where there is none.
func CheckUpgrade(ctx context.Context, cfg Config) (Upgrade, error) {
	u := Upgrade{Version: cfg.Version, Migrations: []UpgradeStep{}, Nodes: []peers.Living{}}
	u.Store.Shared = kv.Shared(cfg.StoreURL())
	var format kv.Format
	err := kv.Look(ctx, cfg.StoreURL(), kv.Options{}, func(tx kv.Tx) error {
		values, err := tx.GetAll(kv.FormatKeys()...)
		if err != nil {
			return err
		}
		if format, err = kv.FormatOf(values); err != nil {
			return err
		}
		u.Nodes, err = peers.LivingNodes(tx)
		return err
	})
	if errors.Is(err, kv.ErrInUse) {
		u.Store.Served = true
		format, err = formatOfServed(ctx, cfg.DataDir, err)
	}
	if err != nil {
		return u, err
	}
	u.Format, u.Store.Format, u.Migrating = format.Knows, format.Rows, format.Migrating
	for _, m := range format.Due {
		u.Migrations = append(u.Migrations, UpgradeStep{m.Format, m.About, m.Beside})
	}
	if !u.Store.Shared {
		u.Kept = boltfile.Kept(filepath.Join(cfg.DataDir, StoreFile), format.Knows)
	}
	u.judge()
	return u, nil
}

// formatOfServed asks the node that has a file open, of whichever version: every one of
// them gives a backup, of which this reads as much as it needs.
func formatOfServed(ctx context.Context, dataDir string, inUse error) (kv.Format, error) {
	client, err := admin.Dial(dataDir)
	if err != nil {
		return kv.Format{}, inUse // another command has it for a moment
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.CloseWithError(client.Backup(ctx, w, true)) // never fails
	}()
	defer func() { <-ended }()
	defer cancel()
	defer r.Close()
	rows, err := archive.NewReader(r)
	if err != nil {
		return kv.Format{}, err
	}
	keys := kv.FormatKeys()
	values := make([][]byte, len(keys))
	for left := len(keys); left > 0; {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return kv.Format{}, err
		}
		left = 0
		for i, key := range keys {
			if row.Key == key {
				values[i] = row.Value
			}
			if row.Key < key { // keys rise
				left++
			}
		}
	}
	return kv.FormatOf(values)
}

// judge fills in what follows from the rest.
func (u *Upgrade) judge() {
	u.Says = append(u.formatSays(), u.nodesSay()...)
	u.Safe, u.Next = u.next()
}

func (u *Upgrade) formatSays() []string {
	if u.Store.Format > u.Format {
		return []string{fmt.Sprintf("A newer version of Porchlight wrote these rows: they have format %d, and this program (%s) knows %d.", u.Store.Format, u.Version, u.Format)}
	}
	if len(u.Migrations) == 0 {
		return []string{fmt.Sprintf("The rows have format %d, which is that of this program (%s). Nothing in them would be changed.", u.Store.Format, u.Version)}
	}
	says := []string{fmt.Sprintf("The rows have format %d. This program (%s) brings them to format %d when it starts, all of it or nothing:", u.Store.Format, u.Version, u.Format)}
	for _, m := range u.Migrations {
		beside := "nodes of the version before go on with what it leaves"
		if !m.Beside {
			beside = "nodes of the version before cannot go on with what it leaves"
		}
		says = append(says, fmt.Sprintf("Format %d: %s; %s.", m.Format, m.About, beside))
	}
	return says
}

func (u *Upgrade) nodesSay() (says []string) {
	switch {
	case !u.Store.Shared && u.Store.Served:
		return []string{"One node uses this store, and runs now."}
	case !u.Store.Shared:
		return []string{"One node uses this store, and none runs now."}
	case len(u.Nodes) == 0:
		return []string{"No node says that it lives. Those without --peer-address never do."}
	}
	for _, n := range u.Nodes {
		s := fmt.Sprintf("Node %s (%s) lives and runs %s.", n.Node, n.TunnelAddress, cmp.Or(n.Version, "an earlier version"))
		if n.Before {
			s += " That is before 0.1.0, which does not run beside this version."
		}
		if n.Draining {
			s += " It is about to end."
		}
		says = append(says, s)
	}
	if u.Version == Unnamed {
		says = append(says, "This program was built without a name for its version: any node that was looks like it.")
	}
	return says
}

// Unnamed is the version of a program that was built without one.
const Unnamed = "unknown"

// next says whether this program may be started now, and what to do.
func (u *Upgrade) next() (safe bool, next string) {
	var others, ending []string
	for _, n := range u.Nodes {
		if n.Draining {
			ending = append(ending, n.Node)
		}
		if n.Version != u.Version {
			others = append(others, n.Node)
		}
	}
	stopsAll := slices.ContainsFunc(u.Nodes, func(n peers.Living) bool { return n.Before })
	for _, m := range u.Migrations {
		stopsAll = stopsAll || !m.Beside
	}
	switch {
	case u.Store.Format > u.Format:
		next = "This program would not start on them. Go on with that version, or restore a backup that was made before it into an empty store."
		if u.Kept != "" {
			next += " " + u.Kept + " is a copy of the file from before: with that in its place this program starts, and what came since is gone."
		}
		return false, next
	case u.Migrating != "":
		return false, "The rows are being brought up to date (" + u.Migrating + "). Ask again in a minute."
	case !u.Store.Shared && u.Store.Served:
		return true, "Make a backup, stop the node, and start this program in its place."
	case len(u.Nodes) == 0:
		return true, "Make a backup with the old program, stop that if it runs, and start this one."
	case stopsAll && len(others) > 0:
		return false, "Nodes cannot be replaced one after another here: make a backup, stop all of them, and start this program on each."
	case len(ending) > 0:
		return false, "Wait until " + strings.Join(ending, " and ") + " has ended, and ask again."
	case len(others) == 0:
		return true, "Every node runs this version: nothing is left to do."
	case len(u.Nodes) == 1:
		return true, fmt.Sprintf("Only %s lives, and while it is replaced nobody is served: start this program as another node first.", others[0])
	}
	return true, fmt.Sprintf("Replace one node, %s for one: take it out where visitors come from, stop it, start this program in its place, and ask again. %d of %d are left.", others[0], len(others), len(u.Nodes))
}
