// A window that prints a token for whoever a press in it starts.
#include <gtk/gtk.h>
#include <stdio.h>

static gboolean give(GtkWidget *window, GdkEvent *press, gpointer unused) {
	GAppLaunchContext *context = G_APP_LAUNCH_CONTEXT(gdk_display_get_app_launch_context(gdk_display_get_default()));
	GAppInfo *app = g_app_info_create_from_commandline("true", "Porchlight", G_APP_INFO_CREATE_SUPPORTS_STARTUP_NOTIFICATION, NULL);
	char *token = g_app_launch_context_get_startup_notify_id(context, app, NULL);
	printf("token %s\n", token == NULL ? "none" : token);
	fflush(stdout);
	return TRUE;
}

int main(int argc, char **argv) {
	GtkWidget *window;
	gtk_init(&argc, &argv);
	window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
	gtk_window_set_title(GTK_WINDOW(window), "focused");
	gtk_widget_add_events(window, GDK_BUTTON_PRESS_MASK);
	g_signal_connect(window, "button-press-event", G_CALLBACK(give), NULL);
	gtk_widget_show_all(window);
	gtk_main();
	return 0;
}
