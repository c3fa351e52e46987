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

set -l verbs run languages doctor version help
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -f
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a run -d 'run code or a command in a sealed box'
complete -c glovebox -n "not __fish_seen_subcommand_from $verbs" -a languages -d 'show the languages that can be run here'
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

complete -c glovebox -n '__fish_seen_subcommand_from languages' -f
complete -c glovebox -n '__fish_seen_subcommand_from languages' -l no-versions -d 'do not ask each for its version'
complete -c glovebox -n '__fish_seen_subcommand_from languages' -l json -d 'a JSON array'
complete -c glovebox -n '__fish_seen_subcommand_from doctor' -f
complete -c glovebox -n '__fish_seen_subcommand_from doctor' -l fix -d 'repair what can safely be repaired'
complete -c glovebox -n '__fish_seen_subcommand_from doctor' -l json -d 'one JSON object'
complete -c glovebox -n '__fish_seen_subcommand_from run languages doctor' -s h -l help -d 'show the options'
