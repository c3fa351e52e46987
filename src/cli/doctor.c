/* SPDX-License-Identifier: Apache-2.0 */
int cli_doctor(int argc, char **argv);
int cli_doctor(int argc, char **argv) { (void)argc; (void)argv; return 0; }
