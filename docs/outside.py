#!/usr/bin/env python3
"""mdBook preprocessor: what to do with links that leave the book.

Pages link to files of the repository (`../../../benches/truth.md`), which a built book does not contain. Such a
link becomes one into the repository if book.toml gives its address (`repository`), else plain text that names the file.
"""
import json
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)\s]+)\)")


def rewritten(text, page, repository):
    """The text of a page (path in docs/src) with its outside links replaced."""

    def replace(match):
        words, target = match.groups()
        inside = posixpath.normpath(posixpath.join("docs/src", posixpath.dirname(page), target))
        if inside.startswith("docs/src/"):
            return match.group(0)
        if repository:
            return f"[{words}]({repository.rstrip('/')}/{inside})"
        return f"{words} (`{inside}` in the repository)" if words.strip("`") != inside else f"`{inside}`"

    return LINK.sub(replace, text)


def visit(items, repository):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter["path"]:
                chapter["content"] = rewritten(chapter["content"], chapter["path"], repository)
            visit(chapter["sub_items"], repository)


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
context, book = json.load(sys.stdin)
visit(book["items"], context["config"]["preprocessor"]["outside"].get("repository", ""))
json.dump(book, sys.stdout)
