package desktop

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"porchlight/agent"
	"porchlight/agent/agentapi"
)

// startOptions are the command line of the desktop app.
type startOptions struct {
	data       string // data directory
	api        string // loopback API, host:port; port 0 picks one
	https      string // local relay, host:port; empty: the kept or default one
	hidden     bool
	secretFile bool
	keychain   bool   // asked for: no file, whatever was chosen before
	panel      string // "", "dark", "light" or "outline"
	http       string // of before 0.1.0, ignored
	version    bool
}

const usage = `Porchlight lets the apps on this computer be opened, at an address of yours, by
exactly the people you choose. This is its menu-bar app. Started again, it shows
the window of the one that runs already.

Usage: porchlight-desktop [options]

  --data DIR       where everything is kept
                   (default %s)
  --api ADDRESS    where local apps ask for an address
                   (default %s)
  --https ADDRESS  where the addresses of this computer are served
                   (default 127.0.0.1:8443)
  --hidden         open no window, whether or not one runs already
  --panel COLOUR   dark or light: what the panel is, so that the icon shows on it,
                   or outline, which shows on any; remembered
  --secret-file    keep the owner secret in a file only you can read, where there
                   is no keychain; --secret-file=false goes back to the keychain
                   after choosing the file in the menu
  --version        print the version
  --help           print this

Environment: PORCHLIGHT_DATA and PORCHLIGHT_API stand for --data and --api,
PORCHLIGHT_SECRET_FILE=1 for --secret-file.
`

// parse reads the command line. flag.ErrHelp means the usage was printed.
func parse(args []string, getenv func(string) string, out io.Writer) (startOptions, error) {
	o := startOptions{
		data:       getenv("PORCHLIGHT_DATA"),
		api:        getenv("PORCHLIGHT_API"),
		secretFile: getenv("PORCHLIGHT_SECRET_FILE") == "1",
	}
	if o.data == "" {
		o.data = agent.DefaultDataDir()
	}
	if o.api == "" {
		o.api = agentapi.DefaultAddress
	}
	if runtime.GOOS == "windows" { // says it to a program that it starts for a notification
		args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-Embedding" })
	}
	f := flag.NewFlagSet("porchlight-desktop", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.data, "data", o.data, "")
	f.StringVar(&o.api, "api", o.api, "")
	f.StringVar(&o.https, "https", "", "")
	f.BoolVar(&o.hidden, "hidden", false, "")
	f.BoolVar(&o.secretFile, "secret-file", o.secretFile, "")
	f.StringVar(&o.panel, "panel", "", "")
	f.StringVar(&o.http, "http", "", "")
	f.BoolVar(&o.version, "version", false, "")
	err := f.Parse(args)
	f.Visit(func(given *flag.Flag) { o.keychain = o.keychain || given.Name == "secret-file" && !o.secretFile })
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, usage, agent.DefaultDataDir(), agentapi.DefaultAddress)
		return o, err
	case err != nil:
		if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
			return o, fmt.Errorf("there is no option --%s", name)
		}
		return o, err
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument: %s", f.Arg(0))
	case o.data == "":
		return o, errors.New("--data needs a directory")
	case !slices.Contains([]string{"", "dark", "light", "outline"}, o.panel):
		return o, fmt.Errorf("--panel is dark, light or outline, not %q", o.panel)
	}
	return o, nil
}

// Main is the whole program; it ends the process. Exit codes: 0 done, 1 refused,
// 2 wrong command line.
func Main() {
	o, err := parse(os.Args[1:], os.Getenv, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintf(os.Stderr, "porchlight-desktop: %v\nTry porchlight-desktop --help.\n", err)
		os.Exit(2)
	case o.version:
		fmt.Println("porchlight-desktop", agent.Version)
		os.Exit(0)
	}
	os.Exit(run(o, os.Stderr))
}
