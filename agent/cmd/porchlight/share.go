package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/internal/commandline"
)

// putBackIn bounds what is done after Ctrl-C.
const putBackIn = 10 * time.Second

// comesBack is how many seconds an agent may be away that is started anew.
const comesBack = 30

// sharing is one port that is shared for as long as a command runs.
type sharing struct {
	c     cli
	port  int
	name  string // empty until one was found
	label string
	keep  bool // leave the app on
	yes   bool // another user's program too

	client *agentapi.Client // as the owner; nil where the owner secret is not to be had
	here   *here            // nil where an agent was running
	seen   agentapi.PortSeen
	pub    agentapi.Publication
	asked  uint64    // number of the newest request from before
	since  time.Time // when the agent noted the share; zero before that
	// back undoes what was done; nil where there is nothing to put back.
	back func(context.Context) error
}

func shareCommand(c cli) *cobra.Command {
	s := sharing{c: c}
	cmd := &cobra.Command{
		Use:   "share PORT",
		Short: "Put a local port at an address until Ctrl-C, and show who asks for what",
		Long: `Put what listens on a local port at an address until Ctrl-C, and show who asks
for what.

What is shared is printed first: the port, the program, and its user. Only you can
open its address, and whom you invite. When Porchlight is not running, it runs in here until
then; without the owner secret, the menu bar is asked first.

At the end everything is as it was: a name that was not there before is revoked. An
app that you had approved is off its address and keeps its people, label, port and
options.`,
		Example: `  porchlight share 3000
  porchlight share 8000 --name notes --keep`,
		Args: commandline.Exactly("the PORT the app listens on"),
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&s.name, "name", "", "name of its address (default: that of its app, the directory or the program)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		port, err := strconv.Atoi(args[0])
		if err != nil || port < 1 || port > 65535 {
			return commandline.Usagef("share takes the port the app listens on, 1 to 65535, and not %q", args[0])
		}
		s.port = port
		ctx, stop := s.untilTerminalEnds(cmd.Context())
		defer stop()
		if err := s.reach(ctx); err != nil {
			return unlessStopped(err)
		}
		return s.finish(unlessStopped(s.show(ctx)))
	}
	return cmd
}

// unshareCommand is for what a share left behind that was killed.
func unshareCommand(c cli) *cobra.Command {
	return endCommand(c, "unshare NAME", "End a share that was killed, and put back what was before",
		(*agentapi.Client).Unshare, "%s is as it was before it was shared.")
}

func (s *sharing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.label, "label", "", "name that people see (default: that of its app, the directory or the program)")
	f.BoolVar(&s.keep, "keep", false, "leave it at its address at the end")
	f.BoolVar(&s.yes, "yes", false, "share it even if it is a program of another user of this computer")
}

// untilTerminalEnds also ends when the terminal is closed or whoever reads the output
// is gone: what was shared has to be put back then, too. Only the output tells the
// second: SIGPIPE comes of any connection of this process, a visitor's who has left
// among them, and is taken so that it ends nothing.
func (s *sharing) untilTerminalEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	stop := end
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	s.c.terminal = &terminal{out: readOutput{s.c.out, end}, err: readOutput{s.c.err, end}}
	return ctx, func() {
		signal.Stop(pipes)
		stop()
		end()
	}
}

// readOutput is output that somebody reads; gone is called when nobody does any more.
type readOutput struct {
	io.Writer
	gone func()
}

func (w readOutput) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		w.gone()
	}
	return n, err
}

// reach finds the agent, or starts one.
func (s *sharing) reach(ctx context.Context) (err error) {
	if s.client, err = s.c.owner(ctx); err == nil {
		_, err = s.client.State(ctx)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case !errors.Is(err, agentapi.ErrNotRunning):
		s.client = nil
		s.c.remark("You cannot approve it here: %s", err)
		return nil
	}
	if s.here, err = startHere(ctx, s.c.location); err != nil {
		return err
	}
	s.client = s.here.owner()
	return nil
}

// show shares the port and follows what is asked of it until ctx ends.
func (s *sharing) show(ctx context.Context) error {
	if s.client == nil {
		return s.ask(ctx)
	}
	if err := s.putOn(ctx); err != nil {
		return err
	}
	if err := s.tell(ctx); err != nil {
		return err
	}
	return s.follow(ctx)
}

// putOn puts the port at its address, as it was printed.
func (s *sharing) putOn(ctx context.Context) (err error) {
	if s.seen, err = s.client.Port(ctx, s.port, directoryName()); err != nil {
		return err
	}
	state, err := s.client.State(ctx)
	if err != nil {
		return err
	}
	named := s.name != ""
	before, found := s.choose(state)
	if found {
		if err := s.mayTakeOver(ctx, before); err != nil {
			return err
		}
		if !named && before.Shared == nil && before.Status == agentapi.StatusLive && before.Label == s.label {
			s.c.line("%s is on already, and stays on at the end.", whatAsks(before))
			s.pub = agentapi.Publication{Status: before.Status, Host: before.Host, URL: before.URL}
			return nil
		}
	}
	what := agentapi.OwnerApp{AppSummary: agentapi.AppSummary{Label: s.label, LocalPort: s.port}, Listener: s.seen.Listener}
	switch {
	case !s.seen.Own && !s.yes:
		return fmt.Errorf("%s. That is not a program of yours; to share it all the same, add --yes", whatAsks(what))
	case !s.seen.Listening:
		s.c.line("Sharing %s on port %d. Nothing listens there yet; it is reached once something does.", printable(s.label), s.port)
	default:
		s.c.line("Sharing %s.", whatAsks(what))
	}
	earlier, err := s.client.Requests(ctx, "", 0, 0)
	if err != nil {
		return err
	}
	s.asked = earlier.Seq
	// Not given up half way: what it did could not be told, and has to be put back.
	s.pub, err = s.client.Share(context.WithoutCancel(ctx), s.name, agentapi.Share{Seen: agentapi.SeenOf(what), Others: s.yes, Keep: s.keep})
	if err == nil && !s.keep {
		s.back = s.unshare
	}
	return err
}

// mayTakeOver refuses while the app of that name waits for the owner's answer, or is shared
// by another process.
func (s *sharing) mayTakeOver(ctx context.Context, before agentapi.OwnerApp) error {
	switch by := before.Shared; {
	case before.Status == agentapi.StatusPending:
		return fmt.Errorf("%s; it waits for your approval. Type: %s, or: %s, or choose another --name", whatAsks(withProgram(ctx, s.client, before)), s.c.typed("approve %s", before.Name), s.c.typed("deny %s", before.Name))
	case by != nil && by.PID != os.Getpid() && procinfo.Runs(by.PID):
		return fmt.Errorf("%s is shared by process %d already. End that one first, or choose another --name. If it is another program by now, type: %s", s.name, by.PID, s.c.typed("unshare %s", s.name))
	}
	return nil
}

// choose settles name and label, and returns the app that has the name already. Where
// none is given, the engine has said what the port is meant for.
func (s *sharing) choose(state agentapi.OwnerState) (before agentapi.OwnerApp, found bool) {
	name, label := s.name, s.name
	if name == "" {
		name, label = s.seen.Name, s.seen.Label
	}
	s.name = name
	before, err := appIn(state, name)
	s.label = cmp.Or(s.label, before.Label, label)
	return before, err == nil
}

// directoryName is what the working directory is called; empty for the home directory
// and for the root, which say nothing of an app.
func directoryName() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.Clean(home) == dir {
		return ""
	}
	if base := filepath.Base(dir); base != string(filepath.Separator) && base != filepath.VolumeName(dir) {
		return base
	}
	return ""
}

// tell says where it is by now, and who gets in.
func (s *sharing) tell(ctx context.Context) error {
	state, err := s.client.State(ctx)
	if err != nil {
		return err
	}
	app, err := appIn(state, s.name)
	if err != nil {
		return err
	}
	if app.Shared != nil {
		s.since = app.Shared.At
	}
	s.sayAddress()
	who := app.OthersWhoOpen(printable)
	if who != "" {
		who += " can open it, too" + onceClicked(invitedTo(ctx, s.client, app), app.OpenToCount)
	}
	if who = onlyYou(who, app); who != "" {
		who += " "
	}
	sayNetwork(s.c.terminal, app.InNetwork)
	s.c.line("%sTo invite somebody: %s", who, s.c.typed("people invite EMAIL --app %s", argument(printable(app.Label))))
	if link, err := s.client.Open(ctx, s.name); err == nil {
		s.c.line("To open it yourself, once, within a minute: %s", link.URL)
	}
	if state.Account.Local {
		s.c.line("Nobody but this computer reaches that address; for one that others reach: %s", s.c.typed("connect URL"))
		sayWarning(ctx, s.c)
	}
	if app.Paused {
		s.c.line("It is paused: nobody gets in before you type: %s", s.c.typed("resume %s", s.name))
	}
	sayClosed(s.c.terminal, state)
	if s.seen.Listening {
		app.AppHealth = awaitHealth(ctx, s.client, app)
		sayAilment(s.c.terminal, app)
	}
	return nil
}

// sayAddress prints where it is, large enough for a telephone's camera.
func (s *sharing) sayAddress() {
	if s.pub.URL == "" {
		s.c.line("It gets its address once this computer is connected.")
		return
	}
	s.c.line("\n  %s\n", s.pub.URL)
	s.c.qr(s.pub.URL)
}

// follow shows what is asked until ctx ends, or the app is gone.
func (s *sharing) follow(ctx context.Context) error {
	end := "leaves it there"
	if s.back != nil {
		end = "takes it off its address again"
	}
	s.c.line("What visitors ask of it follows; Ctrl-C %s.\n", end)
	for {
		err := followRequests(ctx, s.client, s.name, s.asked, func(q agentapi.VisitorRequest) error {
			s.asked = q.Seq
			s.c.request(q, false)
			s.seeLate(ctx)
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errNoneKept):
			s.c.line("Nothing of what visitors ask is kept, so it cannot be shown.")
			<-ctx.Done()
			return ctx.Err()
		case agentapi.CodeOf(err) == agentapi.CodeNotFound:
			return fmt.Errorf("%s was revoked elsewhere, so it is not shared any more", s.name)
		case !errors.Is(err, agentapi.ErrNotRunning):
			return err
		}
		if err := s.awaitAgent(ctx); err != nil {
			return err
		}
	}
}

// seeLate tells of what began to listen after it was shared that other computers can open
// it, once somebody has come.
func (s *sharing) seeLate(ctx context.Context) {
	if s.seen.Listening {
		return
	}
	if seen, err := s.client.Port(ctx, s.port, directoryName()); err == nil {
		s.seen = seen
		sayNetwork(s.c.terminal, seen.InNetwork)
	}
}

// awaitAgent waits until an agent that was stopped answers again, whatever it says.
func (s *sharing) awaitAgent(ctx context.Context) error {
	s.c.line("Porchlight was stopped. Waiting for it to be started again.")
	for range comesBack {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := s.client.State(ctx); !errors.Is(err, agentapi.ErrNotRunning) {
			return nil
		}
	}
	return agentapi.ErrNotRunning
}

// finish ends it all; err is why. Of an agent that was stopped only what is left to do
// is said.
func (s *sharing) finish(err error) error {
	left := s.end()
	if left != nil && errors.Is(err, agentapi.ErrNotRunning) {
		return left
	}
	return errors.Join(err, left)
}

// end puts back what was before, and ends the agent that was needed for it.
func (s *sharing) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), putBackIn)
	defer cancel()
	var err error
	if s.back != nil {
		err = s.back(ctx)
	}
	if errors.Is(err, agentapi.ErrNotRunning) {
		verb := "unshare"
		if s.client == nil {
			verb = "unpublish"
		}
		err = fmt.Errorf("Porchlight was stopped before %s could be taken off its address. Once it runs again, type: %s", s.name, s.c.typed("%s %s", verb, s.name))
	}
	return errors.Join(err, s.here.end())
}

// unshare is what there is to put back for the owner.
func (s *sharing) unshare(ctx context.Context) error {
	if s.endedElsewhere(ctx) {
		s.c.line("%s was ended elsewhere, and stays as it is.", s.name)
		return nil
	}
	closed, err := s.client.Unshare(ctx, s.name)
	switch agentapi.CodeOf(err) {
	case agentapi.CodeNotFound, agentapi.CodeConflict: // somebody has done it already
		return nil
	}
	if err != nil {
		return err
	}
	s.c.line("%s is off its address, and as it was before.", s.name)
	s.c.closed(closed)
	return nil
}

// endedElsewhere says whether this share is over, so that what has the name by now is
// somebody else's to end.
func (s *sharing) endedElsewhere(ctx context.Context) bool {
	state, err := s.client.State(ctx)
	if err != nil || s.since.IsZero() {
		return false
	}
	app, err := appIn(state, s.name)
	return err == nil && (app.Shared == nil || !app.Shared.At.Equal(s.since))
}
