"""Grep and the walk of Glob where no ripgrep binary runs: its rules for patterns, globs, types and ignore files."""
