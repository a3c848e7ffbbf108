"""Offline jobs, which run one model over many pictures. Described in docs/batch.md.

  inputs.py   finds pictures and their ids
  rows.py     the rows of answers in a table; also used by sfmamba.ray and sfmamba.spark
  servers.py  several servers: windows, retries, failover; also used by both
  asking.py   turns pictures into rows; also used by both
  parts.py    the output folder: parts, journals, manifests, the lock
  job.py      one run of a job
  command.py  sfmamba-batch
"""
