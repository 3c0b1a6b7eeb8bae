// Package frontend carries the window's built front end into the desktop
// program.
//
// The sources are Svelte and TypeScript in this directory; `npm run build`
// writes dist/. Before the first build dist holds only .gitkeep, so that the Go
// packages compile without Node; a window opened from such a build is empty.
package frontend

import "embed"

// Dist is the built front end. Everything is below "dist"; the page is
// dist/index.html.
//
//go:embed all:dist
var Dist embed.FS
