//go:build production && (windows || (darwin && cgo))

package notes

import (
	"context"
	"fmt"
	"strconv"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// Begin has notes shown by Wails from now on. On macOS its owner may have to be asked
// first, which can take minutes, so it is to be called on a goroutine of its own.
func (n *Notifications) Begin(ctx context.Context) {
	if err := n.byWails(ctx); err != nil {
		n.log.Warn("there are no notifications; the menu and the window have the same", "err", err)
		n.serve(nil)
	}
}

// ToolkitGone shows a note by other means than the toolkit, which is gone, and has nobody
// wait for notes that will never be shown. The main goroutine does not wait for the programs
// that may have to show this one.
func (n *Notifications) ToolkitGone(ctx context.Context, what Note) bool {
	n.serve(nil)
	go func() {
		if err := LastWords(ctx, n.log, what); err != nil {
			n.log.Warn("a notification could not be shown", "about", what.Key, "err", err)
		}
	}()
	return true
}

func (n *Notifications) byWails(ctx context.Context) error {
	if !runtime.IsNotificationAvailable(ctx) {
		return errNoNotes
	}
	if err := runtime.InitializeNotifications(ctx); err != nil {
		return fmt.Errorf("they cannot be begun: %w", err)
	}
	allowed, err := runtime.RequestNotificationAuthorization(ctx)
	if err != nil {
		return fmt.Errorf("whether they are allowed is not known: %w", err)
	}
	if !allowed {
		return errNoNotes
	}
	runtime.OnNotificationResponse(ctx, func(r runtime.NotificationResult) {
		if r.Error != nil {
			n.log.Warn("a click on a notification could not be read", "err", r.Error)
			return
		}
		n.heard(r.Response.ID, r.Response.ActionIdentifier)
	})
	n.serve(&noteService{
		register: func(set string, buttons []string) error {
			category := runtime.NotificationCategory{ID: set}
			for i, text := range buttons {
				category.Actions = append(category.Actions, runtime.NotificationAction{ID: strconv.Itoa(i), Title: text})
			}
			return runtime.RegisterNotificationCategory(ctx, category)
		},
		send: func(id, set, title, body string) error {
			options := runtime.NotificationOptions{ID: id, Title: title, Body: body, CategoryID: set}
			if set == "" {
				return runtime.SendNotification(ctx, options)
			}
			return runtime.SendNotificationWithActions(ctx, options)
		},
		remove: func(id string) {
			_ = runtime.RemovePendingNotification(ctx, id) // neither has anything to say
			_ = runtime.RemoveDeliveredNotification(ctx, id)
		},
	})
	return nil
}
