#ifndef SFMAMBA_MODEL_TENSOR_MEMORY_H_
#define SFMAMBA_MODEL_TENSOR_MEMORY_H_

namespace sfmamba::model {

// From now on, freed memory of CPU tensors of at least 1 MiB is cached for ten
// seconds, so that the next batch can reuse it. Without the cache, a segmenter
// would need a tenth more time, because memory that is new to the process is
// slow. May be called only once, before the process starts other threads.
void KeepTensorMemory();

// Gives cached memory back to the system if no tensor has used it for ten
// seconds. Making or freeing a large tensor does this, too. So only a process
// that no longer computes needs to call this function.
void ReleaseIdleTensorMemory();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_TENSOR_MEMORY_H_
