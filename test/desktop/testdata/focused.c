// A window that prints a token for whoever it would start, once it has the focus.
#include <gtk/gtk.h>
#include <stdio.h>

static gboolean give(gpointer window) {
	GAppLaunchContext *context;
	GAppInfo *app;
	char *token;
	if (!gtk_window_is_active(GTK_WINDOW(window)))
		return G_SOURCE_CONTINUE;
	context = G_APP_LAUNCH_CONTEXT(gdk_display_get_app_launch_context(gdk_display_get_default()));
	app = g_app_info_create_from_commandline("true", "Porchlight", G_APP_INFO_CREATE_SUPPORTS_STARTUP_NOTIFICATION, NULL);
	token = g_app_launch_context_get_startup_notify_id(context, app, NULL);
	printf("token %s\n", token == NULL ? "none" : token);
	fflush(stdout);
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv) {
	GtkWidget *window;
	gtk_init(&argc, &argv);
	window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
	gtk_window_set_title(GTK_WINDOW(window), "focused");
	gtk_widget_show_all(window);
	g_timeout_add(100, give, window);
	gtk_main();
	return 0;
}
