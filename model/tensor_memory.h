#ifndef SFMAMBA_MODEL_TENSOR_MEMORY_H_
#define SFMAMBA_MODEL_TENSOR_MEMORY_H_

namespace sfmamba::model {

// From now on, the memory of freed CPU tensors of at least 1 MiB is cached for
// ten seconds, so that the next batch can reuse it. Without the cache, a
// segmenter would need a tenth more time, because memory is slow when it is new
// to the process. May be called only once, before the process has other
// threads.
void KeepTensorMemory();

// Returns memory to the system that no tensor has used for ten seconds. Every
// large tensor that is made or freed does this, too. So this is needed only in
// a process that computes nothing more.
void ReleaseIdleTensorMemory();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_TENSOR_MEMORY_H_
