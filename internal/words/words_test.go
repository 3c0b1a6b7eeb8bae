package words

import "testing"

func TestList(t *testing.T) {
	t.Parallel()
	names := []string{"Notes", "Photos", "Diary", "Wiki", "Todo"}
	for n, want := range []string{"", "Notes", "Notes and Photos", "Notes, Photos and Diary", "Notes, Photos and 2 more", "Notes, Photos and 3 more"} {
		if got := English.List(names[:n], 3); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if names[2] != "Diary" {
		t.Error("the names given were changed")
	}
}
