# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is code for a box
#
# glovebox repl: cells from pipes, from programs and from somebody who types.

# cells OPTION…: what is on standard input, as it is.
cells() {
	capture "$GLOVEBOX" repl --local "$@"
}

# lines: the texts of the events of one type, one per line.
events() {
	jq -rc "select(.type == \"$1\") | $2" <"$TAP_TMP/out"
}

# typed SCRIPT OPTION…: at a terminal; see the program.
typed() {
	capture "$HERE/typed" "$GLOVEBOX" repl --local "${@:2}" <<<"$1"
	[ "$STATUS" = 0 ] || tail -c 2000 <<<"$OUT" | cat -v | sed 's/^/# terminal: /'
	OUT=${OUT//$'\r'/}
}

# --- what is asked for ----------------------------------------------------------------------------

for repl_bad in --bogus extra '--env x' '--env' '-l c' '-l pythen' '--memory 1' '--timeout never' '--service --disk 1M' \
	'--service --in /etc/hostname' '--local -t nosuch'; do
	# shellcheck disable=SC2086 # two words are two arguments
	capture "$GLOVEBOX" repl $repl_bad </dev/null
	is "$STATUS" 2 "repl refuses $repl_bad"
	is "$(wc -l <"$TAP_TMP/err")" 1 '... in one line'
done
capture "$GLOVEBOX" repl -l c </dev/null
like "$ERR" 'keeps nothing from cell to cell.*glovebox run.* python' '... and says what else there is'
capture "$GLOVEBOX" repl --help
is "$STATUS" 0 'repl --help'

# --- from a pipe ------------------------------------------------------------------------------------

cells <<<'print(6 * 7)'
is "$STATUS:$OUT:$ERR" '0:42:' 'one cell'
cells <<<'6 * 7'
is "$OUT" 42 'the value of the last expression'
cells < <(printf '%s\n' '# %%' 'x = 6' '# %% the next one' 'x * 7' '# %%' 'import sys; print(x, file=sys.stderr)')
is "$OUT:$ERR" 42:6 'cells that are divided know each other'
cells -l javascript < <(printf '%s\n' 'const x = 6' '// %%' 'x * 7')
is "$OUT" 42 '... also by the comments of another language'
cells < <(printf '%s\n' 'print(1)' '# %%' '1/0' '# %%' 'print(2)')
is "$STATUS:$OUT" 1:1 'the first that fails is the last'
like "$ERR" 'ZeroDivisionError: division by zero' '... and says why'
unlike "$ERR" $'\033' '... without colours'
cells </dev/null
is "$STATUS:$OUT:$ERR" '0::' 'no cell at all'
cells < <(printf 'x = "\377"\n')
is "$STATUS" 1 'a cell that is not UTF-8 is refused'
like "$ERR" 'not valid UTF-8 at byte offset 5' '... with the place'
cells -l bash <<<'x=5; echo $((x + 1)); pwd'
is "$OUT" $'6\n/home/user' 'another language'
echo inside >file.txt
cells --in file.txt --env WORD=given <<<'import os; print(open("file.txt").read() + os.environ["WORD"])'
is "$OUT" $'inside\ngiven' '--in and --env'
cells <<<'import os; print(sorted(v for v in os.environ if "REPL" in v or "TAP" in v))'
is "$OUT" '[]' 'nothing of our environment gets in'

# --- limits -----------------------------------------------------------------------------------------

cells --timeout 500ms <<<'while True: pass'
is "$STATUS" 1 'a cell that runs too long fails'
like "$ERR" 'CellTimeout: it ran longer than its limit, 500 ms; raise --timeout if it needs more' '... and says so'
cells --cpu-time 300ms <<<'while True: pass'
like "$ERR" 'CellCpuLimit: it used more CPU time' 'CPU time'
cells --output 10 <<<'print("x" * 50)'
is "$OUT" xxxxxxxxxx 'output beyond the limit is not shown'
like "$ERR" 'the rest of its stdout is in /tmp/cell-python-1.stdout in the box' '... and can be found'
cells --memory 128M <<<'x = bytearray(1 << 30)'
is "$STATUS" 1 'a cell that needs too much memory fails'
like "$ERR" 'MemoryLimit|ContextDied|MemoryError' '... and says so'

# --- for programs -----------------------------------------------------------------------------------

cells --json < <(printf '%s\n' '{"code": "x = 6; print(\"\u00e9\")"}' '{"code": "x * 7"}' 'nonsense' '{"restart": true}' \
	'{"code": "x"}' '{"code": "import os; os._exit(3)"}' '{"code": "1 + 1"}')
is "$STATUS" 1 'a cell that failed shows in the status'
is "$(events end_of_execution .type | wc -l)" 7 'each request has an end'
is "$(events stdout .text)" $'\u00e9' 'output'
like "$(cat "$TAP_TMP/out")" '"text":"\\u00E9' '... escaped'
is "$(events result .text)" $'42\n2' 'results'
is "$(events error .name)" $'BadRequest\nNameError\nContextDied' 'errors by name'
is "$(events number_of_executions .execution_count | tr '\n' ' ')" '1 2 1 2 1 ' 'cells are counted; a new interpreter counts anew'
is "$(events usage .reason | sort | uniq -c | tr -s ' \n' ' ')" ' 1 died 4 done ' 'each cell says what it used'
cells --json <<<'{"code": "import sys; sys.stdout.buffer.write(b\"\\xe2\\x82\"); sys.stdout.flush(); sys.stdout.buffer.write(b\"\\xac\\xff\\n\")"}'
is "$(events stdout .text | tr -d '\n')" $'\u20ac\ufffd' 'a character that comes in pieces is one; what is none is shown as such'

# --- signals ----------------------------------------------------------------------------------------

env --default-signal=INT "$GLOVEBOX" repl --local < <(echo 'import time; print("begun", flush=True); time.sleep(60)') \
	>begun 2>err &
repl_pid=$!
soon test -s begun || :
kill -INT "$repl_pid"
wait "$repl_pid" || :
is "$(cat begun)" begun 'SIGINT interrupts the cell'
like "$(cat err)" KeyboardInterrupt '... as the language tells it'
rm -f begun
"$GLOVEBOX" repl --local < <(echo 'import time; print("begun", flush=True); time.sleep(60)') >begun 2>err &
repl_pid=$!
soon test -s begun || :
kill -TERM "$repl_pid"
repl_status=0
wait "$repl_pid" || repl_status=$?
is "$repl_status" 143 'SIGTERM ends it'
rm -f begun err

# --- pictures ---------------------------------------------------------------------------------------

repl_png='class P:
    def _repr_png_(self): return b"\x89PNG picture"
P()'
cells <<<"$repl_png"
is "$STATUS:$(cat cell-1.png)" "0:$(printf '\x89PNG picture')" 'a picture becomes a file'
like "$ERR" 'picture: \./cell-1\.png' '... which is named'
cells <<<"$repl_png"
like "$ERR" 'picture: \./cell-1-2\.png' '... and never overwritten'
mkdir shots
cells --pictures shots <<<"$repl_png"
ok '--pictures' test -s shots/cell-1.png

# --- at a terminal ----------------------------------------------------------------------------------

typed 'expect In [1]:
type x = 6\r
expect In [2]:
type x *8\x7f7\x01\x0b\x19x * 8\x7f7\r
expect Out[2]: 42
expect In [3]:
type def f():\r
expect ...:
type return x\r
expect ...:
type \r
expect In [4]:
type f()\r
expect Out[4]: 6
expect In [5]:
type \x1b[A\x1b[D\x1b[D + 1\x1b[H1 +\x1b[F\r
expect In [
type \x03
expect In [
type \x04'
is "$STATUS" 0 'typing, editing, history, and Ctrl-D'
typed 'expect In [1]:
type print(f"""a\r
expect ...:
type b""")\r
expect a
expect b
expect In [2]:
type 1/0\r
expect \x1b[31m
expect ZeroDivisionError: division by zero\x1b[0m
expect In [3]:
type print("beg" + "un"); exec("while True: pass")\r
expect begun
type \x03
expect KeyboardInterrupt
expect In [4]:
type "still " + "here"\r
expect Out[4]: still here
expect In [5]:
type :restart\r
expect all variables are gone
expect In [1]:
type print("\\x1b]0;owned\\x07")\r
expect ^[]0;owned^G
expect In [2]:
type :save made.py\r
expect saved: made.py
expect In [2]:
type :save made.py\r
expect made.py is there already
type :bogus\r
expect there is no :bogus
type :help\r
expect :restart
type :quit\r'
is "$STATUS" 0 'a string over lines, errors in red, Ctrl-C, :restart, :save, defused output'
like "$(cat made.py)" '^# %%' 'what was saved has cells'
like "$(cat made.py)" '#> .*ZeroDivisionError' '... with what they printed'
unlike "$(cat made.py)" $'\033\\[31m' '... without colours of ours'
typed 'expect In [1]:
type \x1b[200~def g():\r    a = 1\r\r    return a\r\r\rg() + 1\r\x1b[201~
type \r
expect Out[1]: 2
expect In [2]:
type \x04'
is "$STATUS" 0 'what is pasted is one cell, empty lines and all'
typed 'expect In [1]:
type import os; os.kill(os.getpid(), 9)\r
expect ContextDied
expect In [
type 1 + 1\r
expect Out[1]: 2
end'
like "$STATUS" '^(0|129)$' 'an interpreter that dies is replaced; a terminal that goes away ends it'
capture "$HERE/typed" env --ignore-signal=HUP setsid -w "$GLOVEBOX" repl --local <<<'expect In [1]:
type import time; print("beg" + "un", flush=True); time.sleep(3); print("more")\r
expect begun
end'
is "$STATUS" 129 '... also in the middle of a cell, when nothing but the output tells it'
