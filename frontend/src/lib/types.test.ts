// Holds types.ts to the Go structs it mirrors: every field the agent writes is
// declared under its JSON name, with the same optionality and a fitting type,
// and nothing is declared that the agent never writes.
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { strings } from './strings';

type Fields = Record<string, string>;

function goStructs(source: string): Map<string, Fields> {
  const structs = new Map<string, Fields>();
  for (const [, name, body] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
    const fields: Fields = {};
    for (const line of body!.split('\n')) {
      const embedded = line.match(/^\t(\w+)$/);
      if (embedded) {
        Object.assign(fields, structs.get(embedded[1]!));
        continue;
      }
      const field = line.match(/^\t\w+\s+(\S+)\s+`json:"(\w+)(,omitempty)?"`/);
      if (field) fields[field[2]! + (field[3] ? '?' : '')] = typescriptOf(field[1]!);
    }
    // A struct without JSON is not on the wire: an area of the same name, say.
    if (Object.keys(fields).length > 0) structs.set(name!, fields);
  }
  return structs;
}

function typescriptOf(goType: string): string {
  if (goType.startsWith('*')) return typescriptOf(goType.slice(1));
  if (goType.startsWith('[]')) return typescriptOf(goType.slice(2)) + '[]';
  if (/^u?int(8|16|32|64)?$/.test(goType)) return 'number';
  return { bool: 'boolean', 'time.Time': 'string' }[goType] ?? goType;
}

function tsInterfaces(source: string): Map<string, Fields> {
  const file = ts.createSourceFile('types.ts', source, ts.ScriptTarget.Latest);
  const interfaces = new Map<string, Fields>();
  file.forEachChild((node) => {
    if (!ts.isInterfaceDeclaration(node)) return;
    const fields: Fields = {};
    for (const clause of node.heritageClauses ?? [])
      for (const parent of clause.types) Object.assign(fields, interfaces.get(parent.expression.getText(file)));
    for (const member of node.members)
      if (ts.isPropertySignature(member))
        fields[member.name.getText(file) + (member.questionToken ? '?' : '')] = member.type!.getText(file);
    interfaces.set(node.name.text, fields);
  });
  return interfaces;
}

const sources = [...readdirSync('../agent/agentapi').map((file) => `../agent/agentapi/${file}`), '../desktop/ui/settings.go'];
const go = goStructs(
  sources
    .filter((file) => file.endsWith('.go') && !file.endsWith('_test.go'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n'),
);
const declared = tsInterfaces(readFileSync('src/lib/types.ts', 'utf8'));

test('the Go source was understood', () => {
  expect(go.get('OwnerApp')).toMatchObject({ name: 'string', 'host?': 'string', listener: 'Listener', answering: 'boolean' });
});

test.each([...declared.keys()])('%s has the fields of its Go struct', (name) => {
  expect(go.has(name), `agentapi has no struct ${name}`).toBe(true);
  expect(declared.get(name)).toEqual(go.get(name));
});

test('Status and Mode list every constant', () => {
  const source = readFileSync('../agent/agentapi/agentapi.go', 'utf8');
  const mirror = readFileSync('src/lib/types.ts', 'utf8');
  for (const name of ['Status', 'Mode']) {
    const values = [...source.matchAll(new RegExp(`^\\t${name}\\w+\\s+${name} = "(\\w+)"`, 'gm'))].map((m) => m[1]!);
    const union = mirror.match(new RegExp(`type ${name} = ([^;]+);`))![1]!;
    expect(values.length).toBeGreaterThan(0);
    expect([...union.matchAll(/'(\w+)'/g)].map((m) => m[1])).toEqual(values);
  }
});

test('every kind of notification has its switch, every kind of activity its words', () => {
  const kinds = [...readFileSync('../agent/agentapi/kinds.go', 'utf8').matchAll(/^\tKind\w+\s+= "(\w+)"/gm)].map((m) => m[1]!);
  expect(kinds.length).toBeGreaterThan(0);
  expect(Object.keys(strings.settings.kinds).sort()).toEqual(kinds.sort());
  const activity = [...readFileSync('../agent/agentapi/doors.go', 'utf8').matchAll(/^\tActivity\w+\s+= "(\w+)"/gm)].map((m) => m[1]!);
  expect(activity.length).toBeGreaterThan(0);
  expect(Object.keys(strings.activity.did)).toEqual(expect.arrayContaining(activity));
});
