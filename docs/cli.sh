#!/usr/bin/env bash
# Writes docs/src/reference/cli.md from the program's own help.
#
#   docs/cli.sh ENCORE [FILE]     ENCORE: the program; FILE: the page (default: docs/src/reference/cli.md)
set -euo pipefail

[ $# -ge 1 ] || { sed -n '/^#   docs/s/^#  *//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
encore=$1
page=${2:-$(dirname "${BASH_SOURCE[0]}")/src/reference/cli.md}

# The help of a command as a code block, without trailing blanks.
help_of() {
    COLUMNS=100 NO_COLOR=1 "$encore" "$@" --help | sed -E 's/[[:space:]]+$//'
}

# The subcommands of a command, as its help lists them.
subcommands() {
    "$encore" "$@" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | grep -vx help
}

section() {
    local level=$1
    shift
    printf '\n%s encore%s\n\n```text\n' "$level" "${*:+ $*}"
    help_of "$@"
    printf '```\n'
}

{
    printf '# Command line\n\n'
    # shellcheck disable=SC2016
    printf 'This page is the help of the program: `docs/cli.sh` writes it. `encore COMMAND --help` prints the same.\n'
    printf '[Exit codes](exit-codes.md) are on a page of their own.\n'
    section '##'
    for command in $(subcommands); do
        section '##' "$command"
        case $command in
            trace | replay | analyze)
                for subcommand in $(subcommands "$command"); do section '###' "$command" "$subcommand"; done
                ;;
        esac
    done
} >"$page.new"
mv "$page.new" "$page"
