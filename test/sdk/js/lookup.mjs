// SPDX-License-Identifier: Apache-2.0
//
// Loaded before everything else (node --import): names below sbx.test are this machine. There is no wildcard in
// /etc/hosts, and no name server is asked.
import dns from 'node:dns';

const lookup = dns.lookup;

dns.lookup = (hostname, options, callback) => {
  if (!hostname.endsWith('.sbx.test')) return lookup(hostname, options, callback);
  const [opts, done] = typeof options === 'function' ? [{}, options] : [options, callback];
  if (opts.all) return done(null, [{ address: '127.0.0.1', family: 4 }]);
  return done(null, '127.0.0.1', 4);
};
