# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is code
#
# Code in a language: every language that is installed says hello, and its compiler says what is wrong.

declare -A code_hello=(
	[bash]='echo hello; read -r x; echo "got $x"'
	[python]=$'print("hello")\nprint("got", input())'
	[javascript]=$'console.log("hello");\nconsole.log("got", require("fs").readFileSync(0, "utf8").trim());'
	[typescript]=$'import { readFileSync } from "fs";\nconst s: string = readFileSync(0, "utf8").trim();\nconsole.log("hello");\nconsole.log("got", s);'
	[c]=$'#include <stdio.h>\nint main(void) { char s[9]; puts("hello"); if (scanf("%8s", s) == 1) printf("got %s\\n", s); return 0; }'
	[cpp]=$'#include <iostream>\nint main() { std::string s; std::cout << "hello" << std::endl; std::cin >> s; std::cout << "got " << s << "\\n"; }'
	[go]=$'package main\nimport "fmt"\nfunc main() { var s string; fmt.Println("hello"); fmt.Scan(&s); fmt.Println("got", s) }'
	[rust]=$'use std::io;\nfn main() { let mut s = String::new(); println!("hello"); io::stdin().read_line(&mut s).unwrap(); println!("got {}", s.trim()); }'
	[java]=$'public class Main { public static void main(String[] a) throws Exception {\nSystem.out.println("hello");\nSystem.out.println("got " + new java.util.Scanner(System.in).next()); } }'
	[ruby]=$'puts "hello"\nputs "got #{gets.strip}"'
	[php]=$'<?php\necho "hello\\n"; echo "got ", trim(fgets(STDIN)), "\\n";'
	[perl]=$'print "hello\\n"; my $s = <STDIN>; chomp $s; print "got $s\\n";'
	[lua]=$'print("hello")\nprint("got " .. io.read("l"))'
	[r]=$'cat("hello\\n")\ns <- readLines(file("stdin"), n = 1)\ncat("got", s, "\\n", sep = " ")'
)
# Something each compiler refuses.
declare -A code_wrong=(
	[typescript]='const x: = 3;' [c]='int main(void) { return x; }' [cpp]='int main() { return x; }'
	[go]=$'package main\nfunc main() { x }' [rust]='fn main() { x }' [java]='public class Main { int x = y; }'
)

echo there >input
mapfile -t code_languages < <(cd "$GLOVEBOX_LANGUAGES" && printf '%s\n' *.lang | sed 's/\.lang$//')
for code_name in "${code_languages[@]}"; do
	if [ -z "${code_hello[$code_name]:-}" ]; then
		fail "$code_name: this suite has no program in it"
		continue
	fi
	printf '%s\n' "${code_hello[$code_name]}" >code
	box_json -l "$code_name" --stdin input code
	if [ "$STATUS" -eq 2 ] && [[ $ERR = *'not installed'* ]]; then
		skip "$code_name" 'not installed'
		continue
	fi
	is "$STATUS $(json '.status, .step, .stdout' | tr -s ' \n' ' ')" '0 ok run hello got there ' "$code_name says hello"
	[ "$TAP_LAST" -eq 0 ] || diag "$ERR" "$(json '.message, .stderr')"
	[ -n "${code_wrong[$code_name]:-}" ] || continue
	is "$(json '.compile.usage.wall_ms > 0 and .compile.limits.memory_bytes > 0')" true "$code_name: compiling is measured"
	printf '%s\n' "${code_wrong[$code_name]}" >code
	box_json -l "$code_name" code
	is "$(json '.status + " " + .step')" 'error compile' "$code_name: an error of the compiler"
	isnt "$STATUS" 0 '... is no success'
	isnt "$(json '.stderr + .stdout')" '' '... and is told'
done

# The ways to name code and language.
echo 'echo "from $0"' >script.sh
box script.sh
is "$STATUS $OUT" '0 from main.sh' 'the language by the name of the file'
box -l bash -c 'echo inline'
is "$OUT" inline '-c'
box --language bash --code 'echo long'
is "$OUT" long '--language, --code'
is "$(echo 'echo piped' | "$GLOVEBOX" run -l bash -)" piped 'code from standard input'
is "$("$GLOVEBOX" run -l bash <(sleep 0.3; echo 'echo substituted') </dev/null)" substituted 'code from a pipe by name'
box -l sh -c 'echo alias'
is "$OUT" alias 'a language by another name'
box -l bash -c 'exit 9'
is "$STATUS" 9 'the status is the program'"'"'s'
box -l bash -c ''
is "$STATUS$OUT" 0 'no code is fine code'
box -l bash --in script.sh:data -c 'cat data'
is "$OUT" 'echo "from $0"' 'code and inputs'
box -l bash --in script.sh:main.sh -c 'echo mine'
is "$STATUS" 125 'an input where the code goes is refused'
head -c 1048576 /dev/zero | tr '\0' '#' >limit.sh
box limit.sh
is "$STATUS" 0 'code that is just as long as it may be'
printf 'echo \303\251\342\202\254' >utf8.sh
box utf8.sh
is "$OUT" $'\303\251\342\202\254' 'code in UTF-8'
