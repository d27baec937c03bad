// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/agent/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define INTERRUPTED_MS 2000 // a call may last so long after Ctrl-C
#define POLL_MS 200 // how soon a wait notices it

static struct {
	int from, to; // pipes
	pid_t child; // 0: the process is our parent
	pid_t owner; // whoever has forked from us since says nothing
	const volatile int *stop; // not 0: the run is to end
} agent;

static const char *interpreter(void) {
	const char *named = getenv("WEIR_PYTHON");

	return named != NULL && named[0] != '\0' ? named : "python3";
}

// In the child: standard output is weir-sim's own, so that what a control prints goes to standard
// error.
static void become(int from, int to, int memory) {
	char text[3][12];
	int fds[3] = {from, to, memory};

	for (int i = 0; i < 3; i++) {
		fcntl(fds[i], F_SETFD, 0);
		snprintf(text[i], sizeof(text[i]), "%d", fds[i]);
	}
	dup2(STDERR_FILENO, STDOUT_FILENO);
	setenv("PYTHONHASHSEED", "0", 1);
	// -P: no module of the current folder takes the place of Python's own.
	execlp(interpreter(), interpreter(), "-P", "-m", "weir.control.server", text[0], text[1],
		text[2], (char *)NULL);
	_exit(127);
}

static int begin(int memory, char *error, size_t error_size) {
	int down[2], up[2];

	if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0) {
		snprintf(error, error_size, "pipe: %s", strerror(errno));
		return -1;
	}
	agent.child = fork();
	if (agent.child == 0)
		become(down[0], up[1], memory);
	close(down[0]);
	close(up[1]);
	agent.from = up[0];
	agent.to = down[1];
	if (agent.child < 0)
		snprintf(error, error_size, "fork: %s", strerror(errno));
	return agent.child < 0 ? -1 : 0;
}

static struct agent_page *map(int memory, char *error, size_t error_size) {
	struct agent_page *page = MAP_FAILED;

	if (memory >= 0 && ftruncate(memory, sizeof(*page)) == 0)
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (page == MAP_FAILED) {
		snprintf(error, error_size, "memory shared with Python: %s", strerror(errno));
		return NULL;
	}
	page->version = AGENT_VERSION;
	page->slots_offset = offsetof(struct agent_page, slot_of);
	page->slot_bytes = sizeof(struct agent_slot);
	page->record_offset = offsetof(struct agent_slot, m);
	memcpy(page->lines, MEASUREMENT_LINES, sizeof(MEASUREMENT_LINES));
	return page;
}

static void on_failed_write(int signal) {
}

// Writing to a process that has ended is an error, and no signal that ends this one.
static void survive_failed_writes(void) {
	struct sigaction old, none = {.sa_handler = on_failed_write, .sa_flags = SA_RESTART};

	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		sigaction(SIGPIPE, &none, NULL);
}

struct agent_page *agent_start(const volatile int *stop, char *error, size_t error_size) {
	const char *given = getenv("WEIR_AGENT");
	struct agent_page *page;
	int memory;

	agent.owner = getpid();
	agent.stop = stop;
	survive_failed_writes();
	if (given != NULL) {
		if (sscanf(given, "%d,%d,%d", &agent.from, &agent.to, &memory) == 3)
			return map(memory, error, error_size);
		snprintf(error, error_size, "WEIR_AGENT: %s is not FROM,TO,MEMORY", given);
		return NULL;
	}
	memory = memfd_create("weir-agent", MFD_CLOEXEC);
	page = map(memory, error, error_size);
	if (page != NULL && begin(memory, error, error_size) < 0)
		page = NULL;
	close(memory);
	return page;
}

// Why nothing came.
static void gone(char *error, size_t error_size) {
	int status = 0;

	if (agent.child == 0 || waitpid(agent.child, &status, 0) != agent.child)
		snprintf(error, error_size, "the Python process that controls the flows has ended");
	else if (WIFSIGNALED(status))
		snprintf(error, error_size, "the Python process was ended by signal %d (%s)",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == 127)
		snprintf(error, error_size,
			"%s cannot be run; WEIR_PYTHON names the Python that has Weir",
			interpreter());
	else
		snprintf(error, error_size,
			"the Python process (%s) ended with status %d; WEIR_PYTHON names the "
			"Python that has Weir",
			interpreter(), WEXITSTATUS(status));
}

// After Ctrl-C a call still has time to end, as the run then ends in order. The signal interrupts
// no wait if it came before it, or if another thread has handled it.
static bool answered(void) {
	struct pollfd p = {.fd = agent.from, .events = POLLIN};
	int stopped_ms = 0;
	char byte;

	while (poll(&p, 1, POLL_MS) <= 0) {
		stopped_ms += *agent.stop != 0 ? POLL_MS : 0;
		if (stopped_ms > INTERRUPTED_MS)
			return false;
	}
	return read(agent.from, &byte, 1) == 1;
}

bool agent_ask(struct agent_page *page, char *error, size_t error_size) {
	page->failed = 0;
	if (write(agent.to, "", 1) == 1 && answered()) {
		if (page->failed == 0)
			return true;
		snprintf(error, error_size, "%.*s", AGENT_TEXT_BYTES - 1, page->text);
		return false;
	}
	if (*agent.stop != 0 && agent.child > 0)
		kill(agent.child, SIGKILL);
	gone(error, error_size);
	return false;
}

// Whether no other run has this CPU: the name of a socket, which goes with its process.
static bool claim(unsigned cpu) {
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "weir-agent-cpu-%u", cpu);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return true;
	close(fd);
	return false;
}

void agent_pin(struct agent_page *page) {
	cpu_set_t allowed, one;
	int current = sched_getcpu();
	unsigned cpu = (unsigned)current, chosen = cpu;

	if (current < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	for (unsigned i = 0; i < CPU_SETSIZE; i++) {
		chosen = (cpu + i) % CPU_SETSIZE;
		if (CPU_ISSET(chosen, &allowed) && claim(chosen))
			break;
		chosen = cpu;
	}
	CPU_ZERO(&one);
	CPU_SET(chosen, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (agent.child > 0)
		sched_setaffinity(agent.child, sizeof(one), &one);
	page->cpu = 1 + chosen;
}

void agent_end(struct agent_page *page) {
	if (agent.owner != getpid())
		return;
	page->call = AGENT_END;
	(void)!write(agent.to, "", 1);
}
