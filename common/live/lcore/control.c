// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/lcore/control.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define WAIT_US_MAX 5000000
#define WAIT_STEP_US 200
#define KEY_BYTES_MAX 100
#define TEXT_BYTES_MAX 120 // of one of rte_telemetry's strings, whose end it may have to escape

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define add_u64 rte_tel_data_add_dict_uint
#else
#define add_u64 rte_tel_data_add_dict_u64
#endif

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

// rte_telemetry passes no context to its handlers.
static const struct control_command *registered;
static struct live_app *registered_app;

void control_begin(void) {
	pthread_mutex_lock(&asking);
}

void control_end(void) {
	pthread_mutex_unlock(&asking);
}

static int not_running(const char *lcore, struct err *err) {
	return err_set(err, -EAGAIN, "%s is not running", lcore);
}

int control_free(const struct control_box *box, const char *lcore, struct err *err) {
	return atomic_load(&box->open) && !control_posted(box) ? 0 : not_running(lcore, err);
}

int control_ask(
	struct control_box *box, int request, uint32_t first, const char *lcore, struct err *err) {
	int rc = control_free(box, lcore, err);
	bool open = true;

	if (rc < 0)
		return rc;
	box->request = request;
	box->first = first;
	atomic_store_explicit(&box->posted, true, memory_order_release);
	for (int us = 0; open && us < WAIT_US_MAX; us += WAIT_STEP_US) {
		usleep(WAIT_STEP_US);
		open = atomic_load(&box->open); // read before the answer is looked at a last time
		if (!control_posted(box))
			return 0;
	}
	return open ? err_set(err, -ETIMEDOUT, "%s did not answer", lcore)
		    : not_running(lcore, err);
}

static int handle(const char *name, const char *params, struct rte_tel_data *d) {
	const struct control_command *c = registered;
	struct err err = {0};
	bool answered;

	while (strcmp(c->name, name) != 0)
		c++;
	control_begin();
	rte_tel_data_start_dict(d);
	answered = c->answer(registered_app, params != NULL ? params : "", d, &err);
	control_end();
	if (!answered) {
		rte_tel_data_start_dict(d);
		control_text(d, "error", err.msg);
	}
	return 0;
}

int control_register(
	const struct control_command *commands, struct live_app *app, struct err *err) {
	registered = commands;
	registered_app = app;
	for (const struct control_command *c = commands; c->name != NULL; c++) {
		int rc = rte_telemetry_register_cmd(c->name, handle, c->help);

		if (rc < 0)
			return err_set(err, rc, "rte_telemetry does not take %s: %s", c->name,
				strerror(-rc));
	}
	return 0;
}

uint32_t control_first(const char *params) {
	unsigned long first = strtoul(params, NULL, 10);

	return first < UINT32_MAX / 2 ? (uint32_t)first : UINT32_MAX / 2;
}

// One byte of a key. Names that differ have different keys: '_' before an 'x' is encoded, too.
static int key_byte(char *out, const char *name) {
	if (*name == '.')
		return sprintf(out, "/");
	if ((isalnum((unsigned char)*name) && (unsigned char)*name < 0x80)
		|| (*name == '_' && name[1] != 'x'))
		return sprintf(out, "%c", *name);
	return sprintf(out, "_x%02x", (unsigned char)*name);
}

static void key_of(const char *name, char key[RTE_TEL_MAX_STRING_LEN]) {
	size_t used = 0;

	for (const char *c = name; *c != '\0' && used < KEY_BYTES_MAX; c++)
		used += (size_t)key_byte(key + used, c);
	if (used >= KEY_BYTES_MAX)
		snprintf(key + used, RTE_TEL_MAX_STRING_LEN - used, "_xh%016llx",
			(unsigned long long)XXH64(name, strlen(name), 0));
	else
		key[used] = '\0';
}

struct rte_tel_data *control_dict(struct rte_tel_data *d, const char *name) {
	struct rte_tel_data *dict = rte_tel_data_alloc();
	char key[RTE_TEL_MAX_STRING_LEN];

	if (dict == NULL)
		return NULL;
	key_of(name, key);
	rte_tel_data_start_dict(dict);
	if (rte_tel_data_add_dict_container(d, key, dict, 0) == 0)
		return dict;
	rte_tel_data_free(dict);
	return NULL;
}

const char *control_encode(const char *text, char *out, size_t size) {
	size_t used = 0;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = c >= ' ' && c < 0x7f
			&& !(c == '%' && isxdigit((unsigned char)text[1])
				&& isxdigit((unsigned char)text[2]));
		size_t bytes = plain ? 1 : 3;

		if (used + bytes >= size)
			break;
		used += (size_t)(plain ? sprintf(out + used, "%c", c)
				       : sprintf(out + used, "%%%02X", c));
	}
	out[used] = '\0';
	return text;
}

void control_text(struct rte_tel_data *d, const char *name, const char *value) {
	char part[TEXT_BYTES_MAX + 1], key[RTE_TEL_MAX_STRING_LEN];
	unsigned int parts = 1;

	if (d == NULL)
		return;
	value = control_encode(value, part, sizeof(part));
	rte_tel_data_add_dict_string(d, name, part);
	while (*value != '\0') {
		value = control_encode(value, part, sizeof(part));
		snprintf(key, sizeof(key), "%s/%u", name, ++parts);
		rte_tel_data_add_dict_string(d, key, part);
	}
}

void control_u64(struct rte_tel_data *d, const char *name, uint64_t value) {
	if (d != NULL)
		add_u64(d, name, value);
}

void control_f64(struct rte_tel_data *d, const char *name, double value) {
	char text[32];

	snprintf(text, sizeof(text), "%.17g", value);
	control_text(d, name, text);
}
