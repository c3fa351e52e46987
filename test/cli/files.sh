# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# Files in with --in, out with --out.

# --- in ---

echo content >file
chmod 755 file
mkdir -p tree/a/b tree/empty
echo 1 >tree/one
echo 2 >tree/a/two
echo 3 >tree/a/b/three
: >tree/a/nothing
ln -s a/two tree/link
ln -s /etc/hostname tree/absolute
box --in file -- sh -c 'cat file; stat -c "%a %U" file'
is "$OUT" $'content\n755 user' 'a file goes to the home directory, and is the user'"'"'s'
for files_dest in name d/e/name /tmp/name /home/user/x/name /var/tmp/q/name; do
	box --in "file:$files_dest" -- cat "$files_dest"
	is "$OUT" content "a file as $files_dest"
done
box --in file:d/ -- cat d/file
is "$OUT" content 'into a directory with a slash behind it'
box --in file: -- cat file
is "$OUT" content 'an empty destination is none'
cp file 'co:lon'
box --in co:lon -- cat co:lon
is "$OUT" content 'a name with a colon that exists is that name'
box --in co:lon:other -- cat other
is "$OUT" content '... and can have a destination too'
box --in tree -- sh -c 'cd tree; find . -type f | LC_ALL=C sort | xargs cat; readlink link absolute; ls -d empty'
is "$OUT" $'3\n2\n1\na/two\n/etc/hostname\nempty' 'a directory with everything in it, links as links'
box --in tree/ -- cat tree/one
is "$OUT" 1 '... also with a slash behind its name'
box --in tree:elsewhere/deep -- cat elsewhere/deep/a/b/three
is "$OUT" 3 '... also to somewhere else'
box --in tree:. -- true
is "$STATUS" 2 '... but not to a dot'
box --in file --in tree --in file:second -- sh -c 'cat file second tree/one'
is "$OUT" $'content\ncontent\n1' 'several inputs'
box --in file --in tree/one:file -- true
is "$STATUS" 125 'two inputs with one name'
like "$ERR" 'two inputs with one name' '... are refused, and it says why'
box --in tree:t --in file:t/a/new -- cat t/a/new t/a/two
is "$OUT" $'content\n2' 'a file into a directory that came before it'
: >nothing
box --in nothing -- sh -c 'stat -c %s nothing'
is "$OUT" 0 'an empty file'
head -c 3000000 /dev/urandom >big
box --in big -- sha256sum big
is "$OUT" "$(sha256sum big)" '3 MB'
for ((files_i = 0; files_i < 10; files_i++)); do
	box --in big --disk 1M -- true
	[[ $STATUS -eq 125 && $ERR = *--disk* ]] || break
done
is "$files_i" 10 'an input that does not fit is refused with the option to raise, every time'
[ "$TAP_LAST" -eq 0 ] || diag "$ERR"
mkdir -p odd
mkfifo odd/fifo
echo x >odd/file
box --in odd -- cat odd/file
unlike "$ERR" 'Protocol' 'a FIFO in a directory is no mystery'
like "$ERR" 'fifo' '... it is named'
rm -r odd
box --in file -- sh -c 'echo changed >file; rm -rf /home/user/* 2>/dev/null; true'
is "$(cat file)" content 'what happens to a copy does not happen to the file'
mkdir names
files_names=($'new\nline' $'tab\there' $'\033[2J' $'\377\376' ' ' '-n' "it's" '*' $'\303\251' '...')
for files_name in "${files_names[@]}"; do
	printf %s "$files_name" >"names/$files_name"
done
box_json --in names --out out -- cp -r names out
ok 'any name goes in and comes out' diff -r names out
is "$(json '.outputs | length')" "${#files_names[@]}" '... and is in the result'
is "$(json '.outputs[] | select(has("path_base64")) | .path_base64' | base64 -d | od -An -tx1)" ' ff fe' \
	'... exactly, if it is no text'
rm -rf out

# --- out ---

box --out out -- sh -c 'mkdir -p out/d/e out/empty; echo 1 >out/f; echo 2 >out/d/e/g; : >out/nothing; chmod 700 out/f'
is "$(cd out && find . -printf '%y %P\n' | LC_ALL=C sort | tr '\n' ';')" \
	'd ;d d;d d/e;d empty;f d/e/g;f f;f nothing;' 'files and directories come out'
is "$(cat out/f out/d/e/g) $(stat -c %a out/f)" $'1\n2 700' '... with their contents and modes'
is "$(stat -c '%u' out/f)" "$(id -u)" '... and are ours'
rm -rf out
mkdir out
box_json --out out -- sh -c 'mkdir out; echo 1 >out/f; head -c 200000 /dev/urandom >out/r'
is "$(json '.outputs | map("\(.sha256)  \(.path)") | sort | join("\n")')" "$(cd out && sha256sum f r | sort)" \
	'an empty directory is as good as none; the checksums are right'
is "$(json '.outputs | map(.size) | sort | tostring')" '[2,200000]' '... and the sizes'
rm -rf out
box_json --out out -- true
is "$STATUS $(json '.outputs | length') $(ls -A out)" '0 0 ' 'a program that makes no outputs'
rm -rf out
box_json --out out -- sh -c 'mkdir out; cd out; echo x >file; ln -s file link; ln file hard; mkfifo fifo; mkdir d; ln -s /etc d/l'
is "$(json '.refused_outputs | map("\(.path) \(.type)") | sort | join(",")')" 'd/l link,fifo fifo,link link' \
	'links and FIFOs are refused by name'
is "$(cd out && find . -mindepth 1 -printf '%y %P\n' | LC_ALL=C sort | tr '\n' ';')" 'd d;f file;f hard;' \
	'... and the rest comes out'
rm -rf out
box --out out -- sh -c 'mkdir -p out/some/where; ln -s /etc/passwd out/some/where/a-link-with-quite-a-long-name'
like "$ERR" 'some/where/a-link-with-quite-a-long-name' '... by their whole name, for people'
rm -rf out
box_json --out out -- sh -c 'echo file >out'
is "$STATUS $(ls -A out)" '0 ' 'out is a file: nothing comes out'
like "$(json .message)" 'not a directory' '... and it says so'
rm -rf out
box_json --out out --disk 1M -- sh -c 'mkdir out; truncate -s 700000 out/a out/b'
like "$(json .message)" '--disk' 'sparse files count with all their bytes'
is "$(json '.outputs | length') $(find out -type f | wc -l)" '1 1' '... and there is no half a file'
rm -rf out
box_json --out out --files 150 -- sh -c 'mkdir out; cd out; i=0; while [ $i -lt 120 ]; do ln -s x $i; i=$((i+1)); done'
is "$STATUS $(json '.refused_outputs | length')" '0 120' 'many names'
rm -rf out
box_json --out out -- sh -c 'mkdir out; echo x >out/f; exit 3'
is "$STATUS $(json .status) $(cat out/f)" '3 error x' 'outputs of a program that failed'
rm -rf out
box_json --out out --timeout 3s -- sh -c 'mkdir out; echo x >out/f; sleep 60'
is "$STATUS $(json .status) $(cat out/f)" '124 timeout x' '... or was stopped'
rm -rf out
box_json --out out -- sh -c 'mkdir out; echo x >out/f; chmod 000 out/f; echo y >out/g'
is "$STATUS" 0 'a file that even its owner may not read'
isnt "$(json '.message + (.refused_outputs | tostring)')" '[]' '... is mentioned'
rm -rf out
box_json --out out -- sh -c 'p=out; i=0; while [ $i -lt 80 ]; do p=$p/d; i=$((i+1)); done; mkdir -p $p'
like "$STATUS $(json .message)" '^0 .*(deep|levels|nested)' 'directories nested too deep: it says so'
rm -rf out
box --in file:/etc/passwd --out out -- true
is "$STATUS $(find . -name out)" '125 ' 'a run that could not start leaves no directory behind'
box --out out -- no-such-command
is "$STATUS" 127 'a command that is not there'
rm -rf out
