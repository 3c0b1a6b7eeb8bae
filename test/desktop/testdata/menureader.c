/* Reads a menu as the panels that are made with GTK do, with their own library, and prints
 * what is drawn whenever it is asked: for each line of its standard input the lines that
 * can be seen, four spaces for each level, and then that line after a "=".
 *
 * usage: menureader BUS-NAME OBJECT-PATH
 */
#include <gtk/gtk.h>
#include <stdio.h>
#include <string.h>

GtkWidget *dbusmenu_gtkmenu_new(gchar *name, gchar *object); /* its header is in another package */

static void find_label(GtkWidget *widget, gpointer found) {
	if (GTK_IS_LABEL(widget))
		*(GtkLabel **)found = GTK_LABEL(widget);
	else if (GTK_IS_CONTAINER(widget))
		gtk_container_forall(GTK_CONTAINER(widget), find_label, found);
}

static void print_menu(GtkWidget *menu, int depth) {
	GList *items = gtk_container_get_children(GTK_CONTAINER(menu));
	for (GList *at = items; at != NULL; at = at->next) {
		GtkLabel *label = NULL;
		if (!gtk_widget_get_visible(at->data))
			continue;
		gtk_container_forall(GTK_CONTAINER(at->data), find_label, &label);
		printf("%*s%s\n", 4 * depth, "", GTK_IS_SEPARATOR_MENU_ITEM(at->data) || label == NULL ? "--" : gtk_label_get_text(label));
		GtkWidget *below = gtk_menu_item_get_submenu(GTK_MENU_ITEM(at->data));
		if (below != NULL)
			print_menu(below, depth + 1);
	}
	g_list_free(items);
}

static gboolean asked(GIOChannel *in, GIOCondition condition, gpointer menu) {
	char *line = NULL;
	if (g_io_channel_read_line(in, &line, NULL, NULL, NULL) != G_IO_STATUS_NORMAL) {
		gtk_main_quit();
		return FALSE;
	}
	print_menu(menu, 0);
	printf("=%s", line);
	fflush(stdout);
	g_free(line);
	return TRUE;
}

int main(int argc, char **argv) {
	gtk_init(&argc, &argv);
	GtkWidget *menu = g_object_ref_sink(dbusmenu_gtkmenu_new(argv[1], argv[2]));
	g_io_add_watch(g_io_channel_unix_new(0), G_IO_IN | G_IO_HUP, asked, menu);
	puts("reads");
	fflush(stdout);
	gtk_main();
	return 0;
}
