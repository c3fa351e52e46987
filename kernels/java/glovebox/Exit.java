// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * System.exit() in a cell ends the cell. The classes of a cell are changed before they are loaded: a reference to
 * that method becomes one to {@link #exit}. A library that ends the process still does.
 */
public final class Exit extends Error {
	private static final long serialVersionUID = 1;

	private static final int UTF8 = 1;
	private static final int CLASS = 7;
	private static final int METHOD = 10;
	/** Bytes after the tag of each kind of constant, by tag; 0 for tags there are not. */
	private static final int[] SIZES = {0, 0, 0, 4, 4, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 3, 2, 4, 4, 2, 2};
	private static final int POOL = 8; // where the constants begin: their number and one more, in two bytes

	private Exit(int status) {
		super(String.valueOf(status), null, false, false);
	}

	/** What System.exit() became. */
	public static void exit(int status) {
		throw new Exit(status & 255);
	}

	/** Where each constant of a class is. */
	private static int[] offsets(ByteBuffer file) {
		int[] at = new int[file.getChar(POOL)];
		int position = POOL + 2;
		for (int i = 1; i < at.length; i++) {
			int tag = file.get(position);
			at[i] = position;
			position += 1 + (tag == UTF8 ? 2 + file.getChar(position + 1) : SIZES[tag]);
			if (tag == 5 || tag == 6) {
				i++; // long and double count twice
			}
		}
		at[0] = position; // the end of them
		return at;
	}

	private static String utf8(ByteBuffer file, int position) {
		byte[] bytes = new byte[file.getChar(position + 1)];
		for (int i = 0; i < bytes.length; i++) {
			bytes[i] = file.get(position + 3 + i);
		}
		return new String(bytes, StandardCharsets.UTF_8);
	}

	/** Whether the constant is the method System.exit(int). */
	private static boolean isExit(ByteBuffer file, int[] at, int constant) {
		if (at[constant] == 0 || file.get(at[constant]) != METHOD) {
			return false;
		}
		int owner = at[file.getChar(at[constant] + 1)];
		int name = at[file.getChar(at[constant] + 3)];
		return utf8(file, at[file.getChar(owner + 1)]).equals("java/lang/System")
				&& utf8(file, at[file.getChar(name + 1)]).equals("exit")
				&& utf8(file, at[file.getChar(name + 3)]).equals("(I)V");
	}

	/** The class with calls of System.exit() replaced; itself when there are none. */
	static byte[] replace(byte[] original) throws IOException {
		ByteBuffer file = ByteBuffer.wrap(original.clone());
		int[] at = offsets(file);
		int added = at.length; // the number of the first constant that is added: a name, then its class
		boolean found = false;
		for (int i = 1; i < at.length; i++) {
			if (isExit(file, at, i)) {
				file.putChar(at[i] + 1, (char) (added + 1));
				found = true;
			}
		}
		if (!found || added > 65533) {
			return original;
		}
		file.putChar(POOL, (char) (added + 2));
		ByteArrayOutputStream changed = new ByteArrayOutputStream();
		DataOutputStream out = new DataOutputStream(changed);
		out.write(file.array(), 0, at[0]);
		out.writeByte(UTF8);
		out.writeUTF("glovebox/Exit");
		out.writeByte(CLASS);
		out.writeShort(added);
		out.write(file.array(), at[0], original.length - at[0]);
		return changed.toByteArray();
	}
}
