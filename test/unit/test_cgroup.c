/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup drivers against this machine's own cgroups; only the readers of text need no root. */
#include "sys/cgroup_priv.h"

#include "base/parse.h"
#include "sys/cpus.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#define MIB (1024 * 1024)

static struct cgroup_host host;
static char prefix[24]; /* of all names this run makes: others may use the same tree */

static const struct cgroup_limits none;

/* ---- helpers --------------------------------------------------------------------------------- */

/* "<prefix><what>" in a static buffer. */
static const char *box_name(const char *what)
{
	static char name[32];

	(void)snprintf(name, sizeof(name), "%s%s", prefix, what);
	return name;
}

/* How many directories of this run are in a hierarchy. */
static int count_in(int hier_fd)
{
	int n = 0, fd = openat(hier_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	const struct dirent *de;

	assert_non_null(d);
	while ((de = readdir(d)) != NULL)
		n += strncmp(de->d_name, prefix, strlen(prefix)) == 0;
	(void)closedir(d);
	return n;
}

static int count_all(void)
{
	int n = 0;

	for (size_t i = 0; i < host.n_hier; i++)
		n += count_in(host.hier[i].fd);
	return n;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

/* So that nothing outlives a test that fails or hangs. */
static void die_with_parent(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(97);
}

/* Both halves of making a box; on failure nothing is left. */
static int create(const struct cgroup_host *h, const char *name, const struct cgroup_limits *cap,
		  struct cgroup_box *ret)
{
	int r = cgroup_box_create(h, name, cap, ret);

	if (r == 0) {
		r = cgroup_box_finish(ret);
		if (r < 0)
			(void)cgroup_box_remove(ret);
	}
	return r;
}

/* The child: goes where the agent belongs, joins its leaf, and is what it is for. */
static _noreturn_ void child_run(const struct cgroup_box *b, int ready_fd,
				 const struct cgroup_exec *e, int (*run)(int fd), int fd)
{
	die_with_parent();
	for (size_t i = 0; i < b->n_join; i++)
		if (write(b->join_fd[i], "0", 1) != 1)
			_exit(98);
	for (size_t i = 0; e != NULL && i < e->n_join; i++)
		if (write(e->join_fd[i], "0", 1) != 1)
			_exit(99);
	if (write(ready_fd, "x", 1) != 1)
		_exit(97);
	_exit(run(fd));
}

/*
 * A process in the agent's place (born there where the kernel can, moved there otherwise), which
 * goes on into the leaf e if there is one. Its exit status is run's.
 */
static pid_t spawn(struct cgroup_box *b, const struct cgroup_exec *e, int (*run)(int fd), int fd)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	if (b->clone_fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)b->clone_fd;
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(pid >= 0);
	if (pid == 0)
		child_run(b, ready[1], e, run, fd);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static int child_wait(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void child_end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)child_wait(pid);
}

/* Lines of /proc/<pid>/cgroup that have the text. */
static int membership(pid_t pid, const char *text)
{
	char path[40], content[4096];
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	assert_int_equal(cgroup_read(AT_FDCWD, path, content, sizeof(content)), 0);
	for (const char *at = content; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

static struct cgroup_box box_make(const char *what, const struct cgroup_limits *cap)
{
	struct cgroup_box b = CGROUP_BOX_INIT;

	assert_int_equal(create(&host, box_name(what), cap, &b), 0);
	return b;
}

static struct cgroup_exec exec_make(struct cgroup_box *b, const struct cgroup_limits *limits)
{
	struct cgroup_exec e = CGROUP_EXEC_INIT;

	assert_int_equal(cgroup_exec_create(b, limits, &e), 0);
	return e;
}

static void box_end(struct cgroup_box *b, struct cgroup_exec *e)
{
	if (e != NULL)
		cgroup_exec_close(e);
	assert_int_equal(cgroup_box_remove(b), 0);
	assert_int_equal(count_all(), 0);
}

/* The child says that it got there, and stays. */
static int say_and_stay(int fd)
{
	ssize_t n = write(fd, "x", 1);

	return n + pause() != 0; /* nothing but SIGKILL comes */
}

static pid_t spawn_ready(struct cgroup_box *b, const struct cgroup_exec *e, int (*run)(int fd))
{
	int fds[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = spawn(b, e, run, fds[1]);
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	(void)close(fds[0]);
	return pid;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_keyed(void **state)
{
	uint64_t v = 7;

	(void)state;
	assert_true(cgroup_keyed_u64("low 0\noom 3\noom_kill 12\n", "oom_kill", &v));
	assert_int_equal(v, 12);
	assert_true(cgroup_keyed_u64("low 0\noom 3\noom_kill 12", "oom", &v));
	assert_int_equal(v, 3);
	assert_true(cgroup_keyed_u64("a 18446744073709551615\n", "a", &v));
	assert_true(v == UINT64_MAX);
	v = 7;
	assert_false(cgroup_keyed_u64("oom_kill 12\n", "oom", &v));
	assert_false(cgroup_keyed_u64("total_rss 12\n", "rss", &v));
	assert_false(cgroup_keyed_u64("max\n", "max", &v));
	assert_false(cgroup_keyed_u64("max \n", "max", &v));
	assert_false(cgroup_keyed_u64("max -1\n", "max", &v));
	assert_false(cgroup_keyed_u64("max 111111111111111111111111111111\n", "max", &v));
	assert_false(cgroup_keyed_u64("", "max", &v));
	assert_int_equal(v, 7);
}

static void test_words(void **state)
{
	(void)state;
	assert_true(cgroup_has_word("cpuset cpu io memory pids\n", "cpu"));
	assert_true(cgroup_has_word("cpuset cpu io memory pids\n", "pids"));
	assert_true(cgroup_has_word("memory", "memory"));
	assert_false(cgroup_has_word("cpuset io\n", "cpu"));
	assert_false(cgroup_has_word("\n", "cpu"));
	assert_true(cgroup_has_word("12\n123\n", "123"));
	assert_false(cgroup_has_word("1234\n", "123"));
}

static void test_own_path(void **state)
{
	static const char text[] = "12:name=systemd:/init\n"
				   "5:cpu,cpuacct:/a:b\n"
				   "4:memory:/process/42\n"
				   "0::/user.slice/x\n";
	char path[32] = "before";

	(void)state;
	assert_int_equal(cgroup_own_path(text, "memory", path, sizeof(path)), 0);
	assert_string_equal(path, "/process/42");
	assert_int_equal(cgroup_own_path(text, "cpuacct", path, sizeof(path)), 0);
	assert_string_equal(path, "/a:b");
	assert_int_equal(cgroup_own_path(text, "cpu", path, sizeof(path)), 0);
	assert_string_equal(path, "/a:b");
	assert_int_equal(cgroup_own_path(text, "", path, sizeof(path)), 0);
	assert_string_equal(path, "/user.slice/x");
	assert_int_equal(cgroup_own_path(text, "pids", path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_own_path(text, "systemd", path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_own_path("garbage\n:\n1:x", "x", path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_own_path(text, "", path, 13), -ENAMETOOLONG);
	assert_string_equal(path, "/user.slice/x");
}

static void test_cpu_list(void **state)
{
	static const char *const bad[] = { "",      "\n",           "x",  "0-", "-3", "3-1",
					   "0-3,x", "0-4294967296", "0 1" };

	(void)state;
	assert_int_equal(cpus_in_list("0\n"), 1);
	assert_int_equal(cpus_in_list("0-63\n"), 64);
	assert_int_equal(cpus_in_list("0-3,5,8-9\n"), 7);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cpus_in_list(bad[i]), 0);
	assert_in_range(cpus_online(), 1, 65536);
}

static void test_split_cpu(void **state)
{
	uint64_t user = 30, system_time = 10;

	(void)state;
	cgroup_split_cpu(1000, &user, &system_time);
	assert_int_equal(user, 750);
	assert_int_equal(system_time, 250);
	user = system_time = 0;
	cgroup_split_cpu(55, &user, &system_time);
	assert_int_equal(user, 55);
	assert_int_equal(system_time, 0);
	user = system_time = UINT64_MAX;
	cgroup_split_cpu(UINT64_MAX, &user, &system_time);
	assert_true(user + system_time == UINT64_MAX);
}

/* A host without cgroups: a box works, and a limit nobody would enforce is refused. */
static void test_none(void **state)
{
	struct cgroup_host h = { .mode = CGROUP_NONE };
	struct cgroup_limits l = { .memory_bytes = MIB };
	struct cgroup_box b = CGROUP_BOX_INIT;
	struct cgroup_exec e = CGROUP_EXEC_INIT;
	struct cgroup_usage u;

	(void)state;
	assert_int_equal(create(&h, "a", &l, &b), -EOPNOTSUPP);
	assert_int_equal(create(&h, "a", &none, &b), 0);
	assert_int_equal(b.n_join, 0);
	assert_int_equal(cgroup_exec_create(&b, &l, &e), -EOPNOTSUPP);
	assert_int_equal(cgroup_exec_create(&b, &none, &e), 0);
	assert_int_equal(e.n_join, 0);
	assert_int_equal(cgroup_exec_weigh(&b, &e, 500), 0);
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	assert_int_equal(u.cpu_us, 0);
	assert_int_equal(cgroup_box_kill(&b), -EOPNOTSUPP);
	cgroup_exec_close(&e);
	assert_int_equal(cgroup_box_remove(&b), 0);
}

static void test_bad_names(void **state)
{
	static const char *const bad[] = { "",    "..",  ".",
					   "a/b", "A",   "a.exec-1",
					   "a b", "a\n", "1234567890123456789012345" };
	struct cgroup_host h = { .mode = CGROUP_NONE };
	struct cgroup_box b = CGROUP_BOX_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(create(&h, bad[i], &none, &b), -EINVAL);
	assert_int_equal(create(&h, "123456789012345678901234", &none, &b), 0);
}

/* ---- the life of a box ----------------------------------------------------------------------- */

static void test_agent_is_in_the_box(void **state)
{
	struct cgroup_box b;
	char path[64];
	pid_t pid;

	(void)state;
	b = box_make("agent", &none);
	pid = spawn_ready(&b, NULL, say_and_stay);
	(void)snprintf(path, sizeof(path), "/" CGROUP_DIR "/%s%s\n", b.name,
		       host.mode == CGROUP_V2 ? "/agent" : "");
	assert_int_equal(membership(pid, path), host.mode == CGROUP_V2     ? 1 :
						host.mode == CGROUP_HYBRID ? 3 :
									     2);
	assert_int_equal(membership(getpid(), b.name), 0);
	child_end(pid);
	box_end(&b, NULL);
}

static void test_create_twice(void **state)
{
	struct cgroup_box b, c = CGROUP_BOX_INIT;
	int n, fds;

	(void)state;
	b = box_make("twice", &none);
	n = count_all();
	fds = count_fds();
	assert_int_equal(create(&host, b.name, &none, &c), -EEXIST);
	assert_int_equal(count_all(), n);
	assert_int_equal(count_fds(), fds);
	box_end(&b, NULL);
}

/* The name is taken in the last hierarchy only: what was made in the others before goes again. */
static void test_create_half_taken(void **state)
{
	struct cgroup_box b = CGROUP_BOX_INIT;
	const char *name = box_name("half");
	int last = -EBADF;

	(void)state;
	for (size_t i = 0; i < host.n_hier; i++)
		if (host.hier[i].controllers & (CGROUP_MEMORY | CGROUP_PIDS | CGROUP_KILL))
			last = host.hier[i].fd;
	assert_int_equal(mkdirat(last, name, 0755), 0);
	assert_int_equal(create(&host, name, &none, &b), -EEXIST);
	assert_int_equal(count_all(), 1);
	assert_int_equal(unlinkat(last, name, AT_REMOVEDIR), 0);
}

static void test_command_joins_its_leaf(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e, f;
	struct cgroup_usage u;
	pid_t agent, pid;

	(void)state;
	b = box_make("leaf", &none);
	e = exec_make(&b, &none);
	f = exec_make(&b, &none);
	assert_int_equal(e.n, 1);
	assert_int_equal(f.n, 2);
	agent = spawn_ready(&b, NULL, say_and_stay);
	pid = spawn_ready(&b, &e, say_and_stay);
	assert_int_equal(membership(pid, "exec-1\n"), e.n_join);
	assert_int_equal(membership(agent, "exec-1"), 0);
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	assert_int_equal(u.pids_now, 1);
	assert_int_equal(cgroup_exec_sample(&b, &f, &u), 0);
	assert_int_equal(u.pids_now, 0);
	assert_int_equal(cgroup_exec_remove(&b, &e), -EBUSY);
	assert_int_equal(cgroup_exec_remove(&b, &f), 0);
	child_end(pid);
	child_end(agent);
	box_end(&b, &e);
}

static void test_refused_limit_leaves_nothing(void **state)
{
	struct cgroup_limits l = { .memory_bytes = 64 * MIB, .pids = UINT32_MAX };
	struct cgroup_box b = CGROUP_BOX_INIT;
	struct cgroup_exec e = CGROUP_EXEC_INIT;
	int n;

	(void)state;
	assert_int_equal(create(&host, box_name("refused"), &l, &b), -EINVAL);
	assert_int_equal(count_all(), 0);
	b = box_make("refused", &none);
	n = count_all();
	assert_int_equal(cgroup_exec_create(&b, &l, &e), -EINVAL);
	assert_int_equal(count_all(), n);
	e = exec_make(&b, &none);
	assert_int_equal(e.n, 1);
	box_end(&b, &e);
}

/* CR-03: fails in every place where a descriptor is made. */
static void test_no_descriptors_leave_nothing(void **state)
{
	struct cgroup_limits l = { .memory_bytes = 64 * MIB, .pids = 50 };
	struct rlimit saved, tight;
	int fds = count_fds() - 3, failed = 0, r = -1;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	for (int more = 0; more < 64 && r < 0; more++) {
		struct cgroup_box b = CGROUP_BOX_INIT;
		struct cgroup_exec e = CGROUP_EXEC_INIT;
		int q = 0;

		tight = (struct rlimit){ (rlim_t)(fds + more), saved.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
		r = create(&host, box_name("fds"), &l, &b);
		if (r >= 0)
			q = r = cgroup_exec_create(&b, &l, &e);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
		if (r < 0) {
			assert_int_equal(r, -EMFILE);
			failed++;
		}
		if (r >= 0 || q < 0)
			box_end(&b, &e);
		assert_int_equal(count_all(), 0);
		assert_int_equal(count_fds() - 3, fds);
	}
	assert_int_equal(r, 0);
	assert_true(failed >= 3);
}

static void test_many_cycles(void **state)
{
	struct cgroup_limits l = { .memory_bytes = 64 * MIB, .pids = 50 };
	int fds;

	(void)state;
	fds = count_fds();
	for (int i = 0; i < 200; i++) {
		struct cgroup_box b = box_make("cycle", &l);
		struct cgroup_exec e = exec_make(&b, &l);

		cgroup_exec_close(&e);
		assert_int_equal(cgroup_box_remove(&b), 0);
	}
	assert_int_equal(count_all(), 0);
	assert_int_equal(count_fds(), fds);
}

/* ---- limits and counters --------------------------------------------------------------------- */

static int eat_memory(int fd)
{
	char *p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)fd;
	if (p == MAP_FAILED)
		return 1;
	memset(p, 1, 256 * MIB);
	return 0;
}

static void test_memory_limit_kills(void **state)
{
	struct cgroup_limits l = { .memory_bytes = 32 * MIB };
	struct cgroup_box b;
	struct cgroup_exec e;
	struct cgroup_usage u;
	int status;

	(void)state;
	b = box_make("oom", &none);
	e = exec_make(&b, &l);
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	assert_int_equal(u.oom_kills, 0);
	status = child_wait(spawn(&b, &e, eat_memory, -1));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	assert_in_range(u.oom_kills, 1, 2); /* v2 kills the group, its first victim twice */
	assert_in_range(u.memory_peak, 24 * MIB, 32 * MIB);
	box_end(&b, &e);
}

/* The cap holds where the command's own limit does not. */
static void test_memory_cap_kills(void **state)
{
	struct cgroup_limits l = { .memory_bytes = 32 * MIB };
	struct cgroup_box b;
	struct cgroup_exec e;
	struct cgroup_usage u;

	(void)state;
	b = box_make("cap", &l);
	e = exec_make(&b, &none);
	assert_true(WIFSIGNALED(child_wait(spawn(&b, &e, eat_memory, -1))));
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	assert_in_range(u.oom_kills, 1, 2); /* v2 kills the group, its first victim twice */
	box_end(&b, &e);
}

static int hold_memory(int fd)
{
	char *p = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || q == MAP_FAILED)
		return 1;
	memset(p, 1, 8 * MIB);
	memset(q, 1, 4 * MIB);
	return say_and_stay(fd);
}

static void test_memory_is_counted(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e;
	struct cgroup_usage u;
	pid_t pid;
	time_t deadline = time(NULL) + 60;

	(void)state;
	b = box_make("memory", &none);
	e = exec_make(&b, &none);
	pid = spawn_ready(&b, &e, hold_memory);
	do { /* the kernel brings its statistics together every two seconds at the latest */
		assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	} while (u.memory_now < 12 * MIB && time(NULL) < deadline);
	assert_in_range(u.memory_now, 12 * MIB, 20 * MIB);
	assert_in_range(u.memory_shmem, 4 * MIB, 5 * MIB);
	assert_true(u.memory_peak >= 12 * MIB);
	child_end(pid);
	box_end(&b, &e);
}

/* Forks until it is refused, which is to be at the fourth child. */
static int fork_to_the_limit(int fd)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			die_with_parent();
			return pause() != 0;
		}
		if (pid < 0)
			return i == 3 && errno == EAGAIN ? say_and_stay(fd) : 1;
	}
	return 1;
}

static void test_pids_limit_denies(void **state)
{
	struct cgroup_limits l = { .pids = 4 };
	struct cgroup_box b;
	struct cgroup_exec e;
	struct cgroup_usage u;
	pid_t pid;

	(void)state;
	b = box_make("pids", &none);
	e = exec_make(&b, &l);
	pid = spawn_ready(&b, &e, fork_to_the_limit);
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	assert_int_equal(u.pids_now, 4);
	assert_true(u.pids_peak == 4 || u.pids_peak == 0);
	assert_int_equal(u.pids_denied, 1);
	assert_int_equal(cgroup_box_kill(&b), 0);
	(void)child_wait(pid);
	box_end(&b, &e);
}

/* Runs until it has used or waited for so much, whichever comes first. */
static uint64_t clock_ms(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* From now on: what a process used before it came into its cgroup is not counted there. */
static int burn(uint64_t cpu_ms, uint64_t wall_ms)
{
	uint64_t wall = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);

	while (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu < cpu_ms &&
	       clock_ms(CLOCK_MONOTONIC) - wall < wall_ms)
		;
	return 0;
}

static int burn_cpu(int fd)
{
	(void)fd;
	return burn(60, 20000);
}

static void test_cpu_time_is_counted(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e;
	struct cgroup_usage before, after;

	(void)state;
	b = box_make("cpu", &none);
	e = exec_make(&b, &none);
	assert_int_equal(cgroup_exec_sample(&b, &e, &before), 0);
	assert_int_equal(child_wait(spawn(&b, &e, burn_cpu, -1)), 0);
	assert_int_equal(cgroup_exec_sample(&b, &e, &after), 0);
	/* Microseconds. In a guest that has to wait for a CPU, it counts the waiting. */
	assert_in_range(after.cpu_us - before.cpu_us, 50000, 20000000);
	assert_in_range(after.cpu_user_us + after.cpu_system_us, after.cpu_us - 1000,
			after.cpu_us + 1000);
	box_end(&b, &e);
}

static int burn_wall(int fd)
{
	(void)fd;
	return burn(UINT64_MAX, 500);
}

static uint64_t throttled(const int *fds)
{
	uint64_t n = 0;

	for (size_t i = 0; i < host.n_hier; i++) {
		char text[1024];

		if (!(host.hier[i].controllers & CGROUP_CPU))
			continue;
		assert_int_equal(cgroup_read(fds[i], "cpu.stat", text, sizeof(text)), 0);
		assert_true(cgroup_keyed_u64(text, "nr_throttled", &n));
	}
	return n;
}

/* As the command's limit, and as the box's cap, where v1 has another layout. */
static bool quota_held(bool as_cap)
{
	const struct cgroup_limits l = { .cpu_milli = 200 };
	struct cgroup_box b = box_make("quota", as_cap ? &l : &none);
	struct cgroup_exec e = exec_make(&b, as_cap ? &none : &l);
	struct cgroup_usage u;
	bool held;

	assert_int_equal(child_wait(spawn(&b, &e, burn_wall, -1)), 0);
	assert_int_equal(cgroup_exec_sample(&b, &e, &u), 0);
	held = u.cpu_us >= 1 && u.cpu_us <= 300000 && throttled(as_cap ? b.fd : e.fd) >= 1;
	box_end(&b, &e);
	return held;
}

/* A machine that is stopped meanwhile, as a guest is that waits for a CPU, takes that time for the command's. Without the
 * quota the command uses 500 ms every time. */
static void test_cpu_quota(void **state)
{
	(void)state;
	for (int as_cap = 0; as_cap < 2; as_cap++) {
		bool held = false;

		for (int attempt = 0; attempt < 10 && !held; attempt++)
			held = quota_held(as_cap);
		assert_true(held);
	}
}

/* ---- the end of a box ------------------------------------------------------------------------ */

static void test_kill(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e;
	pid_t agent, pid;

	(void)state;
	b = box_make("kill", &none);
	e = exec_make(&b, &none);
	agent = spawn_ready(&b, NULL, say_and_stay);
	pid = spawn_ready(&b, &e, say_and_stay);
	assert_int_equal(cgroup_box_kill(&b), 0);
	assert_int_equal(child_wait(agent), SIGKILL);
	assert_int_equal(child_wait(pid), SIGKILL);
	box_end(&b, &e);
}

/* CR-08: it waits for what is dying, not for ever for what lives, and can be tried again. */
static uint64_t cpu_of(struct cgroup_box *b, struct cgroup_exec *e)
{
	struct cgroup_usage u = { 0 };

	assert_int_equal(cgroup_exec_sample(b, e, &u), 0);
	return u.cpu_us;
}

static int burn_on(int fd)
{
	(void)fd;
	return burn(UINT64_MAX, 120000);
}

/* Frozen it stands still, thawed it goes on, and killed it dies either way. */
static void test_freeze(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e;
	uint64_t stood_at;
	pid_t pid;
	int r;

	(void)state;
	b = box_make("freeze", &none);
	e = exec_make(&b, &none);
	pid = spawn(&b, &e, burn_on, -1);
	assert_int_equal(cgroup_box_is_frozen(&b), 0);
	assert_int_equal(cgroup_box_freeze(&b, true), 0);
	while ((r = cgroup_box_is_frozen(&b)) == 0)
		(void)usleep(1000);
	assert_int_equal(r, 1);
	stood_at = cpu_of(&b, &e);
	(void)usleep(100000);
	assert_int_equal(cpu_of(&b, &e), stood_at);
	assert_int_equal(cgroup_box_freeze(&b, false), 0);
	for (int i = 0; i < 6000 && cpu_of(&b, &e) == stood_at; i++)
		(void)usleep(10000); /* until it gets a CPU */
	assert_true(cpu_of(&b, &e) > stood_at);
	assert_int_equal(cgroup_box_freeze(&b, true), 0);
	assert_int_equal(cgroup_box_kill(&b), 0);
	assert_int_equal(child_wait(pid), SIGKILL);
	box_end(&b, &e);
}

/* A settled box holds no descriptor, and reopened it is what it was. */
static void test_settle(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e;
	uint64_t memory = 0;
	uint32_t tasks = 0;
	int before = count_fds();
	pid_t pid;

	(void)state;
	b = box_make("settle", &none);
	e = exec_make(&b, &none);
	pid = spawn_ready(&b, &e, hold_memory);
	for (int i = 0; i < 3; i++) {
		cgroup_exec_settle(&e);
		cgroup_box_settle(&b);
		assert_int_equal(count_fds(), before);
		assert_int_equal(cgroup_exec_glance(&b, &e, &memory, &tasks), 0);
		assert_true(memory > 1 << 20 && tasks == 1);
		assert_int_equal(cgroup_box_reopen(&b), 0);
		assert_int_equal(cgroup_exec_reopen(&b, &e), 0);
		assert_true(cpu_of(&b, &e) > 0);
	}
	assert_int_equal(cgroup_box_kill(&b), 0);
	assert_int_equal(child_wait(pid), SIGKILL);
	box_end(&b, &e);
	assert_int_equal(count_fds(), before);
}

/* A settled box goes although nothing of it can be opened, and what it was told to forget it leaves alone. */
static void test_remove_without_descriptors(void **state)
{
	struct rlimit saved, tight;
	struct cgroup_box b;
	struct cgroup_exec e;
	int r;

	(void)state;
	b = box_make("nofds", &none);
	e = exec_make(&b, &none);
	cgroup_exec_settle(&e);
	cgroup_box_settle(&b);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	tight = (struct rlimit){ 0, saved.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	r = cgroup_box_try_remove(&b);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	assert_int_equal(r, 0);
	assert_int_equal(count_all(), 0);
	for (size_t i = 0; i < host.n_hier; i++)
		assert_int_equal(mkdirat(host.hier[i].fd, b.name, 0755), 0);
	assert_int_equal(cgroup_box_try_remove(&b), 0);
	assert_int_equal(count_all(), host.n_hier);
}

/* What a zygote does: from its own place, without any power, into where a box's commands are. */
static _noreturn_ void visit(const struct cgroup_entry *entry, uid_t who, int ready_fd)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid;

	die_with_parent();
	if (setresuid(who, who, who) < 0)
		_exit(96);
	if (entry->clone_fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)entry->clone_fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		_exit(95);
	if (pid > 0) {
		int status = 0;

		(void)waitpid((pid_t)pid, &status, 0);
		_exit(94);
	}
	die_with_parent();
	for (size_t i = 0; i < entry->n_join; i++)
		if (write(entry->join_fd[i], "0", 1) != 1)
			_exit(93);
	pid = getpid();
	_exit(write(ready_fd, &pid, sizeof(pid)) == sizeof(pid) && pause());
}

static void test_visitor(void **state)
{
	const uid_t who = 1879048192u;
	struct cgroup_entry entry = CGROUP_ENTRY_INIT;
	struct clone_args args = { .exit_signal = SIGCHLD };
	int place_fd = -EBADF, ready[2], before = count_fds();
	char leaf[64];
	long visitor = 0;
	struct cgroup_box b;
	struct cgroup_exec e;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(cgroup_host_admit(&host, box_name("home"), &place_fd), 0);
	b = box_make("visited", &none);
	e = exec_make(&b, &none);
	cgroup_exec_settle(&e);
	cgroup_box_settle(&b);
	assert_int_equal(cgroup_entry_open(&b, &e, who, &entry), 0);
	if (place_fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)place_fd;
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(pid >= 0);
	if (pid == 0)
		visit(&entry, who, ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &visitor, sizeof(visitor)), sizeof(visitor));
	/* In each hierarchy where commands have a leaf, and in the one that kills and freezes. */
	(void)snprintf(leaf, sizeof(leaf), "%s", box_name("visited"));
	assert_int_equal(membership((pid_t)visitor, leaf),
			 (int)entry.n_join + (entry.clone_fd >= 0 ? 1 : 0));
	assert_true(host.mode == CGROUP_V2 ? membership((pid_t)visitor, "exec-1") == 1 :
					     membership((pid_t)visitor, "exec-1") >= 2);
	child_end(pid);
	assert_int_equal(cgroup_box_kill(&b), host.features & CGROUP_KILL ? 0 : -EOPNOTSUPP);
	cgroup_entry_close(&entry);
	(void)close(ready[0]);
	if (place_fd >= 0)
		(void)close(place_fd);
	cgroup_host_dismiss(&host, box_name("home"));
	box_end(&b, &e);
	assert_int_equal(count_fds(), before);
}

/* The largest dies, the others stay. */
static void test_kill_largest(void **state)
{
	struct cgroup_box b;
	struct cgroup_exec e;
	pid_t small, large;

	(void)state;
	b = box_make("largest", &none);
	e = exec_make(&b, &none);
	small = spawn_ready(&b, &e, say_and_stay);
	large = spawn_ready(&b, &e, hold_memory);
	assert_int_equal(cgroup_exec_kill_largest(&b, &e, NULL), 0);
	assert_int_equal(child_wait(large), SIGKILL);
	assert_int_equal(kill(small, 0), 0);
	assert_int_equal(cgroup_exec_kill_largest(&b, &e, NULL), 0);
	assert_int_equal(child_wait(small), SIGKILL);
	assert_int_equal(cgroup_exec_kill_largest(&b, &e, NULL), -ESRCH);
	box_end(&b, &e);
}

/* PL-09: of a file that does not fit, no line is cut: a part of a number is another number. */
static void test_whole_lines(void **state)
{
	char path[] = "/tmp/glovebox-lines-XXXXXX", text[16];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(cgroup_read_lines(AT_FDCWD, path, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(write(fd, "1234\n5678\n", 10), 10);
	assert_int_equal(cgroup_read_lines(AT_FDCWD, path, text, sizeof(text)), 0);
	assert_string_equal(text, "1234\n5678\n");
	assert_int_equal(cgroup_read_lines(AT_FDCWD, path, text, 11), 0);
	assert_string_equal(text, "1234\n5678\n");
	assert_int_equal(cgroup_read_lines(AT_FDCWD, path, text, 10), 0);
	assert_string_equal(text, "1234\n");
	assert_int_equal(cgroup_read_lines(AT_FDCWD, path, text, 4), 0);
	assert_string_equal(text, "");
	(void)close(fd);
}

#define CROWD 1000 /* more than the kernel lists in one read */

/* One that stands behind a crowd in the list is found, too. */
static void test_kill_largest_of_many(void **state)
{
	static pid_t crowd[CROWD];
	int victim = -EBADF;
	siginfo_t info = { 0 };
	struct cgroup_box b;
	struct cgroup_exec e;
	pid_t large;

	(void)state;
	b = box_make("many", &none);
	e = exec_make(&b, &none);
	for (size_t i = 0; i < CROWD; i++)
		crowd[i] = spawn_ready(&b, &e, say_and_stay);
	large = spawn_ready(&b, &e, hold_memory);
	assert_int_equal(cgroup_exec_kill_largest(&b, &e, &victim), 0);
	assert_int_equal(waitid(P_PIDFD, (id_t)victim, &info, WEXITED), 0);
	assert_int_equal(info.si_pid, large);
	(void)close(victim);
	for (size_t i = 0; i < CROWD; i++)
		child_end(crowd[i]);
	box_end(&b, &e);
}

static void test_remove_waits(void **state)
{
	struct timespec start, end;
	struct cgroup_box b;
	struct cgroup_exec e;
	pid_t pid;

	(void)state;
	b = box_make("busy", &none);
	e = exec_make(&b, &none);
	pid = spawn_ready(&b, &e, hold_memory);
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(cgroup_box_remove(&b), -EBUSY);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - start.tv_sec, 0, 60);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(cgroup_box_kill(&b), 0);
	box_end(&b, &e); /* not waited for: it may still be dying */
	(void)child_wait(pid);
}

static bool is_stale(const char *name, void *arg)
{
	return strncmp(name, prefix, strlen(prefix)) == 0 && strstr(name, arg) != NULL;
}

static void test_reap_kills_and_removes(void **state)
{
	struct cgroup_limits l = { .memory_bytes = 64 * MIB };
	struct cgroup_box b, keep;
	struct cgroup_exec e;
	char arg[] = "old";
	pid_t agent, pid;

	(void)state;
	keep = box_make("new", &none);
	b = box_make("old", &l);
	e = exec_make(&b, &l);
	agent = spawn_ready(&b, NULL, say_and_stay);
	pid = spawn_ready(&b, &e, say_and_stay);
	cgroup_exec_close(&e); /* the crash */
	cgroup_box_close(&b);
	assert_int_equal(cgroup_reap(&host, is_stale, arg), 1);
	assert_int_equal(child_wait(agent), SIGKILL);
	assert_int_equal(child_wait(pid), SIGKILL);
	assert_int_equal(cgroup_reap(&host, is_stale, arg), 0);
	box_end(&keep, NULL);
}

/* Cut down at any point of its making or removal: directories in one hierarchy only. */
static void test_reap_partial(void **state)
{
	char arg[] = "part", name[64];

	(void)state;
	for (size_t i = 0; i < host.n_hier; i++) {
		assert_int_equal(mkdirat(host.hier[i].fd, box_name("part"), 0755), 0);
		(void)snprintf(name, sizeof(name), "%s/exec-3", box_name("part"));
		assert_int_equal(mkdirat(host.hier[i].fd, name, 0755), 0);
		assert_int_equal(cgroup_reap(&host, is_stale, arg), 1);
		(void)snprintf(name, sizeof(name), "%s.exec-1", box_name("part"));
		assert_int_equal(mkdirat(host.hier[i].fd, name, 0755), 0);
		assert_int_equal(cgroup_reap(&host, is_stale, arg), 1);
		assert_int_equal(count_all(), 0);
	}
}

/* A process that only a v1 hierarchy knows of: no cgroup.kill there, so one by one. */
static void test_reap_kills_by_pid(void **state)
{
	char arg[] = "bypid", text[16];
	struct cgroup_box b;
	pid_t pid;

	(void)state;
	b = box_make("bypid", &none);
	pid = fork();
	if (pid == 0) {
		die_with_parent();
		_exit(pause() != 0);
	}
	assert_true(pid > 0);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	assert_int_equal(cgroup_write(b.fd[0], "cgroup.procs", text), 0);
	cgroup_box_close(&b);
	assert_int_equal(cgroup_reap(&host, is_stale, arg), 1);
	assert_int_equal(child_wait(pid), SIGKILL);
}

/* After each test, so that one that fails does not take the following along. */
static int clean_up(void **state)
{
	char any[] = "";

	(void)state;
	return cgroup_reap(&host, is_stale, any) < 0 ? -1 : 0;
}

/* ---- who we are ------------------------------------------------------------------------------ */

enum expect { NO_CGROUPS, NO_LIMITS, LIMITS };

/* A limit as the file says it; UINT64_MAX: there is none. */
static uint64_t limit_of(int dir, const char *file)
{
	uint64_t limit;
	char text[32];

	if (cgroup_read(dir, file, text, sizeof(text)) < 0)
		return UINT64_MAX;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, &limit) == 0 ? limit : UINT64_MAX;
}

/* Whether all boxes together have limits, and on v2 no swap (where the kernel has any). */
static bool is_capped(const struct cgroup_host *h)
{
	const char *memory = h->mode == CGROUP_V2 ? "memory.max" : "memory.limit_in_bytes";
	struct cgroup_limits all = cgroup_all_boxes();

	for (size_t i = 0; i < h->n_hier; i++) {
		int dir = h->hier[i].fd;

		if ((h->hier[i].controllers & CGROUP_MEMORY) &&
		    limit_of(dir, memory) > all.memory_bytes)
			return false;
		if ((h->hier[i].controllers & CGROUP_PIDS) && limit_of(dir, "pids.max") != all.pids)
			return false;
		if (h->mode != CGROUP_V2 && (h->hier[i].controllers & CGROUP_CPU) &&
		    limit_of(dir, "cpu.shares") <= 1024)
			return false;
		if (faccessat(dir, "memory.swap.max", F_OK, 0) == 0 &&
		    limit_of(dir, "memory.swap.max") != 0)
			return false;
	}
	return true;
}

/* As an ordinary user: 0 when all is as expected, else what differs. */
static int open_as_user(enum expect expect)
{
	unsigned want = CGROUP_MEMORY | CGROUP_PIDS;
	struct cgroup_limits l = { .memory_bytes = 64 * MIB, .pids = 50 };
	struct cgroup_box b = CGROUP_BOX_INIT;
	struct cgroup_exec e = CGROUP_EXEC_INIT;
	struct cgroup_host h;

	if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
		return 1;
	if (cgroup_host_open(&h) < 0)
		return 2;
	if (expect != LIMITS && ((h.features & want) != 0 || h.why_none[0] == '\0'))
		return 3;
	if (expect != LIMITS)
		return (h.mode == CGROUP_NONE) == (expect == NO_CGROUPS) ? 0 : 9;
	if ((h.features & want) != want || h.why_none[0] != '\0')
		return 4;
	if (!is_capped(&h))
		return 10;
	if (create(&h, box_name("user"), &l, &b) < 0)
		return 5;
	if (cgroup_exec_create(&b, &l, &e) < 0)
		return 6;
	if (child_wait(spawn(&b, &e, burn_cpu, -1)) != 0)
		return 7;
	return cgroup_box_remove(&b) == 0 ? 0 : 8;
}

static void test_user_without_delegation(void **state)
{
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(open_as_user(NO_CGROUPS));
	assert_int_equal(child_wait(pid), 0);
}

/* What systemd's Delegate=yes makes: cgroups that belong to the user, here below our own. */
static void scope_make(int *nodes)
{
	static const char *const given[] = { ".", "cgroup.procs", "cgroup.subtree_control" };

	for (size_t i = 0; i < host.n_hier; i++) {
		assert_int_equal(cgroup_mkdir(host.hier[i].fd, box_name("scope"), &nodes[i]), 0);
		for (size_t k = 0; k < ARRAY_SIZE(given); k++)
			if (faccessat(nodes[i], given[k], F_OK, 0) == 0)
				assert_int_equal(fchownat(nodes[i], given[k], 1000, 1000, 0), 0);
	}
}

/* Removes the scope, which is to have what the table says in it and nothing else. */
static void scope_remove(int *nodes, const char *const *made)
{
	for (size_t i = 0; i < host.n_hier; i++) {
		for (size_t k = 0; made[k] != NULL; k++)
			assert_int_equal(unlinkat(nodes[i], made[k], AT_REMOVEDIR), 0);
		nodes[i] = fd_close(nodes[i]);
		assert_int_equal(unlinkat(host.hier[i].fd, box_name("scope"), AT_REMOVEDIR), 0);
	}
}

static pid_t scope_spawn(const int *nodes, int (*run)(int fd), int fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	die_with_parent();
	for (size_t i = 0; i < host.n_hier; i++)
		if (cgroup_write(nodes[i], "cgroup.procs", "0") < 0)
			_exit(77);
	_exit(run(fd));
}

static int open_with_limits(int fd)
{
	(void)fd;
	return open_as_user(LIMITS);
}

static int open_without_limits(int fd)
{
	char before[64], after[64];
	int r = cgroup_read_own_path("", before, sizeof(before));

	(void)fd;
	if (r >= 0)
		r = open_as_user(NO_LIMITS);
	if (r == 0 && cgroup_read_own_path("", after, sizeof(after)) < 0)
		r = 60;
	return r == 0 && strcmp(before, after) != 0 ? 61 : r;
}

static void test_user_with_delegation(void **state)
{
	static const char *const v1_made[] = { "glovebox", NULL };
	static const char *const v2_made[] = { "glovebox", "supervisor", NULL };
	int nodes[CGROUP_HIER_MAX];

	(void)state;
	scope_make(nodes);
	assert_int_equal(child_wait(scope_spawn(nodes, open_with_limits, -1)), 0);
	scope_remove(nodes, host.mode == CGROUP_V2 ? v2_made : v1_made);
}

/* Whoever made the directory for boxes did not get to its limits: the next one writes them. */
static void test_user_finds_no_cap(void **state)
{
	static const char *const v1_made[] = { "glovebox", NULL };
	static const char *const v2_made[] = { "glovebox", "supervisor", NULL };
	int nodes[CGROUP_HIER_MAX];

	(void)state;
	scope_make(nodes);
	for (size_t i = 0; i < host.n_hier; i++) {
		(void)setfsuid(1000);
		assert_int_equal(mkdirat(nodes[i], "glovebox", 0755), 0);
		(void)setfsuid(0);
	}
	assert_int_equal(child_wait(scope_spawn(nodes, open_with_limits, -1)), 0);
	scope_remove(nodes, host.mode == CGROUP_V2 ? v2_made : v1_made);
}

/* Somebody else sits in the delegated cgroup too: no limits then, and we stay where we were. */
static void test_user_with_company(void **state)
{
	static const char *const made[] = { "glovebox", NULL };
	int nodes[CGROUP_HIER_MAX], fds[2];
	pid_t company;
	char c;

	(void)state;
	scope_make(nodes);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	company = scope_spawn(nodes, say_and_stay, fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(child_wait(scope_spawn(nodes, open_without_limits, -1)), 0);
	child_end(company);
	(void)close(fds[0]);
	(void)close(fds[1]);
	scope_remove(nodes, made);
}

#define BOX_TEST(f) cmocka_unit_test_teardown(f, clean_up)

enum where { ANY, ONLY_V2, NOT_V2 };

static const struct {
	struct CMUnitTest test;
	unsigned features;
	enum where where;
} table[] = {
	{ cmocka_unit_test(test_keyed), 0, ANY },
	{ cmocka_unit_test(test_words), 0, ANY },
	{ cmocka_unit_test(test_own_path), 0, ANY },
	{ cmocka_unit_test(test_whole_lines), 0, ANY },
	{ cmocka_unit_test(test_cpu_list), 0, ANY },
	{ cmocka_unit_test(test_split_cpu), 0, ANY },
	{ cmocka_unit_test(test_none), 0, ANY },
	{ cmocka_unit_test(test_bad_names), 0, ANY },
	{ BOX_TEST(test_agent_is_in_the_box), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_create_twice), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_create_half_taken), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_command_joins_its_leaf), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_refused_limit_leaves_nothing), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_no_descriptors_leave_nothing), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_many_cycles), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_memory_limit_kills), CGROUP_MEMORY, ANY },
	{ BOX_TEST(test_memory_cap_kills), CGROUP_MEMORY, ANY },
	{ BOX_TEST(test_memory_is_counted), CGROUP_MEMORY, ANY },
	{ BOX_TEST(test_pids_limit_denies), CGROUP_PIDS | CGROUP_KILL, ANY },
	{ BOX_TEST(test_cpu_time_is_counted), CGROUP_CPUACCT, ANY },
	{ BOX_TEST(test_cpu_quota), CGROUP_CPU | CGROUP_CPUACCT, ANY },
	{ BOX_TEST(test_kill), CGROUP_KILL, ANY },
	{ BOX_TEST(test_freeze), CGROUP_FREEZE | CGROUP_KILL | CGROUP_CPUACCT, ANY },
	{ BOX_TEST(test_settle), CGROUP_MEMORY | CGROUP_PIDS | CGROUP_KILL | CGROUP_CPUACCT, ANY },
	{ BOX_TEST(test_remove_without_descriptors), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_visitor), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_kill_largest), CGROUP_MEMORY, ANY },
	{ BOX_TEST(test_kill_largest_of_many), CGROUP_MEMORY, ANY },
	{ BOX_TEST(test_remove_waits), CGROUP_MEMORY | CGROUP_KILL, ANY },
	{ BOX_TEST(test_reap_kills_and_removes), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_reap_partial), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_reap_kills_by_pid), CGROUP_MEMORY, NOT_V2 },
	{ BOX_TEST(test_user_without_delegation), CGROUP_MEMORY, ANY },
	{ BOX_TEST(test_user_with_delegation), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_user_finds_no_cap), CGROUP_MEMORY | CGROUP_PIDS, ANY },
	{ BOX_TEST(test_user_with_company), CGROUP_MEMORY | CGROUP_PIDS, ONLY_V2 },
};

static bool is_possible(size_t i)
{
	if (table[i].where == ONLY_V2 && host.mode != CGROUP_V2)
		return false;
	if (table[i].where == NOT_V2 && host.mode == CGROUP_V2)
		return false;
	return (host.features & table[i].features) == table[i].features;
}

/* cmocka's way to skip reads as a failure in TAP: what cannot run here stays out of the plan. */
int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(table)];
	size_t n = 0;
	int failed;

	(void)snprintf(prefix, sizeof(prefix), "ut%d-", (int)getpid());
	if (geteuid() == 0 && cgroup_host_open(&host) < 0)
		return 1;
	print_message("# cgroups: %s, features %#x %s%s\n", cgroup_mode_name(host.mode),
		      host.features, host.why_none, geteuid() == 0 ? "" : "(not root)");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (is_possible(i))
			tests[n++] = table[i].test;
		else
			print_message("# left out: %s, needs %s features %#x\n", table[i].test.name,
				      table[i].where == ONLY_V2 ? "root, cgroup v2," :
				      table[i].where == NOT_V2  ? "root, cgroup v1," :
								  "root,",
				      table[i].features);
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = _cmocka_run_group_tests("cgroup", tests, n, NULL, NULL);
	cgroup_host_close(&host);
	return failed;
}
