# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# Package managers with the registries that this machine is set up for, whatever they are: what they need is learned,
# kept as a rule set, and then allowed, and nothing else is. Where none can be reached, skipped.

# What the package managers of this machine are told, for those in a box: they see neither its environment nor its /etc.
registry_options=(--timeout 120s --cpu-time 60s --memory 1G --disk 512M --pids 256 --output 4M)
while IFS= read -r registry_line; do
	registry_options+=(--env "$registry_line")
done < <(env | grep -E '^(PIP_INDEX_URL|PIP_EXTRA_INDEX_URL|PIP_TRUSTED_HOST|npm_config_registry|NPM_CONFIG_REGISTRY)=' || true)
if [ -r /etc/pip.conf ]; then
	registry_options+=(--in /etc/pip.conf:.config/pip/pip.conf)
fi
if command -v npm >/dev/null; then
	registry_options+=(--env "npm_config_registry=$(npm config get registry 2>/dev/null)")
fi

# registry_box HOST-COMMAND ARGS…: a box with these options. A registry may fail once for us as for anybody: when the host
# reaches it right then, the box has to as well.
registry_box() {
	local host=$1

	shift
	box --local "${registry_options[@]}" "$@"
	if [ "$STATUS" -ne 0 ] && diag "$ERR" && timeout 40 sh -c "$host" >/dev/null 2>&1; then
		box --local "${registry_options[@]}" "$@"
	fi
}

# registry_case NAME HOST-COMMAND -- BOX-COMMAND: learns it, keeps it, does it again with that alone.
registry_case() {
	local name=$1 host=$2

	shift 3
	if ! timeout 40 sh -c "$host" >/dev/null 2>&1; then
		skip "$name: learned and allowed" "it reaches no registry from here"
		return
	fi
	registry_box "$host" --net learn --learn-to "$name.rules" -- "$@"
	is "$STATUS" 0 "$name works while everything is let through"
	[ "$STATUS" -eq 0 ] || diag "$ERR"
	isnt "$(cat "$name.rules")" '' '... and what it needed is known'
	capture env GLOVEBOX_EGRESS_SETS="$PWD/sets" "$GLOVEBOX" egress set save "$name" - <"$name.rules"
	is "$STATUS" 0 '... and kept as a rule set'
	[ "$STATUS" -eq 0 ] || diag "$ERR"
	GLOVEBOX_EGRESS_SETS=$PWD/sets registry_box "$host" --allow-set "$name" -- "$@"
	is "$STATUS" 0 "$name works with that rule set alone"
	[ "$STATUS" -eq 0 ] || diag "$ERR"
	GLOVEBOX_EGRESS_SETS=$PWD/sets box_json --local "${registry_options[@]}" --allow-set "$name" -- \
		curl -fsS --max-time 10 https://not-in-the-set.invalid/
	isnt "$(json .exit_code)" 0 '... and nothing else does'
	is "$(json '.network.refused + .network.lookups_refused > 0')" true '... because it is refused'
}

mkdir sets registry
registry_case pip 'pip3 download -q --no-deps --no-cache-dir -d registry six' -- \
	pip3 download -q --no-deps --no-cache-dir --disable-pip-version-check -d /tmp/found six
registry_case npm 'npm view is-number version' -- \
	sh -c 'mkdir p && cd p && npm init -y >/dev/null && npm install --no-audit --no-fund --no-update-notifier is-number && ls node_modules/is-number/package.json'
if command -v apt-get >/dev/null && [ -d /etc/apt ]; then
	registry_options+=(--in /etc/apt:apt)
	registry_case apt 'mkdir -p registry/state/lists/partial registry/cache/archives/partial &&
		apt-get -qq -o Dir::State="$PWD/registry/state" -o Dir::Cache="$PWD/registry/cache" -o APT::Sandbox::User=root update' -- \
		sh -c 'mkdir -p state/lists/partial cache/archives/partial && : >state/status &&
			apt-get -qq -o Dir::Etc="$PWD/apt" -o Dir::State="$PWD/state" -o Dir::State::status="$PWD/state/status" \
			-o Dir::Cache="$PWD/cache" -o Debug::NoLocking=1 update && ls state/lists/*_Packages* >/dev/null'
else
	skip 'apt: learned and allowed' 'no apt-get here'
fi
