"""`nest run` for each kind of task: which inputs there are, and how an answer is written.

A module has `prepare(entry, args) -> list[Item]`, which refuses what cannot work before anything is fetched, and
`answer(task, item, args) -> Answer`, whose text a person reads and whose facts `--json` writes. One whose text comes
piece by piece gives `answer` an Answer with `pieces`.
"""
