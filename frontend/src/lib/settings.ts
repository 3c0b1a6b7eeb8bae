import type { Settings } from './types';

/** A setting that is on or off. */
export type Toggle = { [Name in keyof Settings]-?: Settings[Name] extends boolean ? Name : never }[keyof Settings];
