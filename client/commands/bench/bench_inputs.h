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

// The pictures of a trace, by method, model and name. The model is part of the
// key because a tensor has its model's size. An empty model is the server's
// default for the method.
using TracePictures =
    std::map<std::tuple<std::string, std::string, std::string>, v1::Image>;

// Reads the picture files that the trace names, and adds them to `pictures`. A
// relative name is relative to `folder`, or to the working directory if
// `folder` is empty. If a file cannot be read, returns NOT_FOUND with its name.
absl::Status ReadPictures(const Trace& trace, const std::string& folder,
                          TracePictures* pictures);

// Replaces each picture with a picture that is resized for the model of its
// request. `pictures` must contain only pictures from files. Returns the first
// error of the server or of ResizeFor(). The message of an error of ResizeFor()
// gets the file's name.
absl::Status ResizePictures(absl::Duration timeout, VisionClient* client,
                            TracePictures* pictures);

// Adds the tensors of the trace to `pictures`, with random values. Equal seeds
// give equal values. A tensor has an input size of its model, which the server
// is asked for. `timeout` applies to each call of the server. If a request
// names no model and ModelOfTask() finds none, returns FAILED_PRECONDITION.
absl::Status MakeTensors(const Trace& trace, uint64_t seed,
                         absl::Duration timeout, VisionClient* client,
                         TracePictures* pictures);

// Returns the load that a trace describes. `pictures` must contain all of its
// pictures. Requests without a deadline get `deadline`.
Load MakeLoad(const Trace& trace, const TracePictures& pictures,
              absl::Duration deadline);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_INPUTS_H_
