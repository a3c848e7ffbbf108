#ifndef SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_
#define SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_

#include "model/ops/image_batch.h"

namespace sfmamba::layers {

// A network's input.
using ops::ImageBatch;

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_
