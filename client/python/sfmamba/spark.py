"""Runs a model over a DataFrame in Spark. docs/batch.md, "Spark", has a recipe.

  pictures = spark.read.format('binaryFile').load('photos/')
  rows = pictures.mapInPandas(sfmamba.spark.predict(['gpu1:8001', 'gpu2:8001'], 'classify',
                                                    'photographs'),
                              sfmamba.spark.schema('classify'))
"""

from typing import Any, Callable, Iterator, Optional, Sequence

import pandas as pd
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from .batch.asking import Rows
from .batch.rows import TASKS
from .batch.servers import Access

Frames = Iterator[pd.DataFrame]


def schema(task: str) -> StructType:
    """Returns the schema of the rows that predict() makes (docs/batch.md, "Rows")."""
    return from_arrow_schema(TASKS[task].schema)


def predict(servers: Sequence[str], task: str = 'classify', model: str = '',
            id_column: str = 'path', image_column: str = 'content',
            access: Optional[Access] = None, resize: bool = False,
            **parameters: Any) -> Callable[[Frames], Frames]:
    """Returns a function for DataFrame.mapInPandas(). Each partition has its own client for all
    servers. The default columns are those of Spark's format binaryFile.

    Args:
      servers: addresses.
      task: 'classify', 'detect' or 'segment'.
      model: '': the servers' only or default one.
      id_column: becomes the rows' `id`.
      image_column: contains paths or the bytes of files.
      access: TLS and tokens.
      resize: whether the client resizes pictures to a classifier's input.
      **parameters: of the client's method of that name.
    """
    columns = TASKS[task].schema.names

    def rows_of(frames: Frames) -> Frames:
        rows = Rows(task, servers, model, access, resize, **parameters)
        try:
            for frame in frames:
                answers = rows([image if isinstance(image, str) else bytes(image)
                                for image in frame[image_column]])
                yield pd.DataFrame([{'id': name, **row}
                                    for name, row in zip(frame[id_column], answers)],
                                   columns=columns)
        finally:
            rows.close()
    return rows_of
