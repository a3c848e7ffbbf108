"""Client of the SF-Mamba vision server.

  import sfmamba
  client = sfmamba.Client('127.0.0.1:8001')
  print(client.classify('cat.jpg').labels[0])

AsyncClient has the same methods for asyncio. Answers are in sfmamba.results.
"""

import pkgutil

from ._errors import VisionError
from ._images import Picture, Resized, Source
from ._requests import Crops, Options, Slide, Tiles
from .aio import AsyncClient
from .client import Client
from .results import (ClassArea, Classification, Detections, HeatMap, ModelInfo, Segmentation,
                      Timing)

# Lets `import sfmamba.v1` find the code that a user has generated from sfmamba/v1/*.proto in
# another folder of sys.path. Without this line, Python would search only this package's folder.
__path__ = pkgutil.extend_path(__path__, __name__)

__version__ = '0.1.0'

__all__ = ['AsyncClient', 'ClassArea', 'Classification', 'Client', 'Crops', 'Detections',
           'HeatMap', 'ModelInfo', 'Options', 'Picture', 'Resized', 'Segmentation', 'Slide',
           'Source', 'Tiles', 'Timing', 'VisionError']
