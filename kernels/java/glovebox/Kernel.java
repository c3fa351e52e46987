// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The Java kernel (kernels/PROTOCOL.md): cells are snippets of JShell. A process cannot change its environment or
 * its directory in Java: variables are system properties, and the directory is the one it was started in.
 */
public final class Kernel {
	private final Channel channel;
	private final Session session;
	private int count;
	private boolean first = true;

	private Kernel() throws IOException {
		channel = new Channel();
		session = new Session(channel);
	}

	public static void main(String[] arguments) throws IOException {
		System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8));
		System.setErr(new PrintStream(new FileOutputStream(FileDescriptor.err), true, StandardCharsets.UTF_8));
		Kernel kernel = new Kernel();
		kernel.channel.say("ready", String.valueOf(ProcessHandle.current().pid()));
		try {
			while (true) {
				kernel.cell();
			}
		} catch (EOFException e) {
			Runtime.getRuntime().halt(0); // threads of cells do not keep it alive
		} catch (IOException e) {
			Runtime.getRuntime().halt(1);
		}
	}

	/** Receives a cell, runs it and says that it has ended. */
	private void cell() throws IOException {
		List<String> base = new ArrayList<>();
		List<String> variables = new ArrayList<>();
		ByteArrayOutputStream code = null; // a character may be in two pieces
		String directory = null;
		Channel.Request request;
		while (!(request = channel.read()).word.equals("run")) {
			switch (request.word) {
			case "base":
				base.add(request.text());
				break;
			case "env":
				variables.add(request.text());
				break;
			case "cwd":
				directory = request.text();
				break;
			case "code":
				code = code == null ? new ByteArrayOutputStream() : code;
				code.writeBytes(request.bytes);
				break;
			default:
				throw new EOFException();
			}
		}
		run(base, variables, directory, code == null ? null : code.toString(StandardCharsets.UTF_8));
		channel.say("end", "");
	}

	private void run(List<String> base, List<String> variables, String directory, String code)
			throws IOException {
		if (code != null) {
			channel.say("count", String.valueOf(++count));
		}
		if (first) {
			set(base);
		}
		Map<String, String> old = set(variables);
		try {
			if (first && directory != null && !isHere(directory)) {
				channel.error("ChangeDirectory", "cannot go to the directory " + directory,
						"a Java program cannot change its directory; this one is in " + here());
				return;
			}
			first = false;
			if (code != null) {
				session.run(code);
			}
		} finally {
			old.forEach(Kernel::setOrClear);
		}
	}

	private static Path here() {
		return Path.of("").toAbsolutePath();
	}

	private static boolean isHere(String directory) {
		try {
			return Files.isSameFile(here(), Path.of(directory));
		} catch (IOException | RuntimeException e) {
			return false;
		}
	}

	/** Sets NAME=VALUE; returns what there was before, null for nothing. */
	private static Map<String, String> set(List<String> variables) {
		Map<String, String> old = new LinkedHashMap<>();
		for (String variable : variables) {
			int equals = variable.indexOf('=');
			if (equals > 0) {
				String name = variable.substring(0, equals);
				if (!old.containsKey(name)) {
					old.put(name, System.getProperty(name));
				}
				System.setProperty(name, variable.substring(equals + 1));
			}
		}
		return old;
	}

	private static void setOrClear(String name, String value) {
		if (value == null) {
			System.clearProperty(name);
		} else {
			System.setProperty(name, value);
		}
	}
}
