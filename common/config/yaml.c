// SPDX-License-Identifier: BSD-3-Clause
// YAML in and out of the config tree.
//
// Reading works on libyaml's events rather than on its documents: a document has resolved its
// aliases and forgotten its anchors and tags, and all three are errors here, at their own place.
//
// Writing is block style. A scalar of harmless characters stands plain, any other in double quotes;
// both are read back as the same text, and the tree does not keep how a scalar was quoted.
#include "common/base/utf8.h"
#include "common/config/config_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct loader {
	struct config *doc;
	const char *source;
	bool has_lines;
	const char *text;
	size_t len;
	struct err *err;
	yaml_parser_t parser;
	yaml_event_t event; // the current one, owned
};

static const char *mark_place(struct loader *l, yaml_mark_t mark) {
	if (!l->has_lines)
		return l->source;
	return config_place_text(
		l->doc, l->source, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1);
}

static const char *event_place(struct loader *l) {
	return mark_place(l, l->event.start_mark);
}

// Line and column, in characters, of a byte.
static yaml_mark_t offset_mark(const struct loader *l, size_t offset) {
	yaml_mark_t mark = {.index = offset};

	for (size_t i = 0; i < offset && i < l->len; i++) {
		if (l->text[i] == '\n') {
			mark.line++;
			mark.column = 0;
		} else if (((unsigned char)l->text[i] & 0xc0) != 0x80) {
			mark.column++;
		}
	}
	return mark;
}

static int parser_error(struct loader *l) {
	const yaml_parser_t *p = &l->parser;

	if (p->error == YAML_READER_ERROR)
		return err_set(l->err, -EINVAL, "%s: not UTF-8 text: %s",
			mark_place(l, offset_mark(l, p->problem_offset)), p->problem);
	if (p->error != YAML_SCANNER_ERROR && p->error != YAML_PARSER_ERROR)
		return err_set(l->err, -ENOMEM, "%s: out of memory", l->source);
	if (p->problem_mark.index < l->len && l->text[p->problem_mark.index] == '\t')
		return err_set(l->err, -EINVAL, "%s: bad YAML: a tab; indent with spaces",
			mark_place(l, p->problem_mark));
	if (p->problem_mark.index < l->len && l->text[p->problem_mark.index] == ':'
		&& strcmp(p->problem, "found unexpected ':'") == 0)
		return err_set(l->err, -EINVAL, "%s: bad YAML: a colon without a space behind it",
			mark_place(l, p->problem_mark));
	if (p->context == NULL)
		return err_set(l->err, -EINVAL, "%s: bad YAML: %s", mark_place(l, p->problem_mark),
			p->problem);
	return err_set(l->err, -EINVAL, "%s: bad YAML: %s %s that starts at %zu:%zu",
		mark_place(l, p->problem_mark), p->problem, p->context, p->context_mark.line + 1,
		p->context_mark.column + 1);
}

static int next_event(struct loader *l) {
	yaml_event_delete(&l->event);
	if (yaml_parser_parse(&l->parser, &l->event) == 0)
		return parser_error(l);
	return 0;
}

static int next_event_but_one(struct loader *l) {
	int rc = next_event(l);

	return rc < 0 ? rc : next_event(l);
}

static int alias_error(struct loader *l, const char *mark, const yaml_char_t *name) {
	err_set(l->err, -EINVAL,
		"%s: anchors and aliases (%s%.80s) are not supported: write the value out",
		event_place(l), mark, (const char *)name);
	return -EINVAL;
}

static int check_properties(struct loader *l, const yaml_char_t *anchor, const yaml_char_t *tag) {
	if (anchor != NULL)
		return alias_error(l, "&", anchor);
	if (tag != NULL)
		return err_set(l->err, -EINVAL, "%s: tags (%.80s) are not supported: leave it out",
			event_place(l), (const char *)tag);
	return 0;
}

static struct config_node *event_node(struct loader *l, enum config_kind kind) {
	const yaml_mark_t *m = &l->event.start_mark;

	if (!l->has_lines)
		return config_node_new(l->doc, kind, l->source, 0, 0);
	return config_node_new(
		l->doc, kind, l->source, (uint32_t)m->line + 1, (uint32_t)m->column + 1);
}

// The current scalar's text, as a string that holds all of it.
static int scalar_text(struct loader *l, const char **text) {
	const char *value = (const char *)l->event.data.scalar.value;
	size_t len = l->event.data.scalar.length;
	int rc = check_properties(l, l->event.data.scalar.anchor, l->event.data.scalar.tag);

	if (rc < 0)
		return rc;
	if (memchr(value, '\0', len) != NULL)
		return err_set(l->err, -EINVAL, "%s: a text may not hold the character NUL",
			event_place(l));
	*text = config_copy(l->doc, value, len);
	return 0;
}

static int load_node(struct loader *l, int levels, struct config_node **node);

static int load_list(struct loader *l, int levels, struct config_node *list) {
	int rc;

	for (;;) {
		struct config_node *item = NULL;
		if ((rc = next_event(l)) < 0)
			return rc;
		if (l->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if ((rc = load_node(l, levels, &item)) < 0)
			return rc;
		config_entry_add(list, NULL, item);
	}
}

static int load_key(struct loader *l, const struct config_node *map, struct config_node **key) {
	int rc;

	if (l->event.type == YAML_ALIAS_EVENT)
		return alias_error(l, "*", l->event.data.alias.anchor);
	if (l->event.type != YAML_SCALAR_EVENT)
		return err_set(l->err, -EINVAL, "%s: a key must be a plain name, not a %s",
			event_place(l),
			l->event.type == YAML_SEQUENCE_START_EVENT ? "list" : "map");
	*key = event_node(l, CONFIG_SCALAR);
	if ((rc = scalar_text(l, &(*key)->text)) < 0)
		return rc;
	if (strlen((*key)->text) > CONFIG_KEY_MAX)
		return err_set(l->err, -EINVAL, "%s: a key may have %d bytes, this one has %zu",
			event_place(l), CONFIG_KEY_MAX, strlen((*key)->text));
	const struct config_entry *first = config_entry_find(map, (*key)->text);
	if (first != NULL && !l->has_lines)
		return err_set(l->err, -EINVAL, "%s: '%s' is given twice", l->source, (*key)->text);
	if (first != NULL)
		return err_set(l->err, -EINVAL, "%s: '%s' is given twice; the first is at %s",
			event_place(l), (*key)->text,
			config_place_text(l->doc, first->source, first->line, first->col));
	if (map->count == CONFIG_MAP_MAX)
		return err_set(l->err, -EINVAL, "%s: a map may have %d entries, not more",
			event_place(l), CONFIG_MAP_MAX);
	return 0;
}

static int load_map(struct loader *l, int levels, struct config_node *map) {
	int rc;

	for (;;) {
		struct config_node *key = NULL, *value = NULL;
		if ((rc = next_event(l)) < 0)
			return rc;
		if (l->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		if ((rc = load_key(l, map, &key)) < 0 || (rc = next_event(l)) < 0
			|| (rc = load_node(l, levels, &value)) < 0)
			return rc;
		struct config_entry *e = config_entry_add(map, key->text, value);
		e->source = key->source;
		e->line = key->line;
		e->col = key->col;
	}
}

// The tree that begins with the current event, `levels` deep in the document.
static int load_node(struct loader *l, int levels, struct config_node **node) {
	const yaml_event_t *e = &l->event;
	int rc;

	if (e->type == YAML_ALIAS_EVENT)
		return alias_error(l, "*", e->data.alias.anchor);
	if (e->type == YAML_SCALAR_EVENT) {
		*node = event_node(l, CONFIG_SCALAR);
		return scalar_text(l, &(*node)->text);
	}
	if (levels >= CONFIG_DEPTH_MAX)
		return err_set(l->err, -EINVAL, "%s: nested more than %d levels deep",
			event_place(l), CONFIG_DEPTH_MAX);
	if (e->type == YAML_SEQUENCE_START_EVENT) {
		rc = check_properties(l, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		*node = event_node(l, CONFIG_LIST);
		return rc < 0 ? rc : load_list(l, levels + 1, *node);
	}
	rc = check_properties(l, e->data.mapping_start.anchor, e->data.mapping_start.tag);
	*node = event_node(l, CONFIG_MAP);
	return rc < 0 ? rc : load_map(l, levels + 1, *node);
}

static int load_stream(struct loader *l, int levels, struct config_node **root) {
	int rc;

	*root = NULL;
	if ((rc = next_event_but_one(l)) < 0) // past the stream's start
		return rc;
	if (l->event.type == YAML_STREAM_END_EVENT)
		return 0;
	if ((rc = next_event(l)) < 0 || (rc = load_node(l, levels, root)) < 0)
		return rc;
	if ((rc = next_event_but_one(l)) < 0) // past the document's end
		return rc;
	if (l->event.type != YAML_STREAM_END_EVENT)
		return err_set(
			l->err, -EINVAL, "%s: a second YAML document starts here", event_place(l));
	return 0;
}

int config_yaml_load(struct config *c, const char *source, const char *text, size_t len, int levels,
	struct config_node **root, struct err *err) {
	struct loader l = {.doc = c,
		.source = config_copy(c, source, strlen(source)),
		.has_lines = levels == 0,
		.text = text,
		.len = len,
		.err = err};
	int rc;

	*root = NULL;
	if (yaml_parser_initialize(&l.parser) == 0)
		return err_set(err, -ENOMEM, "%s: out of memory", source);
	yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&l.parser, (const unsigned char *)text, len);
	rc = load_stream(&l, levels, root);
	yaml_event_delete(&l.event);
	yaml_parser_delete(&l.parser);
	return rc;
}

static bool is_alnum(char c) {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Can only be read as this text, wherever it stands in a block.
static bool is_plain(const char *text) {
	if (!is_alnum(text[0]) && text[0] != '_' && text[0] != '/')
		return false;
	for (const char *s = text; *s != '\0'; s++) {
		if (*s == ' ' || *s == ':') {
			// Inside only: "0000:01:00.0", "two flows".
			if (s[1] == '\0' || s[1] == ' ' || (*s == ' ' && s[1] == '#'))
				return false;
		} else if (!is_alnum(*s) && strchr("_-./%+,=()", *s) == NULL) {
			return false;
		}
	}
	return true;
}

// Printable as it is between double quotes: neither a line break nor what a YAML reader refuses.
static bool is_printable(uint32_t c) {
	if (c < 0xa0)
		return c >= 0x20 && c < 0x7f;
	return c != 0x2028 && c != 0x2029 && c != 0xfeff && (c < 0xfffd || c > 0xffff);
}

static void print_scalar(const char *text, FILE *out) {
	if (is_plain(text)) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	while (*text != '\0') {
		uint32_t c = 0;
		size_t n = utf8_read(text, &c);
		if (n == 0) { // not loaded from a file, those are checked
			c = 0xfffd;
			n = 1;
		}
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (char)c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (is_printable(c))
			fprintf(out, "%.*s", (int)n, text);
		else if (c < 0x100)
			fprintf(out, "\\x%02x", c);
		else
			fprintf(out, "\\u%04x", c);
		text += n;
	}
	fputc('"', out);
}

static void print_indent(int depth, FILE *out) {
	fprintf(out, "%*s", 2 * depth, "");
}

static void print_value(const struct config_node *n, int depth, FILE *out);

// The entries of a map or list; the first stands where the cursor is.
static void print_entries(const struct config_node *n, int depth, FILE *out) {
	for (size_t i = 0; i < n->count; i++) {
		const struct config_node *value = n->entry[i].value;
		if (i > 0)
			print_indent(depth, out);
		if (n->kind == CONFIG_MAP) {
			print_scalar(n->entry[i].key, out);
			fputc(':', out);
			print_value(value, depth, out);
		} else if (value->kind != CONFIG_SCALAR && value->count > 0) {
			fputs("- ", out);
			print_entries(value, depth + 1, out);
		} else {
			fputc('-', out);
			print_value(value, depth, out);
		}
	}
}

// What follows "key:" or "-", with the line's end.
static void print_value(const struct config_node *n, int depth, FILE *out) {
	if (n->kind == CONFIG_SCALAR) {
		if (n->text[0] != '\0') {
			fputc(' ', out);
			print_scalar(n->text, out);
		}
		fputc('\n', out);
	} else if (n->count == 0) {
		fputs(n->kind == CONFIG_MAP ? " {}\n" : " []\n", out);
	} else {
		fputc('\n', out);
		print_indent(depth + 1, out);
		print_entries(n, depth + 1, out);
	}
}

void config_print(const struct config *c, FILE *out) {
	if (c->root->count == 0)
		fputs("{}\n", out);
	else
		print_entries(c->root, 0, out);
}
