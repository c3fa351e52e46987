// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.Snippet.SubKind;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;
import sun.misc.Signal;
import sun.misc.SignalHandler;

/** The state of the cells: a JShell that runs its snippets in this process. */
final class Session {
	/** Those of JShell's own prompt. */
	private static final String[] IMPORTS = {"java.io", "java.math", "java.net", "java.nio.file", "java.util",
		"java.util.concurrent", "java.util.function", "java.util.prefs", "java.util.regex", "java.util.stream"};

	private static final long STOP_AGAIN_MS = 50;
	private static final Signal INTERRUPT = new Signal("INT");
	private static final Signal MARK = new Signal("WINCH");

	private final JShell shell;
	private final Channel channel;
	private final Faults faults;

	Session(Channel channel) {
		this.channel = channel;
		shell = JShell.builder().executionEngine(new Engine(), Map.of()).build();
		faults = new Faults(channel, shell);
		Signal.handle(INTERRUPT, signal -> { });
		for (String name : IMPORTS) {
			shell.eval("import " + name + ".*;");
		}
	}

	/** Snippets are run by threads of this process, with classes in which System.exit() is ours. */
	private static final class Engine implements ExecutionControlProvider {
		@Override
		public String name() {
			return "glovebox";
		}

		@Override
		public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
			return new Control();
		}
	}

	private static final class Control extends LocalExecutionControl {
		@Override
		public void load(ClassBytecodes[] classes) throws ClassInstallException, NotImplementedException,
				EngineTerminationException {
			super.load(replaceExit(classes));
		}

		private static ClassBytecodes[] replaceExit(ClassBytecodes[] classes) {
			ClassBytecodes[] changed = classes.clone();
			for (int i = 0; i < classes.length; i++) {
				try {
					changed[i] = new ClassBytecodes(classes[i].name(),
							Exit.replace(classes[i].bytecodes()));
				} catch (IOException e) {
					throw new IllegalStateException(e);
				}
			}
			return changed;
		}
	}

	/**
	 * Runs a cell and says what came of it. SIGINT means something only while it runs.
	 */
	void run(String code) throws IOException {
		Interrupt interrupt = new Interrupt();
		forgetSignals();
		Signal.handle(INTERRUPT, interrupt);
		SnippetEvent last;
		try {
			last = evaluateAll(code, interrupt);
		} finally {
			Signal.handle(INTERRUPT, signal -> { });
			interrupt.close();
		}
		if (interrupt.came) {
			channel.error("KeyboardInterrupt", "", "the cell was interrupted");
		} else if (last != null) {
			show(last);
		}
	}

	/**
	 * Waits until every SIGINT that came so far has been given to its handler, which Java does in a thread, when
	 * it finds the time: those are of older cells. It looks at signals in the order of their numbers, so another
	 * with a higher one comes after them.
	 */
	private static void forgetSignals() {
		CountDownLatch arrived = new CountDownLatch(1);
		Signal.handle(MARK, signal -> arrived.countDown());
		Signal.raise(MARK);
		try {
			arrived.await(1, TimeUnit.SECONDS);
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
		}
	}

	/** The interrupt of one cell. */
	private final class Interrupt implements SignalHandler {
		private volatile boolean came;
		private boolean closed;

		/** In a thread of its own. JShell forgets a request that comes before the snippet is compiled. */
		@Override
		public void handle(Signal signal) {
			while (stop()) {
				try {
					Thread.sleep(STOP_AGAIN_MS);
				} catch (InterruptedException e) {
					return;
				}
			}
		}

		private synchronized boolean stop() {
			if (!closed) {
				came = true;
				shell.stop();
			}
			return !closed;
		}

		synchronized void close() {
			closed = true;
		}
	}

	/** Evaluates one snippet after the other. Returns the last event, or null when one failed, and said so. */
	private SnippetEvent evaluateAll(String code, Interrupt interrupt) throws IOException {
		SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
		String rest = code;
		SnippetEvent last = null;
		while (!rest.isBlank() && !interrupt.came) {
			CompletionInfo info = analysis.analyzeCompletion(rest);
			if (info.completeness() == Completeness.EMPTY) {
				break;
			}
			boolean whole = info.completeness().isComplete() && !info.source().isBlank();
			last = evaluate(whole ? info.source() : rest, interrupt);
			if (last == null) {
				return null;
			}
			rest = whole ? info.remaining() : "";
		}
		return last;
	}

	private SnippetEvent evaluate(String source, Interrupt interrupt) throws IOException {
		List<SnippetEvent> events = shell.eval(source);
		SnippetEvent last = null;
		for (SnippetEvent event : events) {
			if (event.causeSnippet() != null) {
				continue; // what a new definition did to older ones
			}
			if (!interrupt.came && faults.say(event)) {
				return null;
			}
			last = event;
		}
		return interrupt.came ? null : last;
	}

	/** Shows the value of an expression. A semicolon at its end keeps it back. */
	private void show(SnippetEvent event) throws IOException {
		Snippet snippet = event.snippet();
		SubKind kind = snippet.subKind();
		String value = event.value();
		boolean expression = kind == SubKind.VAR_VALUE_SUBKIND || kind == SubKind.TEMP_VAR_EXPRESSION_SUBKIND
				|| kind == SubKind.OTHER_EXPRESSION_SUBKIND;
		if (expression && value != null && !value.isEmpty() && !snippet.source().strip().endsWith(";")) {
			channel.mainResult(withoutQuotes(value));
		}
	}

	/** JShell shows strings as they are written in Java. */
	private static String withoutQuotes(String value) {
		int end = value.length() - 1;
		boolean quoted = end > 0 && value.charAt(0) == value.charAt(end) && "\"'".indexOf(value.charAt(0)) >= 0;
		try {
			return quoted ? value.substring(1, end).translateEscapes() : value;
		} catch (IllegalArgumentException e) {
			return value;
		}
	}
}
