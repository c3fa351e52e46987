// SPDX-License-Identifier: Apache-2.0
//
//	SDK_DIR=… E2B_API_KEY=… E2B_API_URL=… E2B_SANDBOX_URL=… node main.mjs FILE
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runAll } from './harness.mjs';

await import(pathToFileURL(resolve(process.argv[2])).href);
await runAll();
