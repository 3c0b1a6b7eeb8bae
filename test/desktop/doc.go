// Package desktop runs the real menu-bar app on a real desktop: an X server, a
// session bus, a keyring, a notification daemon, a window manager and a panel,
// all private to one test. What the owner would do is done by the panel's own
// protocol and by a real mouse; what came of it is asked of the loopback API and
// of the addresses visitors use, never of the screen.
//
// run.sh builds the app and runs the tests; they carry the build tag rig, because
// they need Debian packages that run.sh names.
package desktop
