// Package filelimit knows how many files this process may have open; a
// connection is one of them.
package filelimit

// most is the answer where the system sets no limit, or one beyond all use.
const most = 1 << 20
