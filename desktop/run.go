package desktop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/desktop/instance"
	"porchlight/desktop/language"
	"porchlight/desktop/notes"
	"porchlight/desktop/page"
	"porchlight/desktop/session"
	"porchlight/desktop/tray"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

// firstPartyApp is the appId the desktop's engine reports (GET /engine/info).
const firstPartyApp = "app.porchlight.desktop"

// run is the life of one start; it returns the exit code.
func run(o startOptions, stderr io.Writer) int {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	// The tray library writes to the standard logger.
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer())

	if !session.HasDisplay() && !session.HasBus() {
		fmt.Fprintln(stderr, "There is no desktop session here, so nobody could see or answer a request. On a computer without a screen, run: porchlight agent --local")
		return 1
	}
	ctx, quit := context.WithCancel(context.Background())
	defer quit()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	language.Speak("")
	held, err := instance.Acquire(o.data)
	if errors.Is(err, instance.ErrTaken) {
		if err = askToShow(ctx, o); err == nil {
			return 0
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		refuse(ctx, logger, err)
		return 1
	}
	defer held.Close()
	kept, err := settingsOf(o)
	if err != nil {
		fmt.Fprintln(stderr, err)
		refuse(ctx, logger, err)
		return 1
	}

	o.secretFile = o.secretFile || kept.get().SecretFile
	prefer := &preferences{settings: kept, dataDir: o.data, secretFile: o.secretFile, inFile: ownersecret.File(o.data), show: showFiles}
	if err := prefer.followMove(); err != nil {
		logger.Warn("Porchlight was moved, and does not start at login any more", "err", err)
	}
	a := newApp(ctx, quit, logger, kept, prefer, agent.Version)
	if page.First {
		broadcast.Raise(a.wantWindow)
	}
	end := a.tray.Start() // before everything else: it is what an owner waits for
	// Last of all, and after the agent: it closes the bus connection that the
	// keychain uses too.
	defer end()
	err = runParts(ctx, quit, o, a, held)
	if err != nil {
		fmt.Fprintln(stderr, err)
		refuse(context.Background(), logger, err)
	}
	a.notes.Close()
	if err != nil {
		return 1
	}
	return 0
}

// settingsOf is what the desktop app remembers, with what this start was told to change.
func settingsOf(o startOptions) (*settings, error) {
	kept, err := openSettings(o.data)
	if err != nil {
		return nil, err
	}
	return kept, kept.change(func(v *settingsValues) {
		v.SecretFile = v.SecretFile && !o.keychain
		if o.panel != "" {
			v.Panel = o.panel
		}
	})
}

// runParts runs the agent, and what shows it, until ctx ends or the agent does, and
// returns the agent's error. The window's loop wants the goroutine that calls.
func runParts(ctx context.Context, quit func(), o startOptions, a *app, held *instance.Instance) error {
	answered := make(chan struct{})
	go func() { defer close(answered); held.Run(ctx, a.showWindow) }()
	presented := make(chan struct{})
	go func() { defer close(presented); a.present(ctx) }()
	ended := make(chan error, 1)
	go func() {
		e := newAgentRunner(o, a.log, a)
		e.onStart = func() { a.showAtStart(o.hidden) }
		ended <- e.run(ctx)
		quit() // whatever ended it, there is nothing left to show
	}()
	a.runWindow(ctx)

	err := <-ended
	<-answered
	select {
	case <-presented:
	case <-time.After(time.Second): // a tray call that waits for a loop that has ended (macOS)
	}
	return err
}

// showAtStart shows the window where the icon alone would not do.
func (a *app) showAtStart(hidden bool) {
	switch {
	case hidden:
	case !a.settings.get().Welcomed:
		a.showWindow() // an icon alone says nothing to somebody who sees it for the first time
	case !tray.Hosted():
		a.log.Info("no panel shows tray icons here, so the window opens instead; the icon appears when a panel does")
		a.showWindow()
	}
}

// askToShow asks the app that runs already to show its window.
func askToShow(ctx context.Context, o startOptions) error {
	if o.hidden {
		return nil // started again at login, say: it runs, which is all that was wanted
	}
	return instance.AskToShow(ctx, o.data)
}

// refuse shows why the app ends, for an owner who started it from a menu and
// has no terminal.
func refuse(ctx context.Context, logger *slog.Logger, why error) {
	if err := notes.LastWords(ctx, logger, notes.Note{Key: notes.KeyTrouble, Title: language.Say("Porchlight could not go on"), Body: language.ErrorInWords(why).Error(), Urgent: true}); err != nil {
		logger.Debug("the reason could not be shown", "err", err)
	}
}

func newAgentRunner(o startOptions, logger *slog.Logger, a *app) *agentRunner {
	var secrets, inFile ownersecret.Store = ownersecret.Keychain(o.data), ownersecret.File(o.data)
	if o.secretFile {
		secrets = inFile
		logger.Info("the owner secret is kept in a file, as asked for")
	}
	return &agentRunner{
		log:         logger,
		secrets:     secrets,
		inFile:      inFile,
		chosenFile:  a.chosenFile,
		locked:      keychainLocked,
		unlockEvery: 2 * time.Second,
		askFor:      askFor,
		unlock:      a.unlock,
		probeEvery:  probeEvery,
		probeFor:    probeFor,
		make: func(ctx context.Context, desk, hash []byte, keychain bool) (*host.Host, error) {
			return host.New(ctx, host.Config{
				DataDir: o.data, API: o.api, Local: true, HTTPS: o.https,
				Mode: agentapi.ModeDesktop, FirstPartyApp: firstPartyApp, HTTP: o.http,
				OwnerSecretHash: hash, DeskSecretHash: desk, Keychain: keychain, Log: logger,
			})
		},
		dial:     func(socket, secret string) client { return agentapi.NewOwner(socket, secret) },
		other:    func(ctx context.Context) (*elsewhere, error) { return findElsewhere(ctx, o.data, o.api) },
		onClient: a.onClient,
		onState:  a.onState,

		onSecretless: a.onSecretless,
		onUnanswered: a.onUnanswered,
	}
}

// findElsewhere looks for an agent that serves the data directory in another
// process: one without a screen, whose owner secret is in a file. Another user's, which
// has the place that this one would take, is an error.
func findElsewhere(ctx context.Context, dataDir, api string) (*elsewhere, error) {
	found, err := host.Find(ctx, dataDir, "")
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, host.Theirs(ctx, api)
	case found.PID == os.Getpid():
		return nil, nil
	}
	secret, err := ownersecret.File(dataDir).Get(ctx)
	if errors.Is(err, ownersecret.ErrNotFound) {
		secret, err = ownersecret.Keychain(dataDir).Get(ctx)
	}
	if err != nil {
		return nil, words.Errorf("Porchlight already runs here (%s, pid %d), and the owner secret to attach to it is not to be had. Quit it, and start Porchlight again. (%w)", string(found.Mode), found.PID, err)
	}
	return &elsewhere{socket: found.OwnerSocket, secret: secret}, nil
}
