package local

import (
	"context"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// forgetPeople takes everybody's access to this computer away but the owner's,
// and every remote client's. The owner keeps the account id, by which apps know
// them.
func (p *controlPlane) forgetPeople(ctx context.Context) error {
	people, err := p.Service.People.List(ctx, p.computerID)
	if err != nil {
		return words.Errorf("cannot tell who had access on this computer alone: %w", err)
	}
	for _, person := range people {
		if person.Role == controlapi.RoleOwner || person.Status == controlapi.PersonRemoved {
			continue
		}
		if _, err := p.Service.People.Remove(ctx, p.computerID, controlapi.Remove{AccountID: person.AccountID}); err != nil {
			return words.Errorf("cannot end the access %s had on this computer alone: %w", person.Email, err)
		}
	}
	grants, err := p.Service.Grants.OfComputer(ctx, p.computerID)
	if err != nil {
		return words.Errorf("cannot tell which remote clients had access on this computer alone: %w", err)
	}
	for _, g := range grants {
		if err := p.Service.Grants.RevokeForComputer(ctx, p.computerID, controlapi.RevokeGrant{ID: g.ID}); err != nil {
			return words.Errorf("cannot end the access %s had on this computer alone: %w", g.ClientName, err)
		}
	}
	return nil
}
