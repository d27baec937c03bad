// SPDX-License-Identifier: BSD-3-Clause
// The config file: a YAML tree that remembers where each value stands.
//
// Every scalar is text; the parameter tables give it a type. config_params() also writes the
// defaults it used into the tree, so that after all sections were read config_print() shows the
// fully resolved file. Each map entry must be read: config_unused() reports the first one that was
// not, with its place.
#pragma once
#include "common/base/err.h"
#include "common/base/param.h"

#include <stdbool.h>
#include <stdio.h>

enum config_kind { CONFIG_SCALAR, CONFIG_MAP, CONFIG_LIST };
struct config; // a whole document; owns its nodes
struct config_node; // one scalar, map or list in it

// Reads a file ("-": standard input) or text. NULL and one sentence on error: a missing file, bad
// YAML, a duplicate key, a key that is not a scalar, an anchor, alias or tag, more than one
// document, more than 32 levels, 1024 entries in a map or 4 MiB.
struct config *config_load(const char *path, struct err *err);
struct config *config_parse(const char *name, const char *text, size_t len, struct err *err);
void config_free(struct config *c);

// -o path.to.key=value. An item of a list is entered by number ("flows.0.count"), by its `name:`,
// or, if it is a map of one key, by that key and its place among those with the same key, from 2 on
// ("paths.forward.link.rate", "paths.forward.link2.rate"). After a number such a key may follow
// ("paths.forward.2.link.rate"); "+" appends an item ("schedule.+"). A bare plug-in name is entered
// by itself ("queue: fifo" as "queue.fifo.limit"). The value may be any YAML flow text. Missing map
// keys are created; a missing list item is an error.
int config_override(struct config *c, const char *assignment, struct err *err);

struct config_node *config_root(struct config *c);
enum config_kind config_kind(const struct config_node *n);
// "file:line:col", or the override's text. Valid as long as the document.
const char *config_place(const struct config_node *n);
// Scalar's text; NULL for the others.
const char *config_text(const struct config_node *n);
// Value of a map's key, or NULL. Marks the key as read.
struct config_node *config_get(struct config_node *map, const char *key);
// Number of entries of a map or list; their keys (map only) and values in written order.
size_t config_count(const struct config_node *n);
const char *config_key(const struct config_node *map, size_t i);
struct config_node *config_at(struct config_node *n, size_t i); // marks the entry as read
// Value of a map's key like config_get, made as an empty map if it is missing or empty: reading its
// parameters then writes their defaults into the tree.
struct config_node *config_section(struct config_node *map, const char *key);
// Marks everything below n (may be NULL) as read: a section for another program.
void config_skip(struct config_node *n);
// What an item of a list is called: its `name:`, or its type and, from the second of that type on,
// its place among them ("link", "link2"). "": it has neither. Returns the type, or NULL: a map of
// several keys has none.
#define CONFIG_ITEM_SIZE 152
const char *config_item(
	const struct config_node *list, size_t i, char name[static CONFIG_ITEM_SIZE]);
// Adds key: text to a map that does not have the key (used for resolved defaults).
void config_add(struct config_node *map, const char *key, const char *text);
// Appends an empty map to the list of that key, which is made if it is missing.
struct config_node *config_append(struct config_node *map, const char *key);
void config_remove(struct config_node *map, const char *key);

// Reads every parameter of `table` from the map `n` (NULL or an empty scalar: all defaults) into
// obj. Unknown keys are an error unless they are in the table `also` (NULL: none), whose keys the
// caller reads itself. Errors carry the place: "x.yaml:12:9: rate: 500 is not in [1kbit, 1Tbit]".
// `what` names the section for "what: rate is required".
int config_params(struct config_node *n, const char *what, const struct param *table,
	const struct param *also, void *obj, struct err *err);
// The same into a new object of `size` bytes, which the caller frees, also after an error.
int config_object(struct config_node *n, const char *what, const struct param *table,
	const struct param *also, size_t size, void **object, struct err *err);
// Reads one of them where another function reads the rest of the map: no default is written into
// the tree.
int config_param(struct config_node *map, const char *what, const struct param *p, void *obj,
	struct err *err);
// For {name: {params...}} or a bare "name": returns the name and its params, an empty map if none
// were written. Used for queue, cc, stages. A map with more than one key is an error, and so is no
// n at all: "queue is required".
int config_plugin(struct config_node *n, const char *what, const char **name,
	struct config_node **params, struct err *err);
// One of those that config_plugin's name may be, and what else it is called (NULL: nothing).
struct config_name {
	const char *name, *alias;
};
// Which one it is, whatever the case of its letters; the tree then has its own name. nth(i) has a
// NULL name behind the last. Else -EINVAL and a sentence, "cc: 'cubicc' is not a congestion
// control; did you mean 'cubic'?".
int config_registered(struct config_node *n, const char *what, const char *is,
	struct config_name (*nth)(size_t i), size_t *which, struct err *err);
// A file that the config names. A run folder has copies of these files, and its config.yaml names
// the copies: the folder is all that is needed to repeat the run.
#define CONFIG_FILE_BYTES_MAX (64u << 20)
struct config_file {
	const struct config_file *next;
	struct config_node *named; // the value that names it; NULL: read for another's sake
	const char *part; // what the value says of the file: ":MyControl"; "": nothing
	const char *path; // as it was opened
	const char *copy; // name of the copy
	const char *text; // what is in it; ends with a 0 that is not counted
	size_t size;
	uint64_t digest; // XXH64 of it
	const char **license; // where a plug-in's is noted for the manifest; of NULL: none is known
};
// Keys of a map that names a file.
#define CONFIG_FILE_PARAMS(help) CONFIG_NAMED_FILE_PARAMS("file", help)
#define CONFIG_NAMED_FILE_PARAMS(key, help)                                                        \
	{key, NULL, help ", relative to the config's folder", UNIT_NONE, PARAM_FILE}, {            \
		"digest", "", "of the file, which is checked if it is given", UNIT_NONE,           \
			PARAM_SCALAR                                                               \
	}
// Reads the file that the map's key names, and checks the key `digest` or adds it. It lives as long
// as the document.
int config_read_file(
	struct config_node *map, const char *key, const struct config_file **file, struct err *err);
// The same of a value FILE:PART.
int config_read_part(
	struct config_node *map, const char *key, const struct config_file **file, struct err *err);
// Reads the file that a parameter's value names; the content lives as long as the document.
int config_read_content(
	struct config_node *named, const char *key, struct param_file *content, struct err *err);
// Reads a file that another one needs, so that the run's folder has a copy of it. `at` is the place
// of an error.
int config_read_also(struct config_node *at, const char *path, struct err *err);
// The value that names the file at `path`: PATH, or PATH:PART. It lives as long as the document.
const char *config_file_text(const struct config_file *f, const char *path);
// From now on the tree names the copies.
void config_use_copies(struct config *c);
// From now on the tree has the absolute path of each file, so that a printed config finds it from
// any folder.
void config_use_absolute(struct config *c);
// For a file that is too large to be copied: from now on the tree has its absolute path, so that a
// printed config finds it from any folder. The value, a text, is relative to the working directory;
// "-" stays. Texts that were read before stay as they were.
void config_absolute(struct config_node *named);
// All files, linked; NULL: none.
const struct config_file *config_files(const struct config *c);
// Keeps the nearest candidate for a mistyped key, at most two letters away; a short word must be
// nearer. The first call has *best NULL and *best_d SIZE_MAX.
void config_suggest(const char *key, const char *candidate, const char **best, size_t *best_d);
// An error at a node: sets "place: sentence" and returns rc.
__attribute__((format(printf, 4, 5))) int config_err(
	const struct config_node *n, int rc, struct err *err, const char *fmt, ...);
// "fifo", then "fifo, codel", ...: what there is, for an error. What has no room is left out.
#define CONFIG_NAMES_SIZE 256
void config_name_add(char names[static CONFIG_NAMES_SIZE], const char *name);
// 0, or -EINVAL naming the first map key that was not read.
int config_unused(struct config *c, struct err *err);
// The whole tree as YAML.
void config_print(const struct config *c, FILE *out);
