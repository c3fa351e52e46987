/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/command/command.h"

#include "agent/loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#define DRAIN_US 250000 /* how long output may still come after the end, where that is bounded */
#define NUDGE_US 20000  /* how often the stragglers of a box's only command are looked at */
#define LOOK_US 1000000 /* how often to look for ends that no signal told of, */
#define LOOK_KEPT_US 10000000 /* also of commands that may live for days */
#define REMEMBER_US 30000000  /* how long an end is remembered */

static struct command table[COMMANDS_MAX];
static size_t n_table; /* every slot that is in use lies below */

struct command *command_at(size_t i)
{
	return &table[i];
}

static void command_close_pipes(struct command *c)
{
	writers_drop(c); /* while it can still be seen whether anything of theirs is left */
	fd_closep(&c->in_fd);
	fd_closep(&c->out_fd);
	fd_closep(&c->err_fd);
	freep(&c->in_data);
}

void command_free(struct command *c)
{
	command_close_pipes(c);
	output_drop(c);
	followers_close(c);
	fd_closep(&c->status_fd);
	freep(&c->label);
	c->state = COMMAND_FREE;
	while (n_table && table[n_table - 1].state == COMMAND_FREE)
		n_table--;
}

/* A free slot, or the one whose end is the longest ago. */
static struct command *command_slot(void)
{
	struct command *oldest = NULL;

	for (size_t i = 0; i < COMMANDS_MAX; i++) {
		struct command *c = &table[i];

		if (c->state == COMMAND_FREE)
			return c;
		if (c->state == COMMAND_ENDED && (!oldest || c->ended_us < oldest->ended_us))
			oldest = c;
	}
	if (oldest)
		command_free(oldest);
	return oldest;
}

struct command *command_new(void)
{
	struct command *c = command_slot();

	if (!c)
		return NULL;
	*c = (struct command){
		.state = COMMAND_STARTING,
		.status_fd = -EBADF,
		.in_fd = -EBADF,
		.out_fd = -EBADF,
		.err_fd = -EBADF,
	};
	for (size_t i = 0; i < FOLLOWERS_MAX; i++)
		c->follower[i] = (struct follower){ .sock = -EBADF, .command = c };
	n_table = MAX(n_table, (size_t)(c - table) + 1);
	return c;
}

struct command *command_find(uint32_t pid)
{
	struct command *ended = NULL;

	for (size_t i = 0; i < n_table; i++) {
		struct command *c = &table[i];

		if (c->state < COMMAND_RUNNING || c->cancelled || (uint32_t)c->pid != pid)
			continue;
		if (c->state != COMMAND_ENDED)
			return c;
		/* The kernel gives numbers out again: the one that runs comes first, then the
		 * latest. */
		if (!ended || c->ended_us > ended->ended_us)
			ended = c;
	}
	return ended;
}

static void kill_everything(void)
{
	/* From pid 1 this is everybody else in the box, in one step that no fork can outrun. */
	(void)kill(-1, SIGKILL);
}

/* A shell on a terminal puts what it runs into other groups; the one in front is known, as long as
 * the shell lives. */
static pid_t foreground_of(const struct command *c)
{
	pid_t foreground;

	if (!c->pty || c->out_fd < 0 || ioctl(c->out_fd, TIOCGPGRP, &foreground) < 0)
		return 0;
	return foreground > 1 && foreground != c->pid ? foreground : 0;
}

void command_signal(struct command *c, int sig)
{
	pid_t foreground = sig == SIGKILL ? foreground_of(c) : 0;

	/* It leads a session and so a group of its own number, which stays taken as long as the
	 * group has members. Before the child has got that far there is only the child. */
	if (kill(-c->pid, sig) < 0 && c->alive)
		(void)kill(c->pid, sig);
	if (foreground)
		(void)kill(-foreground, sig);
}

void command_hurry(struct command *c)
{
	c->hurried = true;
	if (!c->alive)
		c->ended_us = loop_now();
}

void command_cancel(struct command *c)
{
	if (c->cancelled)
		return;
	c->cancelled = true;
	if (c->alone)
		kill_everything();
	else if (c->alive)
		command_signal(c, SIGKILL);
	command_close_pipes(c);
	output_drop(c);
	followers_close(c);
}

static void command_reaped(struct command *c, int status)
{
	c->alive = false;
	c->ended_us = loop_now();
	c->exit.code = -1;
	if (WIFEXITED(status)) {
		c->exit.code = WEXITSTATUS(status);
	} else {
		c->exit.signal = WTERMSIG(status);
		c->exit.core = WCOREDUMP(status) ? 1 : 0;
	}
	if (c->alone && !c->cancelled)
		kill_everything();
}

void commands_reaped(pid_t pid, int status)
{
	for (size_t i = 0; i < n_table; i++)
		if (table[i].alive && table[i].pid == pid)
			command_reaped(&table[i], status);
}

/* Everybody knows how it ended. */
static void command_told(struct command *c)
{
	/* the kernel starts to take the box apart while the host reads the counters */
	if (c->last)
		_exit(0);
	if (!c->keep) {
		command_free(c);
		return;
	}
	followers_close(c);
	freep(&c->label);
	c->state = COMMAND_ENDED;
	c->ended_us = loop_now();
}

static bool command_has_pipes(const struct command *c)
{
	return c->out_fd >= 0 || c->err_fd >= 0;
}

/* Is the end of its pipes still to be waited for? */
static bool waits_for_pipes(struct command *c)
{
	if (!command_has_pipes(c))
		return false;
	if (c->alone) {
		kill_everything();
		return true;
	}
	if (c->keep && !c->hurried)
		return true; /* what holds them is part of what was asked for */
	return loop_now() - c->ended_us < DRAIN_US;
}

static void command_check_deadline(struct command *c)
{
	if (!c->deadline_us || c->state > COMMAND_RUNNING || loop_now() < c->deadline_us)
		return;
	c->deadline_us = 0;
	c->exit.timed_out = 1;
	command_signal(c, SIGKILL);
	command_hurry(c);
}

static void command_finish(struct command *c)
{
	if (c->state == COMMAND_ENDED) {
		if (loop_now() - c->ended_us >= REMEMBER_US)
			command_free(c);
		return;
	}
	command_check_deadline(c);
	if (c->alive)
		return;
	if (c->cancelled) {
		if (c->status_fd < 0)
			command_free(c);
		return;
	}
	if (c->state == COMMAND_STARTING || c->out_data)
		return;
	if (c->state == COMMAND_RUNNING) {
		if (waits_for_pipes(c))
			return;
		command_close_pipes(c);
		c->state = COMMAND_TELLING;
		followers_offer(c, WIRE_EXIT, &c->exit, sizeof(c->exit));
	}
	if (c->cancelled)
		command_free(c); /* nobody was left to tell */
	else if (!c->out_data)
		command_told(c);
}

void commands_finish(void)
{
	for (size_t i = 0; i < n_table; i++)
		if (table[i].state != COMMAND_FREE)
			command_finish(&table[i]);
}

static void watch_clock(const struct command *c)
{
	uint64_t now = loop_now();

	if (c->state == COMMAND_ENDED)
		loop_wake_at(c->ended_us + REMEMBER_US);
	else if (c->alive)
		loop_wake_at(now + (c->keep ? LOOK_KEPT_US : LOOK_US));
	else if (c->alone && command_has_pipes(c))
		loop_wake_at(now + NUDGE_US);
	else if (!c->out_data && command_has_pipes(c) && (!c->keep || c->hurried))
		/* While a follower has not taken what waits, its time may be over: it is the
		 * follower that wakes us. */
		loop_wake_at(c->ended_us + DRAIN_US);
	if (c->deadline_us && c->state <= COMMAND_RUNNING)
		loop_wake_at(c->deadline_us);
}

void commands_watch(void)
{
	for (size_t i = 0; i < n_table; i++) {
		struct command *c = &table[i];

		if (c->state == COMMAND_FREE)
			continue;
		loop_watch(c->status_fd, POLLIN, command_status_ready, c);
		output_watch(c);
		input_watch(c);
		followers_watch(c);
		watch_clock(c);
	}
}
