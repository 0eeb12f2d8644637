"""Runs apart from the worker, as a program of its own: sources on stdin, measured functions on stdout.

So a source that makes the analyser hang or blow up costs this process, and nothing else.
"""

import json
import sys

import lizard

MOST_FUNCTIONS_OF_A_FILE = 2_000


def main() -> None:
    """`[[path, text], …]` in; `{"functions": [[path, name, line, …], …], "failed": n}` out."""
    functions = []
    failed = 0
    for path, text in json.load(sys.stdin):
        try:
            found = lizard.analyze_file.analyze_source_code(path, text)
        except Exception:  # a source may break the analyser in any way; it is counted, and the rest goes on
            failed += 1
            continue
        for item in found.function_list[:MOST_FUNCTIONS_OF_A_FILE]:
            functions.append(
                [
                    path,
                    item.name,
                    item.start_line,
                    item.cyclomatic_complexity,
                    item.nloc,
                    item.parameter_count,
                ]
            )
    json.dump({"functions": functions, "failed": failed}, sys.stdout)


if __name__ == "__main__":
    main()
