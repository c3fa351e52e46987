// SPDX-License-Identifier: Apache-2.0
//
// What the tested versions of the npm package `e2b` can do: from which of them (since) or up to which
// (until). A test names what it needs, and is left out where the version has no such thing. `has` looks
// into the package where that can be seen from outside: the area "package" compares the two, so that
// nothing is left out that is there.
export const FEATURES = {
  betaCreate: { until: '2.15.0', has: ({ Sandbox }) => 'betaCreate' in Sandbox },
  insecure: { until: '2.45.0' }, // secure: false; later versions always secure
  templateOption: { since: '2.30.5' },
  updateNetwork: { since: '2.30.5', has: ({ Sandbox }) => 'updateNetwork' in Sandbox },
  killSaysWhether: { since: '2.30.5' },
  fullInfo: { since: '2.30.5' }, // lifecycle, network, allowInternetAccess in getInfo
  memoryCache: { since: '2.30.5' },
  metricsRange: { since: '2.30.5' }, // older ones lose start and end
  volumes: { since: '2.30.5', has: (sdk) => 'Volume' in sdk },
  snapshotNames: { since: '2.30.5' },
  snapshotFilter: { since: '2.45.0' },
  listFilters: { since: '2.45.0' }, // order, startedAfter, template
  fork: { since: '2.45.0', has: ({ Sandbox }) => 'fork' in Sandbox },
  keepMemory: { since: '2.45.0' },
  onResume: { since: '2.51.0' },
  iam: { since: '2.45.0' },
  client: { since: '2.45.0', has: (sdk) => 'E2B' in sdk },
  secrets: { since: '2.45.0', has: (sdk) => 'Secret' in sdk && 'create' in sdk.Secret },
  retries: { since: '2.51.0' },
  serviceBusy: { since: '2.51.0', has: (sdk) => 'ServiceBusyError' in sdk },
  uploadModes: { since: '2.30.5' }, // octet-stream and gzip
  fileMetadata: { since: '2.30.5' },
  includeEntry: { since: '2.30.5' },
  healthCheck: { since: '2.30.5' }, // says that the sandbox was killed under a stream
  wholeCharacters: { since: '2.30.5' }, // decodes UTF-8 across chunks
  abortSignal: { since: '2.30.5' },
  handleStdin: { since: '2.30.5' },
  rateLimitClass: { since: '2.30.5' }, // RateLimitError for 429 of the data plane
};

const numbers = (version) => version.split('.').map(Number);

export function compareVersions(a, b) {
  const [x, y] = [numbers(a), numbers(b)];
  for (let i = 0; i < 3; i++) {
    if (x[i] !== y[i]) return x[i] - y[i];
  }
  return 0;
}

export function hasFeature(name, version) {
  const feature = FEATURES[name];
  if (!feature) throw new Error(`no feature '${name}' in features.mjs`);
  return (!feature.since || compareVersions(version, feature.since) >= 0) &&
    (!feature.until || compareVersions(version, feature.until) <= 0);
}
