/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

int cli_version(int argc, char **argv)
{
	if (argc > 1)
		return cli_error(CLI_USAGE, "version takes no arguments, got '%s'", argv[1]);
#ifdef GLOVEBOX_BREAKABLE
	(void)puts("glovebox " GLOVEBOX_VERSION " (test build: protections can be switched off)");
#else
	(void)puts("glovebox " GLOVEBOX_VERSION);
#endif
	return CLI_OK;
}
