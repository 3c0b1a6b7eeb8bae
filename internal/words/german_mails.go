package words

// germanMails has the mails.
var germanMails = map[string]string{}
