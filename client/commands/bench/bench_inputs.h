#ifndef SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_INPUTS_H_
#define SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_INPUTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/bench/load_generator.h"
#include "client/bench/trace.h"
#include "client/rpc/vision_client.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// The pictures of a trace, by method, model and name: a tensor has the size of
// its model, which may be the default one of what the method asks for.
using TracePictures =
    std::map<std::tuple<std::string, std::string, std::string>, v1::Image>;

// Adds the files, of which relative names begin in `folder` unless that is
// empty. NOT_FOUND names one that cannot be read.
absl::Status ReadPictures(const Trace& trace, const std::string& folder,
                          TracePictures* pictures);

// Resizes the files' pictures for the models that are asked. Errors are those
// of the server and of ResizeFor(); a picture's name it.
absl::Status ResizePictures(absl::Duration timeout, VisionClient* client,
                            TracePictures* pictures);

// Adds the tensors: random values, the same for the same seed, of the size that
// the server tells. FAILED_PRECONDITION if a request names no model and the
// server has several for it and no default one.
absl::Status MakeTensors(const Trace& trace, uint64_t seed,
                         absl::Duration timeout, VisionClient* client,
                         TracePictures* pictures);

// The load that a trace describes. `pictures` has all of its pictures;
// `deadline` is for requests that have none.
Load MakeLoad(const Trace& trace, const TracePictures& pictures,
              absl::Duration deadline);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_INPUTS_H_
