"""Anchors: signed files outside the database that say where every hash chain ended.

A chain alone does not show that its tail was cut, that it vanished altogether, or that it was forged anew to
its end. A copy of its head somewhere else does.
"""
