/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops a Python at the moment when it is going to open its script, and is a zygote there: what it
 * forks goes on from that moment in some box, with the script that it finds there. So nothing of
 * ours has to imitate how a Python runs a script, and there is no frame, module or setting of ours
 * below it.
 *
 * The loader brings this library into the interpreter (LD_PRELOAD). The moment is known by an audit
 * event, which is a documented interface of Python; the hook stays, and looks away from then on.
 * Where there is no such interface the interpreter runs the empty script of the zygote's own root
 * and ends, and scripts are executed.
 */
#include "zygote/zygote.h"

#include "wire/script.h"
#include "wire/zygote.h"
#include "zygote/zygote_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define PREPARE "/opt/glovebox/kernels/python/script.py"
#define FILE_INPUT 257 /* Py_file_input: a whole file, always this number */

/* The interpreter's own, by its stable interface; weak, since others may load this library. */
typedef struct object object;
#define PYTHON_API extern __attribute__((weak))
PYTHON_API int PySys_AddAuditHook(int (*hook)(const char *, object *, void *), void *data);
PYTHON_API void PyOS_BeforeFork(void);
PYTHON_API void PyOS_AfterFork_Child(void);
PYTHON_API void PyErr_Print(void);
PYTHON_API object *PyDict_New(void);
PYTHON_API object *PyDict_GetItemString(object *dict, const char *name);
PYTHON_API object *PyBytes_FromStringAndSize(const char *data, ssize_t len);
PYTHON_API object *PyBool_FromLong(long value);
PYTHON_API object *PyObject_CallFunctionObjArgs(object *function, ...);
PYTHON_API object *PyRun_FileExFlags(FILE *f, const char *name, int start, object *globals,
				     object *locals, int close, void *flags);

static _noreturn_ void cannot(const char *what)
{
	(void)dprintf(2, "%s\n", what);
	_exit(ZYGOTE_EXIT_CANNOT);
}

/* What has to be done in Python: the function to call in a fork. */
static object *script_prepare(void)
{
	FILE *f = fopen(PREPARE, "re");
	object *names = PyDict_New(), *become = NULL;

	if (f && names && PyRun_FileExFlags(f, PREPARE, FILE_INPUT, names, names, 1, NULL))
		become = PyDict_GetItemString(names, "become");
	if (!become) {
		PyErr_Print();
		cannot("cannot prepare the interpreter for scripts");
	}
	return become;
}

/* The variables, each with its NUL, as one text. */
static object *script_variables(void)
{
	object *bytes = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	for (char *const *at = command_variables(); f && *at; at++)
		(void)fwrite(*at, 1, strlen(*at) + 1, f);
	if (f && fclose(f) == 0)
		bytes = PyBytes_FromStringAndSize(text, (ssize_t)len);
	free(text);
	return bytes;
}

/* In a fork, which is a process of a box by now. */
static void become_script(object *become)
{
	object *env, *done = NULL;

	PyOS_AfterFork_Child();
	ahead_copy();
	command_take();
	env = command_is_script() ? script_variables() : NULL;
	if (env)
		done = PyObject_CallFunctionObjArgs(
			become, env, PyBool_FromLong(command_has_input()), (object *)NULL);
	if (!done)
		command_execute();
	command_go_on();
}

static int script_on_event(const char *event, object *args, void *data)
{
	static bool passed;
	object *become;
	int r;

	(void)args;
	(void)data;
	if (passed || strcmp(event, "cpython.run_file") != 0)
		return 0;
	passed = true;
	become = script_prepare();
	ahead_find(ZYGOTE_PROC_FD);
	PyOS_BeforeFork(); /* once for all children: nothing happens here in between */
	r = zygote_serve(ZYGOTE_SOCK_FD);
	if (r < 0)
		cannot(strerror(-r));
	if (r > 0)
		_exit(0);
	become_script(become);
	return 0;
}

/* Before the interpreter has begun. It is not to see how we came here, nor to hand it on. */
__attribute__((constructor)) static void install(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (!preload || strcmp(preload, SCRIPT_LIBRARY) != 0 || !PySys_AddAuditHook)
		return;
	command_find_variables();
	(void)unsetenv("LD_PRELOAD");
	(void)PySys_AddAuditHook(script_on_event, NULL);
}
