// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/control.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_US_MAX 5000000
#define WAIT_STEP_US 200

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define add_u64 rte_tel_data_add_dict_uint
#else
#define add_u64 rte_tel_data_add_dict_u64
#endif

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

void control_begin(void) {
	pthread_mutex_lock(&asking);
}

static int not_running(const char *who, struct err *err) {
	return err_set(err, -EAGAIN, "%s is not running", who);
}

int control_free(const struct control_box *box, const char *who, struct err *err) {
	// After a question that was never answered the box stays shut.
	return atomic_load(&box->open) && !control_posted(box) ? 0 : not_running(who, err);
}

int control_wait(struct control_box *box, const char *who, struct err *err) {
	bool open = true;

	atomic_store_explicit(&box->posted, true, memory_order_release);
	for (int us = 0; open && us < WAIT_US_MAX; us += WAIT_STEP_US) {
		usleep(WAIT_STEP_US);
		open = atomic_load(&box->open); // before the last look at the answer
		if (!control_posted(box))
			return 0;
	}
	return open ? err_set(err, -ETIMEDOUT, "%s did not answer", who) : not_running(who, err);
}

void control_end(void) {
	pthread_mutex_unlock(&asking);
}

int control_register(const struct control_command *commands, size_t n, struct err *err) {
	for (size_t i = 0; i < n; i++) {
		int rc = rte_telemetry_register_cmd(
			commands[i].command, commands[i].handler, commands[i].help);

		if (rc < 0)
			return err_set(err, rc, "rte_telemetry does not take %s: %s",
				commands[i].command, strerror(-rc));
	}
	return 0;
}

uint32_t control_first(const char *params) {
	unsigned long first = params != NULL ? strtoul(params, NULL, 10) : 0;

	return first < UINT32_MAX / 2 ? (uint32_t)first : UINT32_MAX / 2;
}

struct rte_tel_data *control_dict(void) {
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d != NULL)
		rte_tel_data_start_dict(d);
	return d;
}

int control_error(struct rte_tel_data *d, const struct err *err) {
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_string(d, "error", err->msg);
}

int control_ok(struct rte_tel_data *d) {
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_int(d, "ok", 1);
}

void control_u64(struct rte_tel_data *d, const char *name, uint64_t value) {
	add_u64(d, name, value);
}

void control_f64(struct rte_tel_data *d, const char *name, double value) {
	char text[32];

	snprintf(text, sizeof(text), "%.17g", value);
	rte_tel_data_add_dict_string(d, name, text);
}

void control_named(struct rte_tel_data *d, const char *name, struct rte_tel_data *one) {
	char key[RTE_TEL_MAX_STRING_LEN];

	snprintf(key, sizeof(key), "%.60s", name);
	for (char *c = key; *c != '\0'; c++) {
		if (*c == '.')
			*c = '/';
		else if (!isalnum((unsigned char)*c) && *c != '_' && *c != '/')
			*c = '_';
	}
	rte_tel_data_add_dict_container(d, key, one, 0);
}
