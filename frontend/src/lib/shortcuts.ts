/* The keys of the window, as this computer has them. */
import { strings } from './strings';

export const onMac = typeof navigator !== 'undefined' && /mac/i.test(navigator.platform);

/** Whether a key was pressed together with Ctrl, or Cmd on a Mac, and nothing else. */
export const pressed = (event: KeyboardEvent, key: string): boolean => event.key.toLowerCase() === key && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;

/** What such a key is called: "Ctrl K". */
export const named = (key: string): string => strings.palette.keys(onMac, key);

/** What it is called in aria-keyshortcuts. */
export const keyed = (key: string): string => `${onMac ? 'Meta' : 'Control'}+${key}`;
