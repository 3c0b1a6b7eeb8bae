import type { Settings } from './types';

/** The settings that can be set, to be set whole: an agent of another version may tell of more. */
export function allOf({ failStaticHours, askAgain, trustEverybody, probe, requests, titles, strangersKnock, displayName, language, updateAddress, updateKey, quiet }: Settings): Settings {
  return { failStaticHours, askAgain, trustEverybody, probe, requests, titles, strangersKnock, displayName, language, updateAddress, updateKey, quiet };
}
