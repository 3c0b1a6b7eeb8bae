/*
 * Every sentence of the window, a file for each subject: in English here, in other
 * languages under their tag, with the same names. Short, plain, present tense; says
 * what happens and when.
 */
import { language, speak as speakLanguage, type Language } from '../language';
import { placesIn } from '../places';
import { ofActivity } from './activity';
import { ofApps } from './apps';
import { ofActivity as ofActivityInGerman } from './de/activity';
import { ofApps as ofAppsInGerman } from './de/apps';
import { ofKnocks as ofKnocksInGerman } from './de/knocks';
import { ofPalette as ofPaletteInGerman } from './de/palette';
import { ofPeople as ofPeopleInGerman } from './de/people';
import { ofInvite as ofInviteInGerman } from './de/invite';
import { ofStart as ofStartInGerman } from './de/start';
import { ofWindow as ofWindowInGerman } from './de/window';
import { ofInvite } from './invite';
import { ofKnocks } from './knocks';
import { ofPalette } from './palette';
import { ofPeople } from './people';
import { pseudo } from './pseudo';
import type { Spoken } from './spoken';
import { ofStart } from './start';
import { ofWindow } from './window';

const english = { nav: placesIn('en'), ...ofActivity, ...ofApps, ...ofInvite, ...ofKnocks, ...ofPalette, ...ofPeople, ...ofStart, ...ofWindow };
type Words = Spoken<typeof english>;
const german: Words = { nav: placesIn('de'), ...ofActivityInGerman, ...ofAppsInGerman, ...ofInviteInGerman, ...ofKnocksInGerman, ...ofPaletteInGerman, ...ofPeopleInGerman, ...ofStartInGerman, ...ofWindowInGerman };

export let strings: Words = english;

/** Has everything said in a language from here on. What is shown already stays as it is. */
export function speak(chosen: Language, locale?: string) {
  speakLanguage(chosen, locale);
  strings = { en: english, de: german, 'en-XA': pseudo(english) as Words }[language];
}
