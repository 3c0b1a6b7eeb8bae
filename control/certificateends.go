package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// A computer has certificates of its own and renews them. Where that does not work it says
// when the first of them ends (controlapi.Apps), which its row keeps, and one key by that time:
// so operators see the soonest, and no other computer is read.

// CertificateSoon is how long before its end a certificate is shown: one of 90 days that is
// renewed by itself never has so little left.
const CertificateSoon = 14 * 24 * time.Hour

// certificateKept is how long after its end a certificate is shown: who never renewed it and
// never left is gone.
const certificateKept = 365 * day

func keyCertificateEnd(at time.Time, computer string) string {
	return keyCertificateEnds + at.UTC().Format(endTime) + "/" + computer
}

// checkCertificateEnds refuses what is no end of a certificate of this century.
func checkCertificateEnds(at time.Time) error {
	if year := at.UTC().Year(); !at.IsZero() && (year < 2000 || year > 2099) {
		return refuse(controlapi.CodeInvalid, "A certificate cannot end at that time.")
	}
	return nil
}

// certificateEnds has a computer say when its first certificate ends, zero for none, and says
// whether that is news. The caller puts the row.
func (t *txn) certificateEnds(c *computer, at time.Time) bool {
	if c.CertificateEnds.Equal(at) {
		return false
	}
	if !c.CertificateEnds.IsZero() {
		t.delete(keyCertificateEnd(c.CertificateEnds, c.ID))
	}
	c.CertificateEnds = at
	if kept := at.Add(certificateKept).Sub(t.now); !at.IsZero() && kept > 0 {
		t.put(keyCertificateEnd(at, c.ID), struct{}{}, kept)
	}
	return true
}

// EndingCertificate is a computer whose certificates cannot be renewed, with when the first of
// them ends.
type EndingCertificate struct {
	ListedComputer
	Ends time.Time `json:"ends"`
	// Seen is when its agent was here last, to within two minutes; zero for never.
	Seen time.Time `json:"seen,omitzero"`
}

// Away says whether its agent was not here of late.
func (c EndingCertificate) Away(now time.Time) bool { return now.Sub(c.Seen) > awayAfter }

// Certificates are the computers of which a certificate could not be renewed and ends within
// CertificateSoon, or has ended: the soonest first. q.Prefix and q.By are of no use here.
func (s *Overview) Certificates(ctx context.Context, q Query) (Page[EndingCertificate], error) {
	q.Prefix = ""
	q, err := q.checked("")
	if err != nil {
		return Page[EndingCertificate]{}, err
	}
	return viewed(ctx, s.core, func(tx *txn) (Page[EndingCertificate], error) {
		late := keyCertificateEnd(tx.now.Add(CertificateSoon), "")
		items := slices.DeleteFunc(tx.scan(keyCertificateEnds, keyCertificateEnds+q.After, q.Limit+1), func(it kv.Item) bool { return it.Key >= late })
		return pageIn(items, keyCertificateEnds, q, func(items []kv.Item) []EndingCertificate { return s.ending(tx, items) }), nil
	})
}

// ending are the computers of some keys. A key that is none of its computer's is from a node
// of another version.
func (s *Overview) ending(tx *txn, items []kv.Item) []EndingCertificate {
	var ids []string
	theirs := map[string]bool{}
	for _, it := range items {
		_, id, _ := strings.Cut(it.Key[len(keyCertificateEnds):], "/")
		ids, theirs[it.Key] = append(ids, id), true
	}
	var rows []computer
	for _, c := range rowsAt[computer](tx, keysOf(ids, keyComputer)...) {
		if key := keyCertificateEnd(c.CertificateEnds, c.ID); theirs[key] {
			rows, theirs[key] = append(rows, c), false
		}
	}
	ids = nil
	for _, c := range rows {
		ids = append(ids, c.ID)
	}
	tx.getAll(keysOf(ids, keyComputerSeen)...)
	out := make([]EndingCertificate, len(rows))
	for i, listed := range s.listed(tx, rows) {
		seen, _ := get[time.Time](tx, keyComputerSeen(listed.ID))
		out[i] = EndingCertificate{ListedComputer: listed, Ends: rows[i].CertificateEnds, Seen: seen}
	}
	return out
}
