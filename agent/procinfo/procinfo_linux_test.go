package procinfo

import (
	"net/netip"
	"strings"
	"testing"
)

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// line is one row of /proc/net/tcp; 1F90 is port 8080.
func line(address, state, uid, inode string) string {
	return "   0: " + address + ":1F90 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000 " + uid + " 0 " + inode + " 1 0 100 0 0 10 0\n"
}

func TestFindListener(t *testing.T) {
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
		name, table string
		inode       uint64
		uid         uint32
		twoUsers    bool
	}{
		{"empty", "", 0, 0, false},
		{"head only", tableHead, 0, 0, false},
		{"loopback", tableHead + line(loopback, "0A", "1000", "77"), 77, 1000, false},
		{"wildcard", tableHead + line(wildcard, "0A", "0", "78"), 78, 0, false},
		{"exact before wildcard", tableHead + line(wildcard, "0A", "0", "78") + line(loopback, "0A", "1000", "77"), 77, 1000, false},
		{"IPv6 wildcard", tableHead + line(any6, "0A", "5", "79"), 79, 5, false},
		{"IPv4 in IPv6", tableHead + line(mapped, "0A", "5", "80"), 80, 5, false},
		{"established is not listening", tableHead + line(loopback, "01", "1000", "77"), 0, 0, false},
		{"another interface", tableHead + line(elsewhere, "0A", "1000", "77"), 0, 0, false},
		{"::1 takes no IPv4", tableHead + line(loopback6, "0A", "1000", "77"), 0, 0, false},
		{"cut short", tableHead + "   0: 0100007F:1F90 00000000:0000 0A", 0, 0, false},
		{"a socket of no process", tableHead + line(loopback, "0A", "5", "0"), 0, 0, false},
		{"two of one user", tableHead + line(loopback, "0A", "5", "81") + line(loopback, "0A", "5", "82"), 81, 5, false},
		{"two users", tableHead + line(loopback, "0A", "5", "81") + line(loopback, "0A", "6", "82"), 81, 5, true},
		{"two users, and one who is nearer", tableHead + line(wildcard, "0A", "5", "81") + line(wildcard, "0A", "6", "82") + line(loopback, "0A", "7", "83"), 83, 7, false},
		{"::1", tableHead + line(loopback6, "0A", "1000", "77"), 0, 0, false},
		{"another port", strings.ReplaceAll(tableHead+line(loopback, "0A", "1000", "77"), "1F90", "1F91"), 0, 0, false},
	} {
		got := findListener([]byte(native(c.table)), netip.AddrPortFrom(IPv4, 8080))
		if got.inode != c.inode || got.uid != c.uid || got.twoUsers != c.twoUsers {
			t.Errorf("%s: found %+v, want inode %d of uid %d, two users %v", c.name, got, c.inode, c.uid, c.twoUsers)
		}
	}
	for _, c := range []struct {
		name, table string
		inode       uint64
	}{
		{"::1", tableHead + line(loopback6, "0A", "1000", "77"), 77},
		{"both families", tableHead + line(any6, "0A", "5", "79"), 79},
		{"exact before both families", tableHead + line(any6, "0A", "5", "79") + line(loopback6, "0A", "1000", "77"), 77},
		{"IPv4 takes no IPv6", tableHead + line(loopback, "0A", "1000", "77"), 0},
		{"nor does all of IPv4", tableHead + line(wildcard, "0A", "1000", "77"), 0},
		{"nor IPv4 in IPv6", tableHead + line(mapped, "0A", "5", "80"), 0},
	} {
		if got := findListener([]byte(native(c.table)), netip.AddrPortFrom(IPv6, 8080)); got.inode != c.inode {
			t.Errorf("%s, asked for IPv6: found %+v, want inode %d", c.name, got, c.inode)
		}
	}
}

func FuzzFindListener(f *testing.F) {
	f.Add([]byte(tableHead+line("0100007F", "0A", "1000", "77")), 8080)
	f.Add([]byte("a b:c d 0A e f g h i j"), 1)
	f.Fuzz(func(t *testing.T, table []byte, port int) {
		if got := findListener(table, netip.AddrPortFrom(IPv4, uint16(port))); (got.inode != 0) != (got.rank > 0) {
			t.Errorf("found %+v", got)
		}
	})
}
