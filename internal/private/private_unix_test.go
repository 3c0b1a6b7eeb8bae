//go:build !windows

package private_test

const severalListen = false
