package words

// germanDesktop has the tray and the notifications.
var germanDesktop = map[string]string{}
