"""Offline jobs, which run one model over many pictures. Described in docs/batch.md.

  inputs.py   finds pictures and their ids
  rows.py     the rows of answers in a table
  servers.py  several servers: limits of the requests in flight, retries, failover
  asking.py   turns pictures into rows
  parts.py    the output folder: parts, journals, manifests, the lock
  job.py      one run of a job
  command.py  the program sfmamba-batch

sfmamba.ray and sfmamba.spark also use rows.py, servers.py and asking.py.
"""
