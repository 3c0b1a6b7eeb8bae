package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

const (
	// perHouse is how many computers one process holds: six files each, of 20,000.
	perHouse = 2500
	// enrolAtOnce is how many are put into the database at a time.
	enrolAtOnce = 16
	// lookEvery is how often houses are asked how their computers do, and lookDense how often
	// where there are so many that their answers are work.
	lookEvery = 100 * time.Millisecond
	lookDense = 2 * time.Second
)

// domainOf opens what the commands open where no server runs, for what they do.
func (w *world) domainOf(ctx context.Context) (*control.Service, func() error, error) {
	store, err := kv.Open(ctx, w.database, kv.Options{})
	if err != nil {
		return nil, nil, err
	}
	service, err := control.New(control.Config{Store: store, Naming: w.naming, Mail: mail.NewOutbox(store, nil)})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return service, store.Close, nil
}

// enrol puts computers into the database until there are n, each of an account of its own.
func (w *world) enrol(ctx context.Context, n int) error {
	service, done, err := w.domainOf(ctx)
	if err != nil {
		return err
	}
	first, began := len(w.homes), time.Now()
	w.homes = append(w.homes, make([]home, max(0, n-first))...)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(enrolAtOnce)
	for i := first; i < n; i++ {
		g.Go(func() error {
			name := fmt.Sprintf("home%05d", i)
			enrolled, err := service.Computers.Ensure(ctx, name+"@example.net", name)
			w.homes[i] = home{Name: name, Credential: enrolled.Credential, Address: homeAddress(i)}
			if i == 0 && w.pinned {
				w.homes[i].Only, w.homes[i].Lossy = w.running[0].address, true
			}
			return err
		})
	}
	err = errors.Join(g.Wait(), done())
	w.says("%d computers are enrolled after %.1f s", n, time.Since(began).Seconds())
	return err
}

// homeAddress is one of a computer's own among 127.0.0.0/8.
func homeAddress(i int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+i/62_500, i/250%250, 1+i%250)
}

// populate has n computers running, enrolled where they are not yet.
func (w *world) populate(ctx context.Context, n int) error {
	first := len(w.homes)
	if err := w.enrol(ctx, n); err != nil {
		return err
	}
	return w.move(first, n)
}

// move has the homes from first up to n run in houses.
func (w *world) move(first, n int) error {
	for i := first; i < n; {
		to := min(n, (i/perHouse+1)*perHouse)
		if i/perHouse == len(w.houses) {
			h, err := openHouse(w.shape.houses, w.dense)
			if err != nil {
				return err
			}
			w.houses = append(w.houses, h)
			if _, err := h.tell(order{Auth: w.authURL(), Roots: w.roots, Nodes: w.addresses()}); err != nil {
				return err
			}
		}
		if _, err := w.houses[i/perHouse].tell(order{Add: w.homes[i:to], Apart: w.dense}); err != nil {
			return err
		}
		i = to
	}
	return nil
}

// tell gives an order to every house and adds their reports up.
func (w *world) tell(o order) (all report, err error) {
	for _, h := range w.houses {
		r, err := h.tell(o)
		if err != nil {
			return all, err
		}
		all.Computers += r.Computers
		all.Tried += r.Tried
		all.Reported += r.Reported
		all.Opened += r.Opened
		all.Answered += r.Answered
		all.Welcomed += r.Welcomed
		all.Trouble = cmp.Or(all.Trouble, r.Trouble)
		if r.Withdrew.After(all.Withdrew) {
			all.Withdrew = r.Withdrew
		}
		all.Back = append(all.Back, r.Back...)
	}
	slices.SortFunc(all.Back, time.Time.Compare)
	return all, nil
}

// await waits until every computer is there, for as long as the settings have patience;
// what is not there by then is missing in the report.
func (w *world) await(ctx context.Context) (report, error) {
	return w.awaitAll(ctx, func(r report) int { return len(r.Back) })
}

// awaitAll waits until as many as there are computers are counted.
func (w *world) awaitAll(ctx context.Context, counted func(report) int) (r report, err error) {
	every := lookEvery
	if w.dense && !w.quick {
		every = lookDense
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(w.patience); ; {
		r, err = w.tell(order{})
		if err != nil || counted(r) == r.Computers || time.Now().After(end) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-tick.C:
		}
	}
}
