// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Requests and events over descriptors 3 and 4. Programs that a cell starts do not get them: Java closes all
 * descriptors above 2 in a new process.
 */
final class Channel {
	private static final int LINE_MAX = 32;
	private static final int RESULT_MAX = 24 << 20;
	private static final int ERROR_MAX = 1000000;

	/** One request. */
	static final class Request {
		final String word;
		final byte[] bytes;

		Request(String word, byte[] bytes) {
			this.word = word;
			this.bytes = bytes;
		}

		String text() {
			return new String(bytes, StandardCharsets.UTF_8);
		}
	}

	private final InputStream requests;
	private final OutputStream events;

	Channel() throws IOException {
		requests = new BufferedInputStream(new FileInputStream("/proc/self/fd/3"), 1 << 16);
		events = new FileOutputStream("/proc/self/fd/4");
	}

	/** The next request. At the end of the file, or at what is no request, the agent has gone: EOFException. */
	Request read() throws IOException {
		String[] parts = line().split(" ", -1);
		if (parts.length != 2 || !parts[0].matches("[a-z]{1,15}") || !parts[1].matches("[0-9]{1,8}")) {
			throw new EOFException();
		}
		int size = Integer.parseInt(parts[1]);
		byte[] bytes = requests.readNBytes(size);
		if (bytes.length != size) {
			throw new EOFException();
		}
		return new Request(parts[0], bytes);
	}

	private String line() throws IOException {
		StringBuilder line = new StringBuilder();
		for (int c = requests.read(); c != '\n'; c = requests.read()) {
			if (c < 0 || line.length() == LINE_MAX) {
				throw new EOFException();
			}
			line.append((char) c);
		}
		return line.toString();
	}

	/** Says something, after everything that was printed before it. */
	void say(String word, String content) throws IOException {
		byte[] bytes = content.getBytes(StandardCharsets.UTF_8);
		byte[] head = (word + " " + bytes.length + "\n").getBytes(StandardCharsets.US_ASCII);
		byte[] all = new byte[head.length + bytes.length];
		System.arraycopy(head, 0, all, 0, head.length);
		System.arraycopy(bytes, 0, all, head.length, bytes.length);
		System.out.flush();
		System.err.flush();
		events.write(all);
	}

	void error(String name, String value, String traceback) throws IOException {
		say("error", "{\"name\": " + quote(name) + ", \"value\": " + quote(cut(value)) + ", \"traceback\": "
				+ quote(cut(traceback)) + "}");
	}

	void mainResult(String text) throws IOException {
		String json = quote(text);
		if (json.length() > RESULT_MAX) {
			json = quote("the result is too large to be shown");
		}
		say("result", "{\"text\": " + json + ", \"is_main_result\": true}");
	}

	private static String cut(String text) {
		return text.length() > ERROR_MAX ? text.substring(0, ERROR_MAX) : text;
	}

	/** A JSON string in ASCII. */
	static String quote(String text) {
		StringBuilder json = new StringBuilder(text.length() + 2).append('"');
		for (int i = 0; i < text.length(); i++) {
			char c = text.charAt(i);
			if (c == '"' || c == '\\') {
				json.append('\\').append(c);
			} else if (c >= ' ' && c < 127) {
				json.append(c);
			} else {
				escape(json, isLone(text, i) ? '\ufffd' : c);
			}
		}
		return json.append('"').toString();
	}

	private static void escape(StringBuilder json, char c) {
		json.append("\\u");
		for (int shift = 12; shift >= 0; shift -= 4) {
			json.append(Character.forDigit(c >> shift & 15, 16));
		}
	}

	/** Half of a pair without the other. */
	private static boolean isLone(String text, int i) {
		char c = text.charAt(i);
		if (Character.isHighSurrogate(c)) {
			return i + 1 == text.length() || !Character.isLowSurrogate(text.charAt(i + 1));
		}
		return Character.isLowSurrogate(c) && (i == 0 || !Character.isHighSurrogate(text.charAt(i - 1)));
	}
}
