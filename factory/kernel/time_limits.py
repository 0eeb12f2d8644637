"""The soft time limit of a job, under the control plane's own name for those who catch everything else.

It is raised wherever the job happens to be, and it is an `Exception` like any other: whoever notes a fault
and goes on would note this one too, and be killed by the hard limit in the middle of the next thing.
"""

from celery.exceptions import SoftTimeLimitExceeded as TimeIsUp

__all__ = ["TimeIsUp"]
