"""Offline jobs: one model over many pictures. docs/batch.md is the page.

  inputs.py   where pictures and their ids come from
  rows.py     what an answer looks like in a table; shared with sfmamba.ray and sfmamba.spark
  servers.py  several servers: windows, retries, failover; shared likewise
  asking.py   pictures to rows; shared likewise
  parts.py    the output folder: parts, journals, manifests, the lock
  job.py      one run of a job
  command.py  sfmamba-batch
"""
