"""Steps of the commands of runs, inside their transaction.

`holding` locks what a worker speaks for; `moving` takes the run from state to state; `advancing` asks the
engine; `ending` stops what must not go on; `settling` says what an outcome means for step and run.
"""
