// SPDX-License-Identifier: BSD-3-Clause
// What ends a run early, and what must not: a reader of its output that goes away is no reason.
#include "common/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

volatile int run_stop;

void run_keep_streams(void) {
	// Opened for reading: what is written there fails, as it would without the stream.
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", O_RDONLY); // the lowest number that is free
	}
}

static int standard_output = -1; // while it is aside

void run_stdout_aside(void) {
	if (standard_output >= 0)
		return;
	fflush(stdout);
	standard_output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (standard_output >= 0)
		dup2(STDERR_FILENO, STDOUT_FILENO);
}

void run_stdout_back(void) {
	if (standard_output < 0)
		return;
	fflush(stdout);
	dup2(standard_output, STDOUT_FILENO);
	close(standard_output);
	standard_output = -1;
}

static void on_signal(int signal) {
	run_stop = signal;
}

static void on_runners_end(int signal) {
	run_stop = SIGTERM;
}

static void on_failed_write(int signal) {
}

static void catch_unless_ignored(int signal, const struct sigaction *action) {
	struct sigaction inherited;

	if (sigaction(signal, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		sigaction(signal, action, NULL);
}

// The run ends with the command that started it, however that ends: it alone knows of this run. The
// kernel sends a signal for each of the command's threads, so that it must not be one whose second
// kills.
static void follow_runner(void) {
	struct sigaction end = {.sa_handler = on_runners_end, .sa_flags = SA_RESTART};
	const char *text = getenv("WEIR_RUNNER");
	pid_t runner = text != NULL ? (pid_t)strtol(text, NULL, 10) : 0;

	if (runner <= 0)
		return;
	sigemptyset(&end.sa_mask);
	sigaction(SIGUSR1, &end, NULL);
	if (getppid() == runner)
		prctl(PR_SET_PDEATHSIG, SIGUSR1);
	// It may have ended before that; or something between the two has started this program.
	if (getppid() != runner && kill(runner, 0) < 0 && errno == ESRCH)
		raise(SIGUSR1);
}

void run_catch_signals(void) {
	struct sigaction end = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	// Not SIG_IGN, which programs that are started from here would inherit.
	struct sigaction fail = {.sa_handler = on_failed_write, .sa_flags = SA_RESTART};

	sigemptyset(&end.sa_mask);
	sigemptyset(&fail.sa_mask);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	catch_unless_ignored(SIGHUP, &end); // nohup
	sigaction(SIGPIPE, &fail, NULL);
	sigaction(SIGXFSZ, &fail, NULL);
	follow_runner();
}

void run_interrupted(struct facts *verdict) {
	if (run_stop != 0)
		facts_say(verdict, "interrupted", "interrupted");
}
