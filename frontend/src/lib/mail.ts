/* What a mail of the outbox offers beside its text. */
import type { Mail } from './types';

/** The sign-in code a mail carries ("Your code: 123 456"), or ''. */
export function codeOf(mail: Mail): string {
  return mail.text.match(/\bcode:?\s+(\d{3})[ \u00a0]?(\d{3})\b/i)?.slice(1).join(' ') ?? '';
}

/** Its link to act on, or ''. Anything but a web address is left alone. */
export function linkOf(mail: Mail): string {
  return mail.links?.find((link) => /^https?:\/\//.test(link)) ?? '';
}

/** Tells mails apart between two readings of the outbox. */
export function keyOf(mail: Mail): string {
  return [mail.at, mail.to, mail.links?.[0] ?? mail.subject].join(' ');
}
