"""The way from a view to the Messages API and back.

A request: `profile` (what stays the same) and a view → `render` (bytes, behind `normalise`) → `marks` → `plan` →
`client`. Before a send `validate` checks and `repair` puts right; after it `stream` folds the answer, `retry` makes the
call again, `failures` and `overflow` read what servers say, `heal` decides what may make a refused request pass.
`catalogue` and `capabilities` know models and servers, `cost` the price, `context_management` the server's own edits,
and `cache_break` notices a prompt cache that was lost.
"""
