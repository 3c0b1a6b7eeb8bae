package procinfo

import (
	"strings"
	"testing"
)

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// line is one row of /proc/net/tcp; 1F90 is port 8080.
func line(address, state, uid, inode string) string {
	return "   0: " + address + ":1F90 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000 " + uid + " 0 " + inode + " 1 0 100 0 0 10 0\n"
}

func TestFindSocket(t *testing.T) {
	t.Parallel()
	const (
		loopback  = "0100007F"
		wildcard  = "00000000"
		elsewhere = "0401A8C0"
		any6      = "00000000000000000000000000000000"
		mapped    = "0000000000000000FFFF00000100007F"
		loopback6 = "00000000000000000000000001000000"
	)
	for _, c := range []struct {
		name, table, inode, uid string
	}{
		{"empty", "", "", ""},
		{"head only", tableHead, "", ""},
		{"loopback", tableHead + line(loopback, "0A", "1000", "77"), "77", "1000"},
		{"wildcard", tableHead + line(wildcard, "0A", "0", "78"), "78", "0"},
		{"exact before wildcard", tableHead + line(wildcard, "0A", "0", "78") + line(loopback, "0A", "1000", "77"), "77", "1000"},
		{"IPv6 wildcard", tableHead + line(any6, "0A", "5", "79"), "79", "5"},
		{"IPv4 in IPv6", tableHead + line(mapped, "0A", "5", "80"), "80", "5"},
		{"established is not listening", tableHead + line(loopback, "01", "1000", "77"), "", ""},
		{"another interface", tableHead + line(elsewhere, "0A", "1000", "77"), "", ""},
		{"::1 takes no IPv4", tableHead + line(loopback6, "0A", "1000", "77"), "", ""},
		{"cut short", tableHead + "   0: 0100007F:1F90 00000000:0000 0A", "", ""},
		{"another port", strings.ReplaceAll(tableHead+line(loopback, "0A", "1000", "77"), "1F90", "1F91"), "", ""},
	} {
		got, ok := findSocket([]byte(c.table), 8080)
		if ok != (c.inode != "") || got.inode != c.inode || got.uid != c.uid {
			t.Errorf("%s: found %v %+v, want inode %q of uid %q", c.name, ok, got, c.inode, c.uid)
		}
	}
}

func FuzzFindSocket(f *testing.F) {
	f.Add([]byte(tableHead+line("0100007F", "0A", "1000", "77")), 8080)
	f.Add([]byte("a b:c d 0A e f g h i j"), 1)
	f.Fuzz(func(t *testing.T, table []byte, port int) {
		if got, ok := findSocket(table, port); ok != (got.inode != "") {
			t.Errorf("found %v, but %+v", ok, got)
		}
	})
}
