// SPDX-License-Identifier: Apache-2.0
//
//	SDK_DIR=… E2B_API_KEY=… E2B_API_URL=… E2B_SANDBOX_URL=… node main.mjs AREA
import { runAll } from './harness.mjs';

await import(`./${process.argv[2]}.mjs`);
await runAll();
