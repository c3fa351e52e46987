// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.Snippet.Status;
import jdk.jshell.SnippetEvent;
import jdk.jshell.UnresolvedReferenceException;

/** What goes wrong in a snippet, as errors of the protocol. */
final class Faults {
	private static final int FRAMES_MAX = 60;

	private final Channel channel;
	private final JShell shell;

	Faults(Channel channel, JShell shell) {
		this.channel = channel;
		this.shell = shell;
	}

	/** Says what is wrong with the event, if anything is; the cell is over then. */
	boolean say(SnippetEvent event) throws IOException {
		if (event.exception() != null) {
			sayException(event.exception());
			return true;
		}
		if (event.status() == Status.REJECTED) {
			sayCompilation(event.snippet());
			return true;
		}
		if (event.status() == Status.RECOVERABLE_DEFINED || event.status() == Status.RECOVERABLE_NOT_DEFINED) {
			System.err.println(missing(event.snippet()));
		}
		return false;
	}

	// --- compilation ---------------------------------------------------------------------------------

	private void sayCompilation(Snippet snippet) throws IOException {
		List<Diag> errors = shell.diagnostics(snippet).filter(Diag::isError).collect(Collectors.toList());
		String all = errors.stream().map(d -> describe(d, snippet.source())).collect(Collectors.joining("\n"));
		String first = errors.isEmpty() ? "the code cannot be compiled" : errors.get(0).getMessage(null);
		channel.error("CompilationError", first, all.isEmpty() ? first : all);
	}

	/** The message, the line and a mark under the place. */
	private static String describe(Diag error, String source) {
		int at = (int) Math.max(0, Math.min(error.getPosition(), source.length()));
		int begin = source.lastIndexOf('\n', at - 1) + 1;
		int end = source.indexOf('\n', at);
		String line = source.substring(begin, end < 0 ? source.length() : end);
		String blank = line.substring(0, at - begin).replaceAll("[^\t]", " ");
		return "error: " + error.getMessage(null) + "\n" + line + "\n" + blank + "^";
	}

	/** A definition that waits for another is kept; JShell uses it once that is there. */
	private String missing(Snippet snippet) {
		return "it cannot be used until there is " + waitsFor(snippet) + ":\n" + snippet.source().strip();
	}

	private String waitsFor(Snippet snippet) {
		if (!(snippet instanceof DeclarationSnippet)) {
			return "what it uses";
		}
		return shell.unresolvedDependencies((DeclarationSnippet) snippet).collect(Collectors.joining(", "));
	}

	// --- exceptions ----------------------------------------------------------------------------------

	private void sayException(JShellException exception) throws IOException {
		if (exception instanceof UnresolvedReferenceException) {
			String value = "there is no "
					+ waitsFor(((UnresolvedReferenceException) exception).getSnippet());
			channel.error("UnresolvedReference", value,
					"UnresolvedReference: " + value + frames(exception));
			return;
		}
		String name = className(exception);
		String value = exception.getMessage() == null ? "" : exception.getMessage();
		if (name.equals(Exit.class.getName())) {
			sayExit(value);
			return;
		}
		channel.error(name.substring(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$')) + 1), value,
				describe(exception));
	}

	private void sayExit(String status) throws IOException {
		if (!status.equals("0")) {
			channel.error("ExitStatus", status, "the cell ended with status " + status);
		}
	}

	private static String className(Throwable exception) {
		return exception instanceof EvalException ? ((EvalException) exception).getExceptionClassName()
				: exception.getClass().getName();
	}

	private static String describe(Throwable exception) {
		StringBuilder text = new StringBuilder();
		for (Throwable e = exception; e != null && text.length() < 100000; e = e.getCause()) {
			text.append(text.length() == 0 ? "" : "\nCaused by: ").append(className(e));
			text.append(e.getMessage() == null ? "" : ": " + e.getMessage()).append(frames(e));
		}
		return text.toString();
	}

	/** The calls down to the cell's own code; those of JShell below it are left out by JShell. */
	private static String frames(Throwable exception) {
		StackTraceElement[] frames = exception.getStackTrace();
		String text = Arrays.stream(frames).limit(FRAMES_MAX).map(f -> "\n\tat " + place(f))
				.collect(Collectors.joining());
		return frames.length > FRAMES_MAX ? text + "\n\t..." : text;
	}

	/** Code of a snippet has the snippet's number for a file, and what it did not declare has no name. */
	private static String place(StackTraceElement frame) {
		String file = frame.getFileName();
		if (file == null || !file.startsWith("#")) {
			return frame.toString();
		}
		String owner = frame.getClassName().isEmpty() ? "" : frame.getClassName() + ".";
		String method = frame.getMethodName().isEmpty() ? "cell" : frame.getMethodName();
		return owner + method + " (" + file + ":" + frame.getLineNumber() + ")";
	}
}
