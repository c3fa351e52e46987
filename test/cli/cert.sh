# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# glovebox cert: what it makes, who may read it, and what it refuses. A service with it: test/api/part_ports.py.

cert() {
	capture "$GLOVEBOX" cert "$@" </dev/null
}

# cert_refused STATUS REGEX ARGS…: one line, no output.
cert_refused() {
	local want_status=$1 want=$2

	shift 2
	cert "$@"
	is "$STATUS $(wc -l <"$TAP_TMP/err") $OUT" "$want_status 1 " "refused: cert $*"
	like "$ERR" "^glovebox: .*$want" '... and says why'
}

cert_refused 2 'which domain'
cert_refused 2 'unknown option --frob' sbx.test --frob
cert_refused 2 'needs a value' sbx.test --out
cert_refused 2 "does not take 'more'" sbx.test more
for domain in '' . a..b b.-a a- a_b SBX.test 'a b' sbx.test:8443 '*.sbx.test' "$(printf 'a%.0s' {1..64})" \
	"$(printf 'abcdefg.%.0s' {1..40})test"; do
	cert_refused 2 'is not a domain' "$domain"
done
cert_refused 1 'cannot make the directory' sbx.test --out no/such/place
is "$(find . -mindepth 1)" '' 'nothing was made'

umask 077
cert sbx.test --out tls
umask 022
is "$STATUS $ERR" '0 ' 'cert sbx.test --out tls'
like "$OUT" '--tls-cert .*/tls/cert.pem --tls-key .*/tls/key.pem' 'it shows how to serve with it'
like "$OUT" 'NODE_EXTRA_CA_CERTS=.*/tls/ca.pem' '... and how to trust it'
is "$(cd tls && stat -c '%a %n' -- * | tr '\n' ' ')" '600 ca.pem 600 cert.pem 600 key.pem ' 'umask counts'
rm -r tls
cert sbx.test --out tls
is "$(cd tls && stat -c '%a %n' -- * | tr '\n' ' ')" '644 ca.pem 644 cert.pem 600 key.pem ' 'the key is for its owner alone'
if [ -z "$(type -p openssl)" ]; then
	skip 'the certificate is good' 'no openssl here'
else
	like "$(openssl verify -x509_strict -purpose sslserver -CAfile tls/ca.pem tls/cert.pem 2>&1)" 'OK$' 'the certificate is good'
	names=$(openssl x509 -in tls/cert.pem -noout -ext subjectAltName,keyUsage,extendedKeyUsage,basicConstraints)
	like "$names" 'DNS:sbx.test, DNS:\*.sbx.test, DNS:localhost, DNS:\*.localhost, IP Address:127.0.0.1' '... for the domain, what is below it, and this machine'
	like "$names" 'CA:FALSE' '... and it is no authority'
	is "$(openssl x509 -in tls/cert.pem -noout -pubkey)" "$(openssl pkey -in tls/key.pem -pubout)" 'the key is its own'
	like "$(openssl x509 -in tls/ca.pem -noout -ext basicConstraints)" 'CA:TRUE, pathlen:0' 'what signed it may sign no other authority'
	isnt "$(openssl x509 -in tls/ca.pem -noout -pubkey)" "$(openssl pkey -in tls/key.pem -pubout)" '... and its key is another, which is nowhere'
fi

sums=$(sha256sum tls/*)
cert_refused 1 'key.pem is there already' sbx.test --out tls
is "$(sha256sum tls/*)" "$sums" 'what is there stays as it is'
rm tls/key.pem
cert_refused 1 'cert.pem is there already' other.test --out tls
is "$(find tls -type f | sort | tr '\n' ' ')" 'tls/ca.pem tls/cert.pem ' '... and nothing half-made is left'
