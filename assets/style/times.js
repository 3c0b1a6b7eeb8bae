// Says the times of a page in its reader's own time. An end at the end of a day is that day, and of today the hour is enough.
for (const time of document.querySelectorAll("time")) {
  const at = new Date(time.dateTime), last = new Date(at - 1000);
  const whole = !("since" in time.dataset) && last.getHours() === 23 && last.getMinutes() === 59;
  const today = at.toDateString() === new Date().toDateString();
  const how = whole ? { dateStyle: "long" } : today ? { timeStyle: "short" } : { dateStyle: "long", timeStyle: "short" };
  time.textContent = new Intl.DateTimeFormat(document.documentElement.lang, how).format(whole ? last : at);
}
