#!/usr/bin/env python3
"""Checks every relative link and anchor in the Markdown files of the repository. Needs no network."""
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

root = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")


def prose(text):
    """The lines of a page outside code blocks, numbered from 1, without inline code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = None if fence else mark.group(1)
        elif fence is None and not line.startswith("    "):
            yield number, line


def anchors(page):
    """What headings of a page can be linked as: GitHub's rule, which is mdBook's too."""
    found, seen = set(), {}
    for _, line in prose(page.read_text(encoding="utf-8")):
        heading = HEADING.match(line)
        if heading:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
    return found


def wrong(page, target):
    """What is wrong with a link of a page; None if nothing is."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    file = (page.parent / unquote(path)).resolve() if path else page
    if not file.is_relative_to(root):
        return "leads out of the repository"
    if not file.exists():
        return "does not exist"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return "has no such heading"
    return None


listed = subprocess.run(
    ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], cwd=root, capture_output=True, check=True
)
pages = [root / name for name in listed.stdout.decode().split("\0") if name and (root / name).exists()]
problems = []
for page in pages:
    for number, line in prose(page.read_text(encoding="utf-8")):
        for target in LINK.findall(re.sub(r"`[^`]*`", lambda code: "x" * len(code.group()), line)):
            fault = wrong(page, target)
            if fault:
                problems.append(f"{page.relative_to(root)}:{number}: link {target}: {fault}")
summary = root / "docs/src/SUMMARY.md"
listed = {(summary.parent / target).resolve() for target in LINK.findall(summary.read_text(encoding="utf-8"))}
for page in sorted((root / "docs/src").rglob("*.md")):
    if page != summary and page.resolve() not in listed:
        problems.append(f"{page.relative_to(root)}: docs/src/SUMMARY.md does not list this page")
for problem in problems:
    print(problem, file=sys.stderr)
print(f"{len(pages)} pages, {len(problems)} wrong links")
sys.exit(1 if problems else 0)
