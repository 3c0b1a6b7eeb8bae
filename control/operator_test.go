package control

import (
	"slices"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// The role is an account's until it is taken away, or the account goes: who gets the
// address afterwards has none.
func TestOperators(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	is := func(id string) bool {
		t.Helper()
		return slices.ContainsFunc(ok[[]Operator](t)(b.Operators.List(t.Context())), func(o Operator) bool { return o.ID == id })
	}
	olga := ok[Operator](t)(b.Operators.Add(t.Context(), "Olga@Porch.Example"))
	if again := ok[Operator](t)(b.Operators.Add(t.Context(), "olga@porch.example")); again != olga || !is(olga.ID) {
		t.Errorf("added again: %+v after %+v", again, olga)
	}
	maya := b.owner()
	if is(maya.AccountID) || is("") || len(ok[[]Operator](t)(b.Operators.List(t.Context()))) != 1 {
		t.Error("somebody else is an operator")
	}
	ok[Operator](t)(b.Operators.Remove(t.Context(), "olga@porch.example"))
	if _, err := b.Operators.Remove(t.Context(), "olga@porch.example"); !IsRefusal(err, controlapi.CodeNotFound) || is(olga.ID) {
		t.Errorf("removed twice: %v", err)
	}
	olga = ok[Operator](t)(b.Operators.Add(t.Context(), "olga@porch.example"))
	programs.Must(t, b.Accounts.Remove(t.Context(), "olga@porch.example"))
	ok[Account](t)(b.Accounts.Ensure(t.Context(), "olga@porch.example"))
	if is(olga.ID) || len(ok[[]Operator](t)(b.Operators.List(t.Context()))) != 0 {
		t.Error("the role outlives its account")
	}
	with := ok[Operator](t)(b.Operators.Add(t.Context(), "maya@example.net"))
	b.passkey(Account{ID: with.ID, Email: with.Email})
	if all := ok[[]Operator](t)(b.Operators.List(t.Context())); olga.Passkey || with.Passkey || len(all) != 1 || !all[0].Passkey {
		t.Errorf("with a passkey: %+v, after %+v and %+v", all, olga, with)
	}
	_, err := b.Operators.Add(t.Context(), "olga")
	wantRefusal(t, err, controlapi.CodeInvalid)
}
