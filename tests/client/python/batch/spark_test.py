"""Tests sfmamba.spark. Needs PySpark and a Java runtime, which no script installs.

Run it by hand:
  pip install './client/python[spark]' && python3 tests/client/python/batch/spark_test.py
"""

import os
import shutil
import sys
import unittest

import batch_testing
from batch_testing import add_pictures, classified, folder

try:
    from pyspark.sql import SparkSession
except ModuleNotFoundError:
    SparkSession = None


@unittest.skipUnless(SparkSession and shutil.which('java'), 'PySpark or a JRE is not installed')
class SparkTest(unittest.TestCase):
    def test_rows_of_a_folder(self):
        import sfmamba.spark
        os.environ['PYSPARK_PYTHON'] = sys.executable
        photos = folder(self) / 'photos'
        add_pictures(photos, 50, bad=[5])
        server = batch_testing.server(self)
        spark = (SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false')
                 .getOrCreate())
        self.addCleanup(spark.stop)
        pictures = spark.read.format('binaryFile').load(str(photos)).repartition(4)
        rows = pictures.mapInPandas(
            sfmamba.spark.predict([server.address], 'classify', 'fake'),
            sfmamba.spark.schema('classify')).orderBy('id').collect()
        self.assertEqual([os.path.basename(row.id) for row in rows],
                         [f'{number:05}.jpg' for number in range(50)])
        self.assertEqual([number for number, row in enumerate(rows) if row.reason], [5])
        self.assertEqual(rows[7].class_ids, [
            one.class_id for one in classified(b'picture 7').results[0].categories])


if __name__ == '__main__':
    unittest.main()
