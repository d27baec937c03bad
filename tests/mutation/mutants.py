# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in a C file, made over its syntax tree: all of them in one source, each behind a number.

`a < b` becomes `(mutant(7) ? (a <= b) : (a < b))`: so that a file is compiled once, not once for
each mistake, and a program tells which of them it comes past (mutant.h). Untch, Offutt and
Harrold, "Mutation analysis using mutant schemata" (1993). Only code in functions is changed, and
nothing whose value the compiler must know: labels, sizes, static variables, macros' arguments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import tree_sitter_c
from tree_sitter import Language, Node, Parser

HEAD = '#include "tests/mutation/mutant.h"\n#line 1\n'
# The operator that takes its place.
BINARY = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<",
    "&": "|", "|": "&", "^": "|", "&&": "||", "||": "&&",
}  # fmt: skip
ASSIGNMENT = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
STEP = {"++": "--", "--": "++"}
# Their values are constants, or nothing is evaluated in them.
OPAQUE = {
    "array_declarator", "sizeof_expression", "offsetof_expression", "alignof_expression",
    "alignas_qualifier", "enum_specifier", "subscript_designator", "generic_expression",
    "attribute_specifier", "type_descriptor", "gnu_asm_expression", "string_literal",
    "char_literal", "comment",
}  # fmt: skip
# Calls that change nothing a test could see; capitals are macros, which may paste what they get.
OPAQUE_CALL = re.compile(
    r"(?:static_)?assert|free|va_end|__builtin\w*|\w*prefetch\w*|[A-Z][A-Z0-9_]*"
)
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # or a string


@dataclass(frozen=True)
class Mutant:
    """A mistake: at a byte of the file, `was` becomes `now`."""

    file: str
    at: int
    line: int
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now or '(nothing)'}"


def plain(node: Node) -> str:
    """A node's text on one line and without comments."""
    text = node.text.decode()
    text = COMMENT.sub(lambda found: found[1] or " ", text) if "/" in text else text
    return re.sub(r"\s*\n\s*", " ", text)


def replaced(node: Node, table: dict[str, str]) -> Iterator[str]:
    """The expression with the other operator."""
    operator = node.child_by_field_name("operator")
    if operator is not None and operator.type in table:
        yield (" " if node.child_count == 3 else "").join(
            table[operator.type] if child == operator else plain(child) for child in node.children
        )


def is_condition(node: Node) -> bool:
    """Is it all that an `if` asks?"""
    around = node.parent
    return (
        node.is_named
        and node.type != "comment"
        and around is not None
        and around.type == "parenthesized_expression"
        and around.parent is not None
        and around.parent.type == "if_statement"
    )


def number(node: Node) -> Iterator[str]:
    """One more, or a tenth more; not the zeros of `{0}` and `while (0)`."""
    above = node.parent.parent if node.parent is not None else None
    if node.parent.type == "initializer_list" or (above and above.type == "do_statement"):
        return
    text = plain(node)
    real = not text.lower().startswith("0x") and re.search(r"[.eE]", text)
    yield f"{text} * 1.1" if real else f"{text} + 1"


def expressions(node: Node) -> Iterator[str]:
    """What may take an expression's place."""
    match node.type:
        case "binary_expression":
            table = {k: v for k, v in BINARY.items() if k not in ("==", "!=")}
            yield from replaced(node, table if is_condition(node) else BINARY)
        case "assignment_expression":
            yield from replaced(node, ASSIGNMENT)
        case "update_expression":
            yield from replaced(node, STEP)
        case "unary_expression" if node.text.startswith(b"!") and not is_condition(node):
            yield plain(node)[1:]
        case "number_literal":
            yield from number(node)
        case "true" | "false":
            yield "false" if node.type == "true" else "true"
    if is_condition(node):
        yield f"!({plain(node)})"


def callee(node: Node) -> str:
    """The name of the function that is called; empty: it is no call."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    return function.text.decode() if function is not None else ""


def opaque(node: Node) -> bool:
    """Is nothing in it changed?"""
    return (
        node.type in OPAQUE
        or node.type.startswith("preproc_")
        or node.type == "ERROR"
        or (node.type == "compound_statement" and any(c.type == "ERROR" for c in node.children))
        or (node.type == "declaration" and any(c.text == b"static" for c in node.children))
        or OPAQUE_CALL.fullmatch(callee(node)) is not None
    )


def returns_number(function: Node) -> bool:
    """Or a pointer, for which 0 stands as well."""
    type_ = function.child_by_field_name("type")
    declarator = function.child_by_field_name("declarator")
    if declarator is not None and declarator.type == "pointer_declarator":
        return True
    return type_ is not None and type_.type != "struct_specifier"


class Schemata:
    """One file with its mistakes, numbered from `first`; those of `without` are left out."""

    def __init__(
        self, file: str, text: str, first: int = 1, without: Collection[Mutant] = ()
    ) -> None:
        self.file = file
        self.without = without
        self.first = first
        self.mutants: list[Mutant] = []
        source = text.encode()
        self.source = source
        root = Parser(Language(tree_sitter_c.language())).parse(source).root_node
        self.number_returned = False
        self.text = HEAD + self.outside(root)

    def spliced(self, node: Node, render) -> str:  # type: ignore[no-untyped-def]
        """A node's text, each child as `render` has it."""
        parts, at = [], node.start_byte
        for child in node.children:
            parts += [self.source[at : child.start_byte].decode(), render(child)]
            at = child.end_byte
        return "".join([*parts, self.source[at : node.end_byte].decode()])

    def outside(self, node: Node) -> str:
        """What is not in a function stays."""
        if node.type == "function_definition":
            self.number_returned = returns_number(node)
            body = node.child_by_field_name("body")
            return self.spliced(node, lambda n: self.inside(n) if n == body else n.text.decode())
        if node.type in ("translation_unit", "preproc_ifdef", "preproc_if", "preproc_else"):
            return self.spliced(node, self.outside)
        return node.text.decode()

    def inside(self, node: Node) -> str:
        """What is in a function, with its mistakes."""
        if opaque(node):
            return node.text.decode()
        if node.type == "case_statement":
            value = node.child_by_field_name("value")
            return self.spliced(node, lambda n: n.text.decode() if n == value else self.inside(n))
        text = self.spliced(node, self.inside)
        if b"\n#" in node.text:
            return text
        if node.type in ("expression_statement", "return_statement"):
            return self.statement(node, text)
        for now in expressions(node):
            if number := self.numbered(node, now):
                text = f"(mutant({number}) ? ({now}) : ({text}))"
        return text

    def statement(self, node: Node, text: str) -> str:
        """One that is left out, or a return of 0."""
        inner = node.named_children[0] if node.named_children else None
        if node.type == "expression_statement":
            if inner is not None and not opaque(inner) and (number := self.numbered(node, "")):
                return f"{{ if (!mutant({number})) {text} }}"
        elif (
            inner is not None
            and self.number_returned
            and inner.type not in ("number_literal", "true", "false", "null")
            and (number := self.numbered(node, "return 0;"))
        ):
            return f"{{ if (mutant({number})) return 0; {text} }}"
        return text

    def numbered(self, node: Node, now: str) -> int | None:
        """The number of a mistake; None: it is left out."""
        mutant = Mutant(self.file, node.start_byte, node.start_point[0] + 1, plain(node), now)
        if mutant in self.without:
            return None
        self.mutants.append(mutant)
        return self.first + len(self.mutants) - 1


def location(text: str, line: int, column: int) -> int | None:
    """The number of the mistake before a place in a file with mistakes, on the same line."""
    before = text.split("\n")[line - 1 + HEAD.count("\n")].encode()[: column - 1].decode()
    numbers = re.findall(r"mutant\((\d+)\)", before)
    return int(numbers[-1]) if numbers else None
