//go:build production && cgo

package page

/*
#cgo pkg-config: gtk+-3.0
#cgo !webkit2_41 pkg-config: webkit2gtk-4.0
#cgo webkit2_41 pkg-config: webkit2gtk-4.1
#include <gtk/gtk.h>
#include <malloc.h>
#include <stdlib.h>
#include <webkit2/webkit2.h>
#ifdef GDK_WINDOWING_WAYLAND
#include <gdk/gdkwayland.h>
#endif

// Wails keeps its web view to itself; it is the only one below our windows.
static void look(GtkWidget *w, gpointer found) {
	if (WEBKIT_IS_WEB_VIEW(w))
		*(WebKitWebView **)found = WEBKIT_WEB_VIEW(w);
	else if (GTK_IS_CONTAINER(w))
		gtk_container_forall(GTK_CONTAINER(w), look, found);
}

static WebKitWebView *web_view(void) {
	WebKitWebView *found = NULL;
	GList *windows = gtk_window_list_toplevels();
	g_list_foreach(windows, (GFunc)look, &found);
	g_list_free(windows);
	return found;
}

extern void porchlightEndNetwork(void);
static gboolean page_ends;

static void end_network(GObject *cookies, GAsyncResult *answer, gpointer unused) {
	if (page_ends)
		porchlightEndNetwork();
}

static gboolean end_page(gpointer unused) {
	WebKitWebView *v = web_view();
	page_ends = TRUE;
	if (v != NULL) {
		webkit_web_view_terminate_web_process(v);
		// WebKit ends us when its network process dies while it starts; one that answers, has.
		webkit_cookie_manager_get_accept_policy(webkit_web_context_get_cookie_manager(webkit_web_view_get_context(v)), NULL, end_network, NULL);
	}
	malloc_trim(0);
	return G_SOURCE_REMOVE;
}

static gboolean load_page(gpointer unused) {
	WebKitWebView *v = web_view();
	page_ends = FALSE;
	if (v != NULL)
		webkit_web_view_load_uri(v, "wails://wails/");
	return G_SOURCE_REMOVE;
}

extern void porchlightPageCrashed(guint again);

// A window that was closed meanwhile has its page loaded by the next show.
static gboolean load_page_again(gpointer unused) {
	WebKitWebView *v = web_view();
	if (v != NULL && gtk_widget_get_visible(gtk_widget_get_toplevel(GTK_WIDGET(v))))
		webkit_web_view_load_uri(v, "wails://wails/");
	return G_SOURCE_REMOVE;
}

static void page_ended(WebKitWebView *v, WebKitWebProcessTerminationReason why, gpointer unused) {
	static gint64 last;
	static guint again;
	gint64 now = g_get_monotonic_time();
	if (why == WEBKIT_WEB_PROCESS_TERMINATED_BY_API)
		return; // end_page
	again = last != 0 && now - last < 60 * G_USEC_PER_SEC ? MIN(again + 1, 15) : 0;
	last = now;
	porchlightPageCrashed(again);
	g_timeout_add_seconds(2 * again, load_page_again, NULL);
}

// Without a render device WebKit does not tell the page of the desktop's typeface either.
static void take_typeface(WebKitWebView *v) {
	WebKitUserContentManager *manager = webkit_web_view_get_user_content_manager(v);
	gchar *named = NULL, *rule;
	PangoFontDescription *face;
	WebKitUserStyleSheet *sheet;
	g_object_get(gtk_settings_get_default(), "gtk-font-name", &named, NULL);
	face = pango_font_description_from_string(named == NULL ? "" : named);
	g_free(named);
	named = g_strdelimit(g_strdup(pango_font_description_get_family(face) == NULL ? "system-ui" : pango_font_description_get_family(face)), "\"\\\n{}", ' ');
	rule = g_strdup_printf(":root { --font: \"%s\", system-ui, sans-serif !important }", named);
	sheet = webkit_user_style_sheet_new(rule, WEBKIT_USER_CONTENT_INJECT_TOP_FRAME, WEBKIT_USER_STYLE_LEVEL_USER, NULL, NULL);
	webkit_user_content_manager_remove_all_style_sheets(manager);
	webkit_user_content_manager_add_style_sheet(manager, sheet);
	webkit_user_style_sheet_unref(sheet);
	pango_font_description_free(face);
	g_free(named);
	g_free(rule);
}

static void typeface_changed(GtkSettings *settings, GParamSpec *what, gpointer unused) {
	WebKitWebView *v = web_view();
	if (v != NULL)
		take_typeface(v);
}

static gboolean watch_page(gpointer unused) {
	static gboolean watched;
	WebKitWebView *v = web_view();
	if (v != NULL && !watched) {
		watched = TRUE;
		take_typeface(v);
		g_signal_connect(v, "web-process-terminated", G_CALLBACK(page_ended), NULL);
	}
	return G_SOURCE_REMOVE;
}

// A window manager places a window anew each time it is shown.
static int kept_x, kept_y;
static gboolean kept;

static gboolean keep_place(gpointer unused) {
	WebKitWebView *v = web_view();
	if (v != NULL) {
		gtk_window_get_position(GTK_WINDOW(gtk_widget_get_toplevel(GTK_WIDGET(v))), &kept_x, &kept_y);
		kept = TRUE;
	}
	return G_SOURCE_REMOVE;
}

static gboolean take_place(gpointer unused) {
	WebKitWebView *v = web_view();
	if (v != NULL && kept)
		gtk_window_move(GTK_WINDOW(gtk_widget_get_toplevel(GTK_WIDGET(v))), kept_x, kept_y);
	return G_SOURCE_REMOVE;
}

static void cancel(GtkWidget *w, gpointer unused) {
	if (GTK_IS_DIALOG(w))
		gtk_dialog_response(GTK_DIALOG(w), GTK_RESPONSE_CANCEL);
}

// A question on the screen runs a loop of its own, which the end of the outer one
// would wait for.
static gboolean end_loop(gpointer unused) {
	GList *windows = gtk_window_list_toplevels();
	g_list_foreach(windows, (GFunc)cancel, NULL);
	g_list_free(windows);
	gtk_main_quit();
	return G_SOURCE_REMOVE;
}

// The next window that is brought to the front shows this token, without which Wayland's
// compositors only mark it as wanting attention.
static gboolean has_token;

static gboolean on_wayland(void) {
#ifdef GDK_WINDOWING_WAYLAND
	return GDK_IS_WAYLAND_DISPLAY(gdk_display_get_default());
#else
	return FALSE;
#endif
}

static gboolean take_token(gpointer token) {
#ifdef GDK_WINDOWING_WAYLAND
	if (on_wayland()) {
		gdk_wayland_display_set_startup_notification_id(gdk_display_get_default(), token);
		has_token = TRUE;
	}
#endif
	g_free(token);
	return G_SOURCE_REMOVE;
}

// GNOME 43 gives no token for a click in a notification, nor any panel for one in its menu: what
// is on the screen behind others would stay there. A window that is shown anew has the focus. One
// that waits for a dialog of its own stays, or the dialog would be left behind.
static gboolean leave_screen(gpointer unused) {
	WebKitWebView *v = web_view();
	GtkWidget *window = v == NULL ? NULL : gtk_widget_get_toplevel(GTK_WIDGET(v));
	if (!has_token && on_wayland() && window != NULL && gtk_widget_get_mapped(window) && !gtk_window_is_active(GTK_WINDOW(window)) && gtk_grab_get_current() == NULL)
		gtk_widget_hide(window);
	has_token = FALSE;
	return G_SOURCE_REMOVE;
}

// GTK may only be touched by the thread its loop runs on.
static void end_loop_soon(void) { g_idle_add(end_loop, NULL); }
static void take_token_soon(const char *token) { g_idle_add(take_token, g_strdup(token)); }
static void leave_screen_soon(void) { g_idle_add(leave_screen, NULL); }
static void keep_place_soon(void) { g_idle_add(keep_place, NULL); }
static void take_place_soon(void) { g_idle_add(take_place, NULL); }
static void end_page_soon(void) { g_idle_add(end_page, NULL); }
static void load_page_soon(void) { g_idle_add(load_page, NULL); }
static void watch_page_soon(void) { g_idle_add(watch_page, NULL); }

// GDK and WebKit make use of the graphics driver, for pages that are drawn without it
// (WebviewGpuPolicyNever): more than a MiB of this process. Set in C, this reaches WebKit's
// processes, and none that Go starts: a browser, say. What the owner has set stands.
// WebKit would load the driver, nine MiB, only to look for a render device; naming none
// spares that, and has it take every desktop for a light one (see look_changed).
// WebKit would also look at the computer's memory every five seconds for ever, in our process,
// to have its own give back some: they are ended with the window.
static void spare(void) {
	g_setenv("GDK_GL", "disable", FALSE);
	g_setenv("WEBKIT_DISABLE_DMABUF_RENDERER", "1", FALSE);
	g_setenv("WEBKIT_WEB_RENDER_DEVICE_FILE", "/dev/null", FALSE);
	g_setenv("WEBKIT_DISABLE_MEMORY_PRESSURE_MONITOR", "1", FALSE);
}

extern void porchlightDesktopLooks(gboolean dark);

static gboolean dark_name(const gchar *theme) {
	return g_str_has_suffix(theme, "-dark") || g_str_has_suffix(theme, "-Dark") || g_str_has_suffix(theme, ":dark");
}

// What GTK draws windows in: the owner's GTK_THEME, or else what the desktop has set.
static gboolean desktop_dark(GtkSettings *settings) {
	const gchar *named = g_getenv("GTK_THEME");
	gboolean dark = FALSE;
	gchar *theme = NULL;
	if (named != NULL && *named != '\0')
		return dark_name(named);
	g_object_get(settings, "gtk-application-prefer-dark-theme", &dark, "gtk-theme-name", &theme, NULL);
	dark = dark || (theme != NULL && dark_name(theme));
	g_free(theme);
	return dark;
}

// The page cannot see what the desktop looks like, so it is told.
static void look_changed(GtkSettings *settings, GParamSpec *what, gpointer unused) {
	porchlightDesktopLooks(desktop_dark(settings));
}

// -1: the display cannot be reached; otherwise whether the desktop is dark.
static int start_toolkit(void) {
	GtkSettings *settings;
	spare();
	if (!gtk_init_check(NULL, NULL))
		return -1;
	settings = gtk_settings_get_default();
	if (settings == NULL)
		return 0;
	g_signal_connect(settings, "notify::gtk-application-prefer-dark-theme", G_CALLBACK(look_changed), NULL);
	g_signal_connect(settings, "notify::gtk-theme-name", G_CALLBACK(look_changed), NULL);
	g_signal_connect(settings, "notify::gtk-font-name", G_CALLBACK(typeface_changed), NULL);
	look_changed(settings, NULL, NULL);
	return desktop_dark(settings);
}
*/
import "C"

import (
	"context"
	"os"
	"runtime/debug"
	"unsafe"
)

// pageEnds says whether the page is ended while the window is hidden.
const pageEnds = true

// Focus has the window that is shown next come with a token of the desktop's, which whoever is to
// have the focus is given; none for "".
func Focus(token string) {
	if token == "" {
		return
	}
	text := C.CString(token)
	defer C.free(unsafe.Pointer(text))
	C.take_token_soon(text)
}

// beforeHide and beforeShow keep the window where the owner put it.
func beforeHide() { C.keep_place_soon() }
func beforeShow() { C.take_place_soon() }

// beforeFront has a window that is behind others be shown anew, where nothing else brings it
// to the front.
func beforeFront() { C.leave_screen_soon() }

// endPage ends the process the page runs in, and the one that would fetch for it. The
// page's state is lost; it asks for the snapshot when it is loaded again.
func endPage() {
	C.end_page_soon()
	debug.FreeOSMemory() // what drawing needed is not needed again soon
}

// watchPageSoon is watchPage's part that runs on GTK's thread.
func watchPageSoon() { C.watch_page_soon() }

// loadPage starts the page again.
func loadPage() { C.load_page_soon() }

// endLoop ends the toolkit's loop and with it wails.Run. Wails' own way is lost
// when the loop has not begun yet; an idle call waits for it.
func endLoop(context.Context) { C.end_loop_soon() }

// startToolkit starts GTK, before Wails does, which panics where it cannot and
// never tries again. looks is told whether the desktop is dark, at once and when that
// changes; it must not block. To be called on the main thread.
func startToolkit(looks func(dark bool)) (dark, ok bool) {
	desktopLooks.Store(&looks)
	// The choice Wails makes, which comes too late once GTK is started.
	if os.Getenv("GDK_BACKEND") == "" && os.Getenv("DISPLAY") != "" {
		switch os.Getenv("XDG_SESSION_TYPE") {
		case "", "unspecified", "x11":
			_ = os.Setenv("GDK_BACKEND", "x11")
		}
	}
	answer := C.start_toolkit()
	return answer == 1, answer >= 0
}
