"""What the hot paths cost, as ratios to the cheapest durable thing that this database can do.

Milliseconds of one machine say nothing about another, and little about the same one an hour later. So each
round also inserts one row with bare psycopg and commits it, and every path is told as a multiple of that:
`submit 30x` means that accepting a run costs as much as thirty of those inserts. `ratios.json` holds what
each path may cost, about twice what was seen; raise a ceiling only with a reason in the commit. In the end
the auditor looks at what the rounds left behind.

    make bench                        one table, and a JSON object as the last line; 1 if a ceiling is passed
    make bench ROUNDS=1000            longer, and steadier
"""
