/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs that talk to a service or look after its keys are another program's: it needs a database and an
 * HTTP library, which this one, started for every run, does not want to load.
 */
#include "cli/cli.h"

#include "service/program.h"

#include <limits.h>

int cli_client(int argc, char **argv)
{
	char path[PATH_MAX];

	(void)argc;
	if (program_find("client", "glovebox-client", path, sizeof(path)) < 0)
		return cli_error(
			CLI_FAILURE,
			"there is no glovebox-client beside this program; is glovebox installed "
			"completely?");
	/* main() has cut off our own name; the other program wants to see it. */
	(void)execv(path, argv - 1);
	return cli_error(CLI_FAILURE, "cannot start %s: %s", path, strerror(errno));
}
