/*
 * Preloaded into the menu-bar app, unchanged, this lets WebKitWebDriver drive
 * its window: the web view Wails makes is made under automation.
 *
 *   gcc -shared -fPIC -o automation.so automation.c $(pkg-config --cflags --libs webkit2gtk-4.1)
 */
#include <webkit2/webkit2.h>

static WebKitWebView *view;

static WebKitWebView *the_view(WebKitAutomationSession *session, gpointer unused) { return view; }

static void started(WebKitWebContext *context, WebKitAutomationSession *session, gpointer unused) {
	WebKitApplicationInfo *info = webkit_application_info_new();
	webkit_application_info_set_name(info, "Porchlight");
	webkit_automation_session_set_application_info(session, info);
	webkit_application_info_unref(info);
	g_signal_connect(session, "create-web-view", G_CALLBACK(the_view), NULL);
}

GtkWidget *webkit_web_view_new_with_user_content_manager(WebKitUserContentManager *manager) {
	WebKitWebContext *context = webkit_web_context_get_default();
	webkit_web_context_set_automation_allowed(context, TRUE);
	g_signal_connect(context, "automation-started", G_CALLBACK(started), NULL);
	view = g_object_new(WEBKIT_TYPE_WEB_VIEW, "user-content-manager", manager, "is-controlled-by-automation", TRUE, NULL);
	return GTK_WIDGET(view);
}
