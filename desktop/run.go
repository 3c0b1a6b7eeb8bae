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
	"porchlight/agent/ownersecret"
	"porchlight/desktop/instance"
	"porchlight/desktop/language"
	"porchlight/desktop/notes"
	"porchlight/desktop/page"
	"porchlight/desktop/runner"
	"porchlight/desktop/session"
	"porchlight/desktop/tray"
	"porchlight/internal/broadcast"
)

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
	token := session.Token()
	held, err := instance.Acquire(o.data)
	if errors.Is(err, instance.ErrTaken) {
		if err = askToShow(ctx, o, token); err == nil {
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
	if o.http != "" {
		logger.Warn("--http is ignored, and can be left out: Porchlight's own code reads what visitors send")
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
	go func() { defer close(answered); held.Run(ctx, a.showWith) }()
	presented := make(chan struct{})
	go func() { defer close(presented); a.present(ctx) }()
	ended := make(chan error, 1)
	go func() {
		ended <- runner.New(runner.Options{
			Log: a.log, DataDir: o.data, API: o.api, HTTPS: o.https, SecretFile: o.secretFile,
			Unlock: a.unlock, ChosenFile: a.chosenFile,
			OnStart: func() { a.showAtStart(o.hidden) }, OnClient: a.onClient, OnState: a.onState,
			OnSecretless: a.onSecretless, OnUnanswered: a.onUnanswered,
		}).Run(ctx)
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
func askToShow(ctx context.Context, o startOptions, token string) error {
	if o.hidden {
		return nil // started again at login, say: it runs, which is all that was wanted
	}
	return instance.AskToShow(ctx, o.data, token)
}

// refuse shows why the app ends, for an owner who started it from a menu and
// has no terminal.
func refuse(ctx context.Context, logger *slog.Logger, why error) {
	if err := notes.LastWords(ctx, logger, notes.Note{Key: notes.KeyTrouble, Title: language.Say("Porchlight could not go on"), Body: language.Sentence(why), Urgent: true}); err != nil {
		logger.Debug("the reason could not be shown", "err", err)
	}
}
