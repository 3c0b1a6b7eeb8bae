/*
 * Every English sentence of the window, a file for each subject. Short, plain,
 * present tense; says what happens and when.
 */
import { ofApps } from './apps';
import { ofPeople } from './people';
import { ofWindow } from './window';

export const strings = { ...ofApps, ...ofPeople, ...ofWindow };
