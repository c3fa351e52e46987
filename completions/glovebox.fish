# SPDX-License-Identifier: Apache-2.0
#
# fish completion for glovebox(1).

function __glovebox_languages
	glovebox languages --no-versions 2>/dev/null | awk 'NR > 1 { print $1 }'
end

# True while the options of `glovebox run` are typed, not the command behind --.
function __glovebox_in_run
	set -l words (commandline -opc)
	test (count $words) -ge 2; and test "$words[2]" = run; and not contains -- -- $words
end

function __glovebox_sets
	glovebox egress set ls 2>/dev/null | cut -f1
end

function __glovebox_sandboxes
	glovebox ls -q 2>/dev/null
end

function __glovebox_keys
	glovebox key ls 2>/dev/null | awk 'NR > 1 { print $1; if ($2 != "-") print $2 }'
end

# True behind this verb (and this action of it), not behind a --.
function __glovebox_at
	set -l words (commandline -opc)
	contains -- -- $words; and return 1
	test (count $words) -ge 2; and test "$words[2]" = $argv[1]; or return 1
	test (count $argv) -lt 2; or begin
		test (count $words) -ge 3; and test "$words[3]" = $argv[2]
	end
end

# True right behind this verb.
function __glovebox_after
	set -l words (commandline -opc)
	test (count $words) -eq 2; and test "$words[2]" = $argv[1]
end

set -l verbs run repl languages egress serve key cert config secret create ls exec shell cp logs inspect network stats pause resume snapshot kill doctor version help
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -f
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a run -d 'run code or a command in a sealed box'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a repl -d 'a notebook prompt on a sealed box'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a languages -d 'show the languages that can be run here'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a egress -d 'keep rule sets for the network, and ask what they allow'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a serve -d 'serve sandboxes over HTTP'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a key -d 'make, show, rotate and revoke keys'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a cert -d 'make a certificate for a domain of sandbox addresses'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a config -d 'check and show settings'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a secret -d 'keep values that only requests of sandboxes get'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a create -d 'create a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a ls -d 'list sandboxes'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a exec -d 'run a command in a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a shell -d 'open a terminal in a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a cp -d 'copy files into a sandbox or out of it'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a logs -d 'show what happened in a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a inspect -d 'show everything about a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a network -d 'show or change what a sandbox may reach'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a stats -d 'show what sandboxes use'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a pause -d 'freeze a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a resume -d 'let a paused sandbox go on'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a snapshot -d 'keep the files of a sandbox, to start others from'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a kill -d 'end a sandbox'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a doctor -d 'check what protections this machine offers'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a version -d 'show the version'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a help -d 'show the verbs'

complete -c glovebox -n __glovebox_in_run -s l -l language -x -a '(__glovebox_languages)' -d 'language of the code'
complete -c glovebox -n __glovebox_in_run -s c -l code -x -d 'the code itself'
complete -c glovebox -n __glovebox_in_run -s t -l template -x -a 'base (__fish_complete_directories)' -d 'file system to start from'
complete -c glovebox -n __glovebox_in_run -l stdin -r -F -d 'standard input of the program'
complete -c glovebox -n __glovebox_in_run -l in -r -F -d 'copy a file or directory in'
complete -c glovebox -n __glovebox_in_run -l out -x -a '(__fish_complete_directories)' -d 'copy /home/user/out to a new or empty directory'
complete -c glovebox -n __glovebox_in_run -l env -x -d 'set a variable, NAME=VALUE'
complete -c glovebox -n __glovebox_in_run -l service -d 'in the running service'
complete -c glovebox -n __glovebox_in_run -l local -d 'in this process'
complete -c glovebox -n __glovebox_in_run -l no-zygote -d 'in the service, start Python anew'
complete -c glovebox -n __glovebox_in_run -l allow -x -d 'let it reach a host, an address or a range'
complete -c glovebox -n __glovebox_in_run -l allow-set -x -a '(__glovebox_sets)' -d 'what a rule set allows'
complete -c glovebox -n __glovebox_in_run -l allow-private -x -d 'let rules reach into a private range'
complete -c glovebox -n __glovebox_in_run -l net -x -a 'none learn' -d 'no network, or learn what it needs'
complete -c glovebox -n __glovebox_in_run -l learn-to -r -F -d 'write what was learned to a file'
complete -c glovebox -n __glovebox_in_run -l timeout -x -a '1s 5s 30s 5m' -d 'wall clock'
complete -c glovebox -n __glovebox_in_run -l cpu-time -x -a '1s 10s 60s' -d 'CPU time'
complete -c glovebox -n __glovebox_in_run -l cpus -x -a '0.5 1 2' -d 'CPU share'
complete -c glovebox -n __glovebox_in_run -l memory -x -a '64M 256M 1G' -d memory
complete -c glovebox -n __glovebox_in_run -l disk -x -a '64M 256M 1G' -d 'files it writes'
complete -c glovebox -n __glovebox_in_run -l files -x -a '1000 65536' -d 'number of files'
complete -c glovebox -n __glovebox_in_run -l pids -x -a '16 64 256' -d processes
complete -c glovebox -n __glovebox_in_run -l output -x -a '64K 1M 16M' -d 'what it prints'
complete -c glovebox -n __glovebox_in_run -l json -d 'one JSON object'
complete -c glovebox -n __glovebox_in_run -l raw -d 'do not defuse control characters on a terminal'
complete -c glovebox -n __glovebox_in_run -s v -l verbose -d 'say what was used and which protections were on'

complete -c glovebox -n '__glovebox_at repl' -f
complete -c glovebox -n '__glovebox_at repl' -s l -l language -x -a '(__glovebox_languages)' -d 'language of the cells'
complete -c glovebox -n '__glovebox_at repl' -s t -l template -x -a 'base (__fish_complete_directories)' -d 'file system to start from'
complete -c glovebox -n '__glovebox_at repl' -l in -r -F -d 'copy a file or directory in'
complete -c glovebox -n '__glovebox_at repl' -l env -x -d 'set a variable, NAME=VALUE'
complete -c glovebox -n '__glovebox_at repl' -l pictures -x -a '(__fish_complete_directories)' -d 'where pictures are saved'
complete -c glovebox -n '__glovebox_at repl' -l service -d 'in the running service'
complete -c glovebox -n '__glovebox_at repl' -l local -d 'in a box of our own'
complete -c glovebox -n '__glovebox_at repl' -l timeout -x -a '1s 5s 30s 5m' -d 'wall clock of a cell'
complete -c glovebox -n '__glovebox_at repl' -l cpu-time -x -a '1s 10s 60s' -d 'CPU time of a cell'
complete -c glovebox -n '__glovebox_at repl' -l output -x -a '64K 1M 8M' -d 'output of a cell that is shown'
complete -c glovebox -n '__glovebox_at repl' -l cpus -x -a '0.5 1 2' -d 'CPU share'
complete -c glovebox -n '__glovebox_at repl' -l memory -x -a '256M 512M 1G' -d memory
complete -c glovebox -n '__glovebox_at repl' -l disk -x -a '64M 256M 1G' -d 'files it writes'
complete -c glovebox -n '__glovebox_at repl' -l files -x -a '1000 65536' -d 'number of files'
complete -c glovebox -n '__glovebox_at repl' -l pids -x -a '64 256' -d processes
complete -c glovebox -n '__glovebox_at repl' -l json -d 'JSON lines, for programs'
complete -c glovebox -n '__glovebox_at repl' -l raw -d 'do not defuse control characters on a terminal'
complete -c glovebox -n '__glovebox_at repl' -s v -l verbose -d 'say what each cell used'

complete -c glovebox -n '__fish_seen_subcommand_from languages' -f
complete -c glovebox -n '__fish_seen_subcommand_from languages' -l no-versions -d 'do not ask each for its version'
complete -c glovebox -n '__fish_seen_subcommand_from languages' -l json -d 'a JSON array'
complete -c glovebox -n '__fish_seen_subcommand_from doctor' -f
complete -c glovebox -n '__fish_seen_subcommand_from doctor' -l fix -d 'repair what can safely be repaired'
complete -c glovebox -n '__fish_seen_subcommand_from doctor' -l json -d 'one JSON object'

complete -c glovebox -n '__glovebox_at serve' -f
complete -c glovebox -n '__glovebox_at serve' -l config -r -F -d settings
for setting in (glovebox serve --help 2>/dev/null | string match -r '^ +--[a-z-]+' | string trim | string sub -s 3)
	contains -- $setting config help; or complete -c glovebox -n '__glovebox_at serve' -l $setting -r -F -d 'a setting'
end

complete -c glovebox -n '__glovebox_at key' -f
complete -c glovebox -n '__glovebox_after key' -a 'create ls revoke rotate'
complete -c glovebox -n '__glovebox_at key revoke; or __glovebox_at key rotate' -a '(__glovebox_keys)'
complete -c glovebox -n '__glovebox_at key' -l name -x -d 'how to call it'
complete -c glovebox -n '__glovebox_at key' -l expires -x -a '12h 30d 90d 365d' -d 'until when it is good'
complete -c glovebox -n '__glovebox_at key' -l scope -x -a 'sandboxes read admin' -d 'what it is good for'
complete -c glovebox -n '__glovebox_at key' -l all -d 'revoked ones too'
complete -c glovebox -n '__glovebox_at key' -l state -x -a '(__fish_complete_directories)' -d 'state directory of the service'
complete -c glovebox -n '__glovebox_at key' -l config -r -F -d 'settings of the service'

complete -c glovebox -n '__glovebox_at egress' -f
complete -c glovebox -n '__glovebox_after egress' -a 'set check'
complete -c glovebox -n '__glovebox_at egress set' -a 'ls show save rm'
complete -c glovebox -n '__glovebox_at egress' -l allow -x -d 'check: a rule of the box'
complete -c glovebox -n '__glovebox_at egress' -l allow-set -x -a '(__glovebox_sets)' -d 'check: a set that the box uses'
complete -c glovebox -n '__glovebox_at egress' -l force -d 'save: replace a set'
complete -c glovebox -n '__glovebox_at egress' -l json -d 'JSON, for programs'
complete -c glovebox -n '__glovebox_at egress' -l config -r -F -d settings

complete -c glovebox -n '__glovebox_at secret' -f
complete -c glovebox -n '__glovebox_after secret' -a 'set ls rm'
complete -c glovebox -n '__glovebox_at secret' -l from-file -r -F -d 'set: read the value from there'
complete -c glovebox -n '__glovebox_at secret' -s q -l quiet -d 'ls: only names'

complete -c glovebox -n '__glovebox_at cert' -f
complete -c glovebox -n '__glovebox_at cert' -l out -r -F -d 'where to'

complete -c glovebox -n '__glovebox_at config' -f
complete -c glovebox -n '__glovebox_after config' -a 'check show example'
complete -c glovebox -n '__glovebox_at config check' -F
complete -c glovebox -n '__glovebox_at config' -l config -r -F -d 'the file to show'

for verb in key config secret create ls logs inspect network stats snapshot
	complete -c glovebox -n "__glovebox_at $verb" -s o -l output -x -a 'json table' -d 'what to print'
end
for verb in exec shell logs inspect network stats pause resume snapshot kill
	complete -c glovebox -n "__glovebox_at $verb" -f -a '(__glovebox_sandboxes)'
end
for verb in exec shell cp
	complete -c glovebox -n "__glovebox_at $verb" -s u -l user -x -a 'user root' -d 'as this user of the sandbox'
end
for verb in create resume
	complete -c glovebox -n "__glovebox_at $verb" -l timeout -x -a '5m 1h 24h' -d 'when it ends by itself'
end
for verb in create exec
	complete -c glovebox -n "__glovebox_at $verb" -l env -x -d 'set a variable, NAME=VALUE'
end
for verb in create network
	complete -c glovebox -n "__glovebox_at $verb" -l allow -x -d 'let it reach a host or network'
	complete -c glovebox -n "__glovebox_at $verb" -l allow-set -x -d 'let it reach what a rule set allows'
	complete -c glovebox -n "__glovebox_at $verb" -l deny -x -d 'keep it from a network'
end
complete -c glovebox -n '__glovebox_at network' -l none -d 'nothing at all'
complete -c glovebox -n '__glovebox_at network' -l default -d 'what the service gives'
complete -c glovebox -n '__glovebox_at create' -l no-network -d 'nothing at all'
complete -c glovebox -n '__glovebox_at logs' -l network -d 'only about the network'
complete -c glovebox -n '__glovebox_at create' -f -a 'base code-interpreter-v1'
complete -c glovebox -n '__glovebox_at create' -l pause -d 'then it is paused, not killed'
complete -c glovebox -n '__glovebox_at create' -l metadata -x -d 'something to find it by, KEY=VALUE'
complete -c glovebox -n '__glovebox_at ls' -f
complete -c glovebox -n '__glovebox_at ls' -l state -x -a 'running paused' -d 'only those'
complete -c glovebox -n '__glovebox_at ls' -s q -l quiet -d 'only their ids'
complete -c glovebox -n '__glovebox_at exec' -s i -l stdin -d 'pass our standard input on'
complete -c glovebox -n '__glovebox_at exec' -s w -l cwd -x -d where
complete -c glovebox -n '__glovebox_at exec' -l raw -d 'do not defuse control characters on a terminal'
complete -c glovebox -n '__glovebox_at logs' -s f -l follow -d 'go on until the sandbox ends'
complete -c glovebox -n '__glovebox_at stats' -s a -l all -d 'all that are kept'
complete -c glovebox -n '__glovebox_at pause' -l files-only -d 'keep only their files'
complete -c glovebox -n '__glovebox_at snapshot' -l name -x -d 'how to call it'

for verb in run repl languages egress serve key cert config secret create ls exec shell cp logs inspect network stats pause resume snapshot kill doctor
	complete -c glovebox -n "__glovebox_at $verb" -s h -l help -d 'show the options'
end
