// SPDX-License-Identifier: Apache-2.0
//
// Variables: of the sandbox, of one cell, and what is left of them afterwards.
import assert from 'node:assert/strict';
import { box, common, test } from '../js/harness.mjs';
import { output, run, value } from './kit.mjs';

const READ = {
  python: (name) => `import os\nprint(os.environ.get("${name}", "none"))`,
  javascript: (name) => `console.log(process.env.${name} ?? 'none')`,
  typescript: (name) => `console.log((process.env.${name} as string) ?? 'none')`,
  bash: (name) => `echo "\${${name}:-none}"`,
  r: (name) => `cat(Sys.getenv("${name}", "none"), "\\n", sep="")`,
  java: (name) => `System.out.println(System.getProperty("${name}", "none"));`,
};

for (const [language, read] of Object.entries(READ)) {
  test(`${language}: of the sandbox, of one cell, reset`, async () => {
    const sandbox = await box({ envs: { OF_BOX: 'sandbox' } });
    const get = async (name, envs) => (await output(read(name), { language, envs }, sandbox)).trimEnd();
    if (language !== 'java') assert.equal(await get('OF_BOX'), 'sandbox');
    assert.equal(await get('OF_CELL', { OF_CELL: 'cell' }), 'cell');
    assert.equal(await get('OF_CELL'), 'none');
    assert.equal(await get('OF_BOX', { OF_BOX: 'cell' }), 'cell');
    if (language !== 'java') assert.equal(await get('OF_BOX'), 'sandbox');
  });
}

test('programs that a cell starts have them too', async () => {
  const sandbox = await box({ envs: { OF_BOX: 'sandbox' } });
  assert.equal(await output('!echo $OF_BOX $OF_CELL', { envs: { OF_CELL: 'cell' } }, sandbox), 'sandbox cell\n');
  assert.equal(await output('%%bash\necho $OF_BOX $OF_CELL', {}, sandbox), 'sandbox\n');
});

test('every context has those of the sandbox', async () => {
  const sandbox = await box({ envs: { OF_BOX: 'sandbox' } });
  const context = await sandbox.createCodeContext();
  assert.equal(await value('import os\nos.environ["OF_BOX"]', { context }, sandbox), 'sandbox');
  await sandbox.restartCodeContext(context);
  assert.equal(await value('import os\nos.environ["OF_BOX"]', { context }, sandbox), 'sandbox');
});

test('what a cell sets itself stays', async () => {
  await run('import os\nos.environ["MINE"] = "kept"');
  assert.equal(await value('os.environ["MINE"]'), 'kept');
  assert.equal(await value('os.environ["MINE"]', { envs: { MINE: 'other' } }), 'other');
  assert.equal(await value('os.environ["MINE"]'), 'kept');
});

test('they are reset after an error too', async () => {
  const sandbox = await common();
  await sandbox.runCode('1 / 0', { envs: { GONE: 'yes' } });
  assert.equal(await value('import os\nos.environ.get("GONE", "none")'), 'none');
});

test('odd values and many of them', async () => {
  const odd = { A: '', B: 'a=b', C: 'žluť 🚀', D: 'two\nlines', E: ' $HOME `x` "q" \'s\' \\ ' };
  const code = 'import json, os\nprint(json.dumps({name: os.environ.get(name) for name in "ABCDE"}))';
  assert.deepEqual(JSON.parse(await output(code, { envs: odd })), odd);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`V${i}`, String(i)]));
  assert.equal(await value('os.environ["V0"], os.environ["V199"]', { envs: many }), '(\'0\', \'199\')');
});

test('the usual ones are those of a command', async () => {
  const sandbox = await common();
  const { stdout } = await sandbox.commands.run('echo $HOME $USER $LOGNAME');
  assert.equal(await output('!echo $HOME $USER $LOGNAME'), stdout);
  assert.equal(await value('import os\n[name for name in os.environ if "GLOVEBOX" in name or "E2B_API" in name]'), '[]');
});
