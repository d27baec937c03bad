// SPDX-License-Identifier: BSD-3-Clause
#include "sender/cc/plugin.h"

#include "common/run/run.h"
#include "sender/cc/outcome.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define CALL_S_MAX 2 // of a call, once the run is to end
#define SAMPLE_MS 100
#define OWN_CONFIG 16 // a plug-in's own config begins here, behind a pointer to the plug-in

struct plugin {
	struct plugin *next;
	struct cc_ops ops; // what the transport calls
	struct cc_ops own; // its own; NULL what its version has not
	void *object; // that was opened first: several may be copies of it
	void *settings; // its config, with which configure was called; NULL: not yet
	struct param *params; // its own, with the offsets of our config object
	char *path;
};

static struct plugin *loaded; // kept to the end: names and tables are the plug-ins'

// Whose code this thread is in: written before and after each call, read by signal handlers.
static _Thread_local const char *volatile running_path, *volatile running;
// A call that lasts is marked: `running` is `marked` until it returns, and this is what it was.
static _Thread_local const char *volatile lasting;
static const char marked[] = "";
static atomic_bool limited; // calls have CALL_S_MAX even if nothing ends the run

// Where a thread's handlers run when its stack is full.
static _Thread_local char handler_stack[32768];
static _Thread_local const char *stack_begin;

static const struct {
	int number;
	const char *what;
} crashes[] = {{SIGSEGV, "an access to memory that it does not have"},
	{SIGBUS, "an access to memory that it does not have"},
	{SIGFPE, "a division of integers by zero"},
	{SIGILL, "an instruction that this processor does not have"},
	{SIGABRT, "a call of abort()"}};
#define CRASHES (sizeof(crashes) / sizeof(crashes[0]))
static struct sigaction before_us[CRASHES];

static void say(const char *text) {
	(void)!write(STDERR_FILENO, text, strlen(text));
}

// Calls nothing that a signal handler may not.
static _Noreturn void end_program(const char *what) {
	say(program_invocation_short_name);
	say(": plug-in ");
	say(running_path);
	say(": ");
	say(running == marked ? lasting : running);
	say(": ");
	say(what);
	say(" ended the program\n");
	_exit(EXIT_FAILURE);
}

static bool stack_is_full(const char *address) {
	struct rlimit most;

	return getrlimit(RLIMIT_STACK, &most) == 0 && address < stack_begin
		&& (uintptr_t)(stack_begin - address) < most.rlim_cur + (1u << 20);
}

static void on_crash(int number, siginfo_t *info, void *context) {
	size_t i = 0;

	while (i + 1 < CRASHES && crashes[i].number != number)
		i++;
	if (running == NULL) { // not in a plug-in: it happens again, without us
		sigaction(number, &before_us[i], NULL);
		return;
	}
	end_program(number == SIGSEGV && stack_is_full(info->si_addr)
			? "a full stack (does a function call itself without end?)"
			: crashes[i].what);
}

static void on_exit_within(void) {
	if (running == NULL)
		return;
	fflush(stdout);
	end_program("a call of exit()");
}

// In each thread, once per CALL_S_MAX: whether it is still in the call of the last time.
static void on_sample(int number) {
	if (running == NULL)
		return;
	if (running == marked)
		end_program("a call that did not return within 2 s");
	lasting = running;
	running = marked;
}

static void sample_threads(void) {
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;

	while (threads != NULL && (entry = readdir(threads)) != NULL) {
		if (atoi(entry->d_name) > 0)
			tgkill(getpid(), atoi(entry->d_name), SIGURG);
	}
	if (threads != NULL)
		closedir(threads);
}

// A thread of its own, so that calls cost nothing more: it sleeps until the run is to end.
static void *watch(void *unused) {
	while (run_stop == 0 && !limited)
		usleep(SAMPLE_MS * 1000);
	for (;;) {
		sample_threads();
		sleep(CALL_S_MAX);
	}
	return NULL;
}

static int start_watch(struct err *err) {
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return err_set(err, -rc, "no thread for plug-ins: %s", strerror(rc));
	pthread_detach(thread);
	return 0;
}

// For the thread that calls it. One that has such a stack, as with a sanitizer, keeps it.
static void give_handler_stack(void) {
	const stack_t own = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
	stack_t old;

	if (stack_begin != NULL)
		return;
	stack_begin = __builtin_frame_address(0);
	if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0)
		sigaltstack(&own, NULL);
}

static int catch_ends(struct err *err) {
	struct sigaction crash = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction sample = {.sa_handler = on_sample, .sa_flags = SA_RESTART | SA_ONSTACK};
	static bool caught;

	give_handler_stack();
	if (caught)
		return 0;
	caught = true;
	sigemptyset(&crash.sa_mask);
	sigemptyset(&sample.sa_mask);
	for (size_t i = 0; i < CRASHES; i++)
		sigaction(crashes[i].number, &crash, &before_us[i]);
	sigaction(SIGURG, &sample, NULL);
	atexit(on_exit_within);
	return start_watch(err);
}

void cc_plugin_limit(void) {
	limited = true;
}

static void enter(const char *path, const char *what) {
	running_path = path;
	running = what;
}

static void leave(void) {
	running = NULL;
}

static const struct plugin *plugin_of(const void *config) {
	return *(const struct plugin *const *)config;
}

static const void *own_config(const void *config) {
	return (const char *)config + OWN_CONFIG;
}

static void refuse(const struct plugin *p, const char *callback, uint64_t now_ns, const char *what,
	double value, int least) {
	cc_fail("plug-in %s: %s (now_ns %" PRIu64
		"): %s is %g, and must be a finite number of %d or more",
		p->path, callback, now_ns, what, value, least);
}

// An answer that is none leaves the last one.
static void check(const struct plugin *p, const char *callback, uint64_t now_ns,
	const struct cc_out *last, struct cc_out *out) {
	bool window = isfinite(out->cwnd_segs) && out->cwnd_segs >= 1;
	bool rate = isfinite(out->pacing_bps) && out->pacing_bps >= 0;

	if (window && rate) {
		cc_bound(out);
		return;
	}
	refuse(p, callback, now_ns, window ? "pacing_bps" : "cwnd_segs",
		window ? out->pacing_bps : out->cwnd_segs, window ? 0 : 1);
	*out = *last;
}

static double plugin_given_window(const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "given_window");
	double segs = p->own.given_window(own_config(config));
	leave();
	if (segs >= 1) // INFINITY is legal here
		return segs;
	refuse(p, "given_window", 0, "its answer", segs, 1);
	return 1;
}

static void plugin_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct cc_out none = {.cwnd_segs = 1};
	const struct plugin *p = plugin_of(config);

	give_handler_stack();
	enter(p->path, "init");
	p->own.init(state, own_config(config), mss_bytes, rtt_ns, now_ns, out);
	leave();
	check(p, "init", now_ns, &none, out);
}

static void plugin_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct plugin *p = plugin_of(config);
	struct cc_out last = *out;

	enter(p->path, "on_ack");
	p->own.on_ack(state, own_config(config), ack, out);
	leave();
	check(p, "on_ack", ack->now_ns, &last, out);
}

static void plugin_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct plugin *p = plugin_of(config);
	struct cc_out last = *out;

	enter(p->path, "on_loss");
	p->own.on_loss(state, own_config(config), loss, out);
	leave();
	check(p, "on_loss", loss->now_ns, &last, out);
}

static void plugin_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct plugin *p = plugin_of(config);
	struct cc_out last = *out;

	enter(p->path, "on_rto");
	p->own.on_rto(state, own_config(config), loss, out);
	leave();
	check(p, "on_rto", loss->now_ns, &last, out);
}

static void plugin_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	const struct plugin *p = plugin_of(config);
	struct cc_out last = *out;

	enter(p->path, "on_spurious");
	p->own.on_spurious(state, own_config(config), now_ns, out);
	leave();
	check(p, "on_spurious", now_ns, &last, out);
}

static void plugin_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct plugin *p = plugin_of(config);
	struct cc_out last = *out;

	enter(p->path, "on_idle");
	p->own.on_idle(state, own_config(config), now_ns, idle_ns, out);
	leave();
	check(p, "on_idle", now_ns, &last, out);
}

static void plugin_on_sample(void *state, const void *config, const struct cc_sample *sample) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "on_sample");
	p->own.on_sample(state, own_config(config), sample);
	leave();
}

static uint32_t plugin_requests(void *state, const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "requests");
	uint32_t requests = p->own.requests(state, own_config(config));
	leave();
	return requests;
}

static void plugin_release(void *state, const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "release");
	p->own.release(state, own_config(config));
	leave();
}

static void plugin_open(void *state, const void *config, struct cc_flow *flow) {
	const struct plugin *p = plugin_of(config);

	give_handler_stack();
	enter(p->path, "open");
	p->own.open(state, own_config(config), flow);
	leave();
}

static void plugin_on_timer(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	const struct plugin *p = plugin_of(config);
	struct cc_out last = *out;

	enter(p->path, "on_timer");
	p->own.on_timer(state, own_config(config), now_ns, out);
	leave();
	check(p, "on_timer", now_ns, &last, out);
}

static void plugin_on_packet(void *state, const void *config, const struct cc_packet *packet) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "on_packet");
	p->own.on_packet(state, own_config(config), packet);
	leave();
}

static uint64_t plugin_on_arrival(
	void *receiver, const void *config, const struct cc_arrival *arrival) {
	const struct plugin *p = plugin_of(config);

	give_handler_stack();
	enter(p->path, "on_arrival");
	uint64_t bytes = p->own.on_arrival(receiver, own_config(config), arrival);
	leave();
	return bytes;
}

static const char *plugin_shared_name(const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "shared_name");
	const char *name = p->own.shared_name(own_config(config));
	leave();
	return name;
}

static bool plugin_wants(const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "wants");
	bool wants = p->own.wants(own_config(config));
	leave();
	return wants;
}

static void plugin_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "observe");
	p->own.observe(state, own_config(config), out);
	leave();
}

static uint8_t plugin_mode(const void *state, const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "mode");
	uint8_t mode = p->own.mode(state, own_config(config));
	leave();
	return mode;
}

static double plugin_ssthresh(const void *state, const void *config) {
	const struct plugin *p = plugin_of(config);

	enter(p->path, "ssthresh");
	double segs = p->own.ssthresh(state, own_config(config));
	leave();
	return segs;
}

// Its ops with our functions around its own.
static struct cc_ops guarded(const struct cc_ops *own) {
	struct cc_ops ops = *own;

	ops.given_window = plugin_given_window;
	ops.init = plugin_init;
	ops.on_ack = plugin_on_ack;
	ops.on_loss = plugin_on_loss;
	ops.on_rto = plugin_on_rto;
	ops.on_spurious = own->on_spurious != NULL ? plugin_on_spurious : NULL;
	ops.on_idle = own->on_idle != NULL ? plugin_on_idle : NULL;
	ops.observe = own->observe != NULL ? plugin_observe : NULL;
	ops.mode = own->mode != NULL ? plugin_mode : NULL;
	ops.ssthresh = own->ssthresh != NULL ? plugin_ssthresh : NULL;
	ops.on_sample = own->on_sample != NULL ? plugin_on_sample : NULL;
	ops.requests = own->requests != NULL ? plugin_requests : NULL;
	ops.release = own->release != NULL ? plugin_release : NULL;
	ops.open = own->open != NULL ? plugin_open : NULL;
	ops.on_timer = own->on_timer != NULL ? plugin_on_timer : NULL;
	ops.on_packet = own->on_packet != NULL ? plugin_on_packet : NULL;
	ops.on_arrival = own->on_arrival != NULL ? plugin_on_arrival : NULL;
	ops.shared_name = own->shared_name != NULL ? plugin_shared_name : NULL;
	ops.wants = own->wants != NULL ? plugin_wants : NULL;
	ops.config_size = OWN_CONFIG + own->config_size;
	ops.samples = true; // it may be older than the flag
	return ops;
}

// The linker's sentence, which begins with the path.
static const char *without(const char *path, const char *sentence) {
	size_t n = strlen(path);

	return strncmp(sentence, path, n) == 0 && sentence[n] == ':' ? sentence + n + 2 : sentence;
}

// A copy of a file that is open already, which the linker takes for another object: with static
// variables of its own.
static void *open_copy(const char *path) {
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("plug-in", MFD_CLOEXEC);
	void *object = NULL;
	char name[32];
	ssize_t n = 1;

	while (from >= 0 && to >= 0 && n > 0)
		n = sendfile(to, from, NULL, 1 << 20);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", to);
	if (n == 0)
		object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (from >= 0)
		close(from);
	if (object == NULL && to >= 0) // else it keeps its number: the linker knows it by name
		close(to);
	return object;
}

static int read_object(void *object, const struct cc_plugin **plugin, size_t *params,
	const char *error, struct err *err) {
	if (object == NULL)
		return err_set(err, -EINVAL, "%s", error);
	*plugin = dlsym(object, "weir_cc_plugin");
	if (*plugin == NULL)
		return err_set(err, -EINVAL,
			"it has no symbol weir_cc_plugin: its source ends with CC_PLUGIN(ops)");
	return cc_plugin_check(*plugin, params, err);
}

static struct plugin *plugin_add(
	const char *path, void *object, const struct cc_plugin *plugin, size_t params) {
	struct plugin *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->path = strdup(path);
	p->params = calloc(params + 1, sizeof(*p->params));
	if (p->path == NULL || p->params == NULL) {
		free(p->path);
		free(p->params);
		free(p);
		return NULL;
	}
	memcpy(&p->own, plugin->ops, plugin->ops_size);
	p->object = object;
	for (size_t i = 0; i < params; i++) {
		p->params[i] = p->own.params[i];
		p->params[i].offset += OWN_CONFIG;
	}
	p->ops = guarded(&p->own);
	p->ops.params = p->params;
	p->next = loaded;
	return loaded = p;
}

int cc_plugin_load(const char *path, const struct cc_ops **ops, struct err *err) {
	// Without a slash the linker would look among the system's libraries.
	char here[4096];
	const struct cc_plugin *plugin = NULL;
	void *object = NULL;
	size_t params = 0;
	struct plugin *p;
	struct err why;
	int rc;

	snprintf(here, sizeof(here), "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
	if ((rc = catch_ends(err)) < 0)
		return rc;
	run_stdout_aside();
	enter(here, "loading it");
	object = dlopen(here, RTLD_NOW | RTLD_LOCAL);
	rc = read_object(
		object, &plugin, &params, object == NULL ? without(here, dlerror()) : "", &why);
	leave();
	run_stdout_back();
	if (rc < 0)
		return err_set(err, rc, "plug-in %s: %s", here, why.msg);
	p = plugin_add(here, object, plugin, params);
	if (p == NULL)
		return err_set(err, -ENOMEM, "no memory for plug-in %s", here);
	*ops = &p->ops;
	return 0;
}

static bool has_settings(const struct plugin *p, const void *settings) {
	return p->settings != NULL && memcmp(p->settings, settings, p->own.config_size) == 0;
}

// Finds or makes the instance of a plug-in whose static variables are those of these settings.
static int find_instance(struct plugin **instance, const void *settings, struct err *err) {
	struct plugin *of = *instance, *p;
	const struct cc_plugin *plugin = NULL;
	bool taken = false;
	size_t params = 0;

	for (p = loaded; p != NULL; p = p->next) {
		if (p->object == of->object && has_settings(p, settings)) {
			*instance = p;
			return 0;
		}
		taken |= p->object == of->object && p->settings != NULL;
	}
	if (taken) {
		void *copy = open_copy(of->path);
		int rc = read_object(copy, &plugin, &params, "no copy of it can be opened", err);

		if (rc < 0)
			return rc;
		p = plugin_add(of->path, of->object, plugin, params);
	} else {
		p = of;
	}
	if (p == NULL || (p->settings = malloc(of->own.config_size + 1)) == NULL)
		return err_set(err, -ENOMEM, "no memory for plug-in %s", of->path);
	memcpy(p->settings, settings, of->own.config_size);
	*instance = p;
	return 0;
}

int cc_plugin_config(const struct cc_ops *ops, void *config, struct err *err) {
	struct plugin *p = loaded;
	const char *why = NULL;
	int rc;

	while (&p->ops != ops)
		p = p->next;
	if (p->own.configure != NULL && (rc = find_instance(&p, own_config(config), err)) < 0)
		return rc;
	*(const struct plugin **)config = p;
	if (p->own.configure == NULL)
		return 0;
	run_stdout_aside();
	enter(p->path, "configure");
	why = p->own.configure(own_config(config));
	leave();
	run_stdout_back();
	if (why == NULL)
		return 0;
	return err_set(err, -EINVAL, "plug-in %s: configure: %s", p->path, why);
}
