# SPDX-License-Identifier: Apache-2.0
"""The Java kernel: snippets of JShell in one process, errors, interrupts."""
import os
import shutil
import tempfile

import harness
import suite
import tap
from everywhere import built, check, ends_quickly, interrupt_storm, is_interrupted, streams

# Of the language file; the heap is small so that it can be filled quickly.
OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:MaxRAM=512m",
           "-XX:MaxRAMPercentage=60"]


def source_command():
    return ["sh", str(suite.KERNELS / "java" / "kernel.sh")] + OPTIONS


def command():
    if not (shutil.which("java") and shutil.which("javac")):
        raise tap.Skip("no JDK here")
    sources = sorted(str(path) for path in (suite.KERNELS / "java" / "glovebox").glob("*.java"))
    archive = built("java/kernel.jar", str(suite.KERNELS.parent / "tools" / "mkjar"), "@OUTPUT@", *sources)
    return ["java"] + OPTIONS + ["-cp", archive, "glovebox.Kernel"]


def result(text):
    return {"text": text, "is_main_result": True}


# --- cells and state ------------------------------------------------------------------------------------


def test_ready(world):
    """it says its pid, and numbers cells from 1"""
    with world.new() as kernel:
        check((kernel.ready, kernel.greeting.parts), (kernel.process.pid, []))
        check(kernel.cell("int x = 41;").parts, [("count", 1)])
        check(kernel.cell("x + 1").parts, [("count", 2), ("result", result("42"))])
        check(kernel.cell().parts, [])
        check(kernel.cell("// nothing").parts, [("count", 3)])


def test_from_source(world):
    """without an archive it compiles itself"""
    with tempfile.TemporaryDirectory() as there, world.new(source_command(),
                                                           env={**os.environ, "TMPDIR": there}) as kernel:
        check(kernel.cell("1 + 1").parts, [("count", 1), ("result", result("2"))])


def test_state(world):
    """variables, methods, classes and imports stay and can be made anew"""
    kernel = world.kernel
    kernel.cell("import java.time.Duration;\nint n = 3;\nint twice(int a) { return 2 * a; }\nrecord R(int a, String b) {}\n"
                "enum Colour { RED, BLUE }\ninterface Shape { double area(); }")
    check(kernel.cell("Shape s = () -> 2.5;\ntwice(n) + \" \" + new R(1, \"z\") + Colour.BLUE + s.area() + Duration.ofSeconds(3)").text,
          "6 R[a=1, b=z]BLUE2.5PT3S")
    kernel.cell("String n = \"now text\"; int twice(int a) { return 20 * a; }")
    check(kernel.cell("n + twice(1)").text, "now text20")
    check(kernel.cell("var l = new ArrayList<Integer>(); l.add(4); Stream.of(1, 2).map(i -> i * 2).forEach(l::add);\nl").text, "[4, 2, 4]")


def test_values(world):
    """the value of the last expression is the result; a semicolon keeps it back"""
    for code, text in (("\"a\\\"b\\n\\té😀\"", "a\"b\n\té😀"), ("'c'", "c"), ("new int[] {1, 2}", "int[2] { 1, 2 }"),
                       ("null", "null"),
                       ("1 + 1;", None), ("System.out.print(\"\")", None), ("int y = 5", None),
                       ("Map.of(1, \"b\")", "{1=b}"), ("  2  // two", "2")):
        check((code, world.kernel.cell(code).text), (code, text))


def test_statements(world):
    """statements at the top level, and a class with a main method"""
    check(world.kernel.cell("for (int i = 0; i < 3; i++) {\n    System.out.println(i);\n}\nif (true) { System.out.println(\"yes\"); }").stdout, "0\n1\n2\nyes\n")
    check(world.kernel.cell("public class Main { public static void main(String[] a) { System.out.println(\"main \" + a.length); } }\n"
                            "Main.main(new String[0]);").stdout, "main 0\n")


def test_pieces(world):
    """code in pieces that cut characters"""
    check(world.kernel.cell("System.out.print(\"äöü€😀\"); \"€😀\".length()", piece=1).parts[1:],
          [("stdout", "äöü€😀".encode()), ("result", result("3"))])


def test_large(world):
    """a megabyte of code"""
    check(world.kernel.cell("/* " + "x" * 1_000_000 + " */ 5").text, "5")


def test_large_values(world):
    """values and errors that are too large"""
    kernel = world.kernel
    check(len(kernel.cell("\"é\".repeat(1_000_000)").text), 1_000_000)
    check(kernel.cell("\"x\".repeat(30_000_000)").text, "the result is too large to be shown")
    check(len(kernel.cell("throw new Exception(\"x\".repeat(2_000_000));").error["value"]), 1_000_000)
    check(kernel.cell("\"\\ud83d\" + 1").text, "\ufffd1")


def test_forward(world):
    """a method may be defined before what it uses"""
    kernel = world.kernel
    assert "later(int)" in kernel.cell("int early(int a) { return later(a); }").stderr
    answer = kernel.cell("early(1)")
    check((answer.error["name"], answer.error["value"]), ("UnresolvedReference", "there is no method later(int)"))
    check(kernel.cell("int later(int a) { return a + 1; }\nearly(1)").text, "2")


# --- variables and directory ----------------------------------------------------------------------------


def test_variables(world):
    """variables are system properties: those of the sandbox stay, those of a cell go"""
    read = "System.getProperty(\"A\") + System.getProperty(\"B\") + System.getProperty(\"C\")"
    with world.new() as kernel:
        check(kernel.cell(base={"A": "1", "B": "2"}).parts, [])
        check(kernel.cell(read, base={"A": "other"}, env={"B": "x=y", "C": ""}).text, "1x=y")
        check(kernel.cell(read).text, "12null")
        kernel.cell("System.setProperty(\"B\", \"set\"); throw new Exception();", env={"B": "cell"})
        check(kernel.cell(read).text, "12null")


def test_directory(world):
    """the directory is the one it was started in; another is an error"""
    with world.new(cwd="/usr") as kernel:
        answer = kernel.cell("1", cwd="/etc")
        check((answer.count, answer.error["name"], answer.error["value"], answer.results),
              (1, "ChangeDirectory", "cannot go to the directory /etc", []))
        check(kernel.cell("Path.of(\"\").toAbsolutePath()", cwd="/usr/").text, "/usr")
        check(kernel.cell("1", cwd="/etc").text, "1")


# --- errors ---------------------------------------------------------------------------------------------


def test_exceptions(world):
    """name, value and the calls, down to the cell"""
    kernel = world.kernel
    kernel.cell("class P { int w(int v) { if (v > 2) throw new IllegalStateException(\"too big\"); return v; } }")
    answer = kernel.cell("new P().w(5);\nSystem.out.println(\"NO\");")
    check((answer.error["name"], answer.error["value"], answer.stdout), ("IllegalStateException", "too big", ""))
    lines = answer.error["traceback"].splitlines()
    check((lines[0], len(lines)), ("java.lang.IllegalStateException: too big", 3))
    assert lines[1].startswith("\tat P.w (#") and lines[2].startswith("\tat cell (#"), lines
    answer = kernel.cell("throw new RuntimeException(\"outer\", new IOException(\"inner\"));")
    assert "\nCaused by: java.io.IOException: inner\n" in answer.error["traceback"], answer.error
    check(kernel.cell("class Mine extends Exception {}\nthrow new Mine();").error["name"], "Mine")
    check(kernel.cell("int deep(int n) { return deep(n + 1); }\ndeep(0)").error["name"], "StackOverflowError")
    check(kernel.cell("var much = new ArrayList<long[]>(); while (true) much.add(new long[1_000_000]);").error["name"],
          "OutOfMemoryError")
    check(kernel.cell("much = null; 1").text, "1")


def test_compilation(world):
    """errors of compilation show the place, and nothing after them is run"""
    answer = world.kernel.cell("int z = \"no\";\nSystem.out.println(\"NO\");")
    check((answer.error, answer.stdout), ({
        "name": "CompilationError", "value": "incompatible types: java.lang.String cannot be converted to int",
        "traceback": "error: incompatible types: java.lang.String cannot be converted to int\nint z = \"no\";\n        ^"}, ""))
    for code in ("foo(", "int y = 2 + ;", "class {", "\"not closed", "}", "é 😀", "undefinedThing", "@"):
        check((code, world.kernel.cell(code).error["name"]), (code, "CompilationError"))


def test_exit(world):
    """System.exit() ends the cell and not the context"""
    kernel = world.kernel
    kernel.cell("int kept = 5; class Leaves { static void now() { try { System.exit(4); } finally { System.out.print(\"f\"); } } }")
    check(kernel.cell("System.exit(0); System.out.println(\"NO\");").parts[1:], [])
    answer = kernel.cell("Leaves.now(); System.out.println(\"NO\");")
    check((answer.error["name"], answer.error["value"], answer.stdout), ("ExitStatus", "4", "f"))
    check(kernel.cell("long a = 1L; double b = 2.5; Runnable r = () -> System.exit(3); r.run();").error["value"], "3")
    check(kernel.cell("kept").text, "5")


# --- output ---------------------------------------------------------------------------------------------


def test_streams(world):
    """output comes while the cell runs, also without an end of line"""
    sleep = "Thread.sleep(60000);"
    world.kernel.cell("System.out.print(\"\"); Thread.sleep(0);")  # compiling takes its time too
    for code in ("System.out.println(\"first\");", "System.err.print(\"first\");"):
        world.kernel.cell(code)
        streams(world.kernel, "{ " + code + sleep + " }")


def test_much_output(world):
    """ten megabytes of output, whole"""
    check(len(world.kernel.cell("for (int i = 0; i < 1000; i++) System.out.println(\"y\".repeat(9999));").stdout),
          10_000_000)


def test_descriptors(world):
    """programs do not get the channel, and there is nothing to read"""
    answer = world.kernel.cell("new ProcessBuilder(\"ls\", \"-l\", \"/proc/self/fd\").inheritIO().start().waitFor();\nSystem.in.read()")
    check((answer.stdout.count("pipe:"), answer.text), (2, "-1"))


# --- interrupts -----------------------------------------------------------------------------------------


def test_interrupt(world):
    """SIGINT ends sleep, loops, and loops that catch exceptions"""
    kernel = world.kernel
    kernel.cell("int stays = 5;")
    go = "System.out.println(\"go\"); "
    is_interrupted(kernel, "{ " + go + "Thread.sleep(60000); }\nSystem.out.println(\"NO\");",
                   "{ " + go + "while (true) {} }",
                   "{ " + go + "while (true) { try { Thread.sleep(10); } catch (Exception e) {} } }")
    check(kernel.cell("stays").text, "5")


def test_interrupt_between(world):
    """SIGINT between cells means nothing"""
    for _ in range(10):
        world.kernel.interrupt()
        check(world.kernel.cell("1").text, "1")


def test_interrupt_storm(world):
    """SIGINT at any moment: the end of a cell is never lost, nor the next cell"""
    kernel = world.kernel

    def ask():
        check(kernel.cell("40 + 2", 20).text, "42")
    interrupt_storm(kernel, "for (int i = 0; i < 20; i++) System.out.println(i);\nList.of(1, 2)", ask, rounds=25,
                    step=0.0031, longest=0.1)


# --- cells that mean harm -------------------------------------------------------------------------------


def test_threads(world):
    """a thread goes on in the background, and does not hold the end up"""
    kernel = world.new()
    kernel.cell("var t = new Thread(() -> { try { Thread.sleep(300); System.out.println(\"late\"); Thread.sleep(60000); } catch (Exception e) {} });\n"
                "t.start();")
    check(kernel.cell("Thread.sleep(3000);").stdout, "late\n")
    ends_quickly(kernel)


def test_end(world):
    """cells that end the process"""
    for code in ("Runtime.getRuntime().halt(3);",
                 "new ProcessBuilder(\"kill\", \"-9\", \"\" + ProcessHandle.current().pid()).start().waitFor(); Thread.sleep(9999);"):
        with world.new() as kernel:
            try:
                kernel.cell(code)
            except harness.Died:
                continue
            raise AssertionError(f"alive after {code}")
