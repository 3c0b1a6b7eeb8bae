//go:build production && (windows || cgo)

package page

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/logger"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/options/linux"
	"github.com/wailsapp/wails/v2/pkg/options/mac"
	"github.com/wailsapp/wails/v2/pkg/options/windows"
	"github.com/wailsapp/wails/v2/pkg/runtime"

	"porchlight/assets"
	"porchlight/desktop/language"
	"porchlight/desktop/session"
	"porchlight/frontend"
	"porchlight/internal/words"
)

// loading is how long a page that was ended while hidden may take to come back
// before the window is shown without waiting for it.
const loading = time.Second

// wailsWindow is the window by Wails. Wails can run only once in a process, so
// closing hides: the page's web process is ended then, which gives most of the
// memory back, and started again by the next show.
type wailsWindow struct {
	log  *slog.Logger
	opts Options

	placing atomic.Bool // the owner is being asked where to save something

	mu       sync.Mutex
	ctx      context.Context // of Wails; nil before startup and after shutdown
	quitting bool
	hidden   bool // closed by the owner; no page is running
	waking   bool // to be shown when the page is there
}

func New(log *slog.Logger, opts Options) Window {
	return &wailsWindow{log: log, opts: opts, hidden: opts.StartHidden}
}

func (w *wailsWindow) Run() (err error) {
	if !session.HasDisplay() {
		return errNoDisplay
	}
	dark, ok := startToolkit(w.opts.OnLooks)
	if !ok {
		return errNoToolkit
	}
	// Wails panics where it has no error to return.
	defer func() {
		if r := recover(); r != nil {
			w.log.Error("the window toolkit gave up", "cause", r)
			err = errNoToolkit
		}
	}()
	background := options.NewRGB(0xfa, 0xf9, 0xf7) // --bg of the page, light and dark
	if dark {
		background = options.NewRGB(0x1b, 0x19, 0x17)
	}
	err = wails.Run(&options.App{
		Title:              "Porchlight",
		Width:              960,
		Height:             640,
		MinWidth:           720,
		MinHeight:          480,
		BackgroundColour:   background,
		StartHidden:        w.opts.StartHidden,
		AssetServer:        &assetserver.Options{Assets: frontend.Dist},
		Bind:               w.opts.Bind,
		ErrorFormatter:     forPage,
		Logger:             wailsLog{w.log},
		LogLevelProduction: logger.WARNING,
		OnStartup:          w.started,
		OnDomReady:         w.loaded,
		OnBeforeClose:      w.closing,
		OnShutdown:         func(context.Context) { w.ended() },
		Linux: &linux.Options{
			Icon:             assets.AppIcon,
			ProgramName:      "porchlight-desktop",
			WebviewGpuPolicy: linux.WebviewGpuPolicyNever,
		},
		Mac:     &mac.Options{},
		Windows: &windows.Options{Theme: windows.SystemDefault},
	})
	if err != nil {
		return words.Errorf("Porchlight cannot open its window: %w", err)
	}
	return nil
}

func (w *wailsWindow) set(ctx context.Context) (quitting bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
	return w.quitting
}

func (w *wailsWindow) ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = nil
}

func (w *wailsWindow) started(ctx context.Context) {
	if w.set(ctx) { // quit was asked for meanwhile
		endLoop(ctx)
		return
	}
	windowHidden() // which it is until it is shown
	w.opts.OnStart(ctx)
}

// loaded is called whenever the page is there: at first, and each time it was
// ended or died and came back.
func (w *wailsWindow) loaded(ctx context.Context) {
	watchPage(func(again uint) {
		w.log.Warn("the page of the window died and is loaded again", "shortly_before", again)
	})
	w.mu.Lock()
	waking := w.waking
	w.waking = false
	w.mu.Unlock()
	if waking {
		beforeShow()
		w.toFront(ctx)
	}
}

func (w *wailsWindow) closing(ctx context.Context) (prevent bool) {
	w.mu.Lock()
	if w.quitting {
		w.mu.Unlock()
		return false
	}
	w.hidden, w.waking = true, false
	w.mu.Unlock()
	beforeHide()
	runtime.WindowHide(ctx)
	windowHidden()
	endPage()
	w.opts.OnHide()
	return true
}

func (w *wailsWindow) Show() bool {
	w.mu.Lock()
	ctx, hidden := w.ctx, w.hidden
	if ctx == nil {
		w.mu.Unlock()
		return false
	}
	w.hidden = false
	if hidden && pageEnds {
		w.waking = true
	}
	w.mu.Unlock()
	if !hidden || !pageEnds {
		w.toFront(ctx)
		return true
	}
	loadPage()
	time.AfterFunc(loading, func() { w.loaded(ctx) })
	return true
}

// toFront is the order GTK wants: a window asked to the front while hidden
// would only be marked as wanting attention. Each step may come after the owner has
// closed the window, which the last one would open again, without a page.
func (w *wailsWindow) toFront(ctx context.Context) {
	windowShown()
	beforeFront()
	runtime.WindowShow(ctx)
	runtime.WindowUnminimise(ctx)
	w.mu.Lock()
	closed := w.hidden
	w.mu.Unlock()
	if closed {
		runtime.WindowHide(ctx)
		windowHidden()
	}
}

// onScreen is the context of Wails while the owner has not closed the window, and else nil.
func (w *wailsWindow) onScreen() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hidden {
		return nil
	}
	return w.ctx
}

func (w *wailsWindow) Emit(name string, data any) {
	if ctx := w.onScreen(); ctx != nil {
		runtime.EventsEmit(ctx, name, data)
	}
}

func (w *wailsWindow) Copy(text string) bool {
	ctx := w.onScreen()
	return ctx != nil && runtime.ClipboardSetText(ctx, text) == nil
}

func (w *wailsWindow) Place(name string) (string, error) {
	ctx := w.onScreen()
	switch {
	case ctx == nil:
		return "", words.Errorf("Porchlight's window is closed.")
	case !w.placing.CompareAndSwap(false, true):
		return "", words.Errorf("Porchlight asks where to save already.")
	}
	defer w.placing.Store(false)
	home, _ := os.UserHomeDir() // without one, where the program was started
	path, err := runtime.SaveFileDialog(ctx, runtime.SaveDialogOptions{
		Title: language.Say("Export what Porchlight keeps"), DefaultDirectory: home, DefaultFilename: name, CanCreateDirectories: true,
	})
	if err != nil {
		return "", words.Errorf("Porchlight cannot ask where to save. On the command line it is: porchlight export FILE. (%w)", err)
	}
	return path, nil
}

func (w *wailsWindow) Quit() {
	w.mu.Lock()
	w.quitting = true
	ctx := w.ctx
	w.mu.Unlock()
	if ctx != nil {
		endLoop(ctx)
	}
}

// wailsLog sends what Wails has to say to ours.
type wailsLog struct{ log *slog.Logger }

func (l wailsLog) Print(m string)   { l.log.Debug(m) }
func (l wailsLog) Trace(m string)   { l.log.Debug(m) }
func (l wailsLog) Debug(m string)   { l.log.Debug(m) }
func (l wailsLog) Info(m string)    { l.log.Debug(m) }
func (l wailsLog) Warning(m string) { l.log.Warn(m) }
func (l wailsLog) Error(m string)   { l.log.Error(m) }
func (l wailsLog) Fatal(m string)   { l.log.Error(m) }
