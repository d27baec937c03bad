// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/fact.h"

#include <stdarg.h>
#include <string.h>

__attribute__((format(printf, 3, 0))) static void set(
	struct fact *f, const char *cause, const char *fmt, va_list args) {
	f->cause = cause;
	f->members = 0;
	vsnprintf(f->sentence, sizeof(f->sentence), fmt, args);
}

void fact_set(struct fact *f, const char *cause, const char *fmt, ...) {
	va_list args;

	va_start(args, fmt);
	set(f, cause, fmt, args);
	va_end(args);
}

void fact_more(struct fact *f, const char *fmt, ...) {
	size_t used = strlen(f->sentence);
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->sentence + used, sizeof(f->sentence) - used, fmt, args);
	va_end(args);
}

static void add_member(struct fact *f, struct fact_member m) {
	if (f->members < FACT_MEMBERS)
		f->member[f->members++] = m;
}

void fact_text(struct fact *f, const char *name, const char *text) {
	add_member(f, (struct fact_member){.name = name, .text = text});
}

void fact_number(struct fact *f, const char *name, double number) {
	add_member(f, (struct fact_member){.name = name, .number = number});
}

void fact_json(const struct fact *f, struct json *j, const char *name) {
	json_object(j, name);
	json_text(j, "cause", f->cause);
	for (uint32_t i = 0; i < f->members; i++) {
		const struct fact_member *m = &f->member[i];

		if (m->text != NULL)
			json_text(j, m->name, m->text);
		else
			json_f64(j, m->name, m->number);
	}
	json_text(j, "sentence", f->sentence);
	json_close(j, '}');
}

void fact_count(
	struct json *j, const char *cause, const char *port, uint64_t count, const char *fmt, ...) {
	struct fact f;
	va_list args;

	if (count == 0)
		return;
	va_start(args, fmt);
	set(&f, cause, fmt, args);
	va_end(args);
	if (port != NULL)
		fact_text(&f, "port", port);
	fact_number(&f, "count", (double)count);
	fact_json(&f, j, NULL);
}

void facts_add(struct facts *all, const struct fact *f) {
	if (all->count < FACTS_MAX)
		all->fact[all->count++] = *f;
	else
		all->more++;
}

void facts_say(struct facts *all, const char *cause, const char *fmt, ...) {
	struct fact f;
	va_list args;

	va_start(args, fmt);
	set(&f, cause, fmt, args);
	va_end(args);
	facts_add(all, &f);
}

void facts_lead(struct facts *all, const char *cause, const char *sentence) {
	if (all->count == FACTS_MAX)
		all->more++;
	else
		all->count++;
	memmove(&all->fact[1], &all->fact[0], (all->count - 1) * sizeof(all->fact[0]));
	fact_set(&all->fact[0], cause, "%s", sentence);
}

const char *facts_verdict(const struct facts *all) {
	return all->count > 0 ? all->fact[0].sentence : "ok";
}

void facts_json(const struct facts *all, struct json *j) {
	struct fact rest;

	json_text(j, "verdict", facts_verdict(all));
	json_array(j, "verdicts");
	for (uint32_t i = 0; i < all->count; i++)
		fact_json(&all->fact[i], j, NULL);
	if (all->more > 0) {
		fact_set(&rest, "more", "and %llu more, which weigh less",
			(unsigned long long)all->more);
		fact_number(&rest, "count", (double)all->more);
		fact_json(&rest, j, NULL);
	}
	json_close(j, ']');
}
