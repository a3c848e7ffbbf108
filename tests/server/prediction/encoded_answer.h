#ifndef SFMAMBA_TESTS_SERVER_PREDICTION_ENCODED_ANSWER_H_
#define SFMAMBA_TESTS_SERVER_PREDICTION_ENCODED_ANSWER_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/prediction/task_handler.h"

namespace sfmamba::prediction {

// Runs all encoding steps.
inline absl::StatusOr<Answer> EncodeAll(AnswerEncoder* encoder) {
  while (!encoder->done()) {
    const absl::Status status = encoder->EncodeNext();
    if (!status.ok()) return status;
  }
  return encoder->Take();
}

// Returns the message (for example v1::DetectResult) that a caller of
// sfmamba.v1 receives for the model's result `result`. If encoding fails, fails
// the test and returns an empty message.
template <typename Proto, typename Params>
Proto AnswerOf(const Params& params, const repository::ModelDirectory& model,
               const model::Result& result,
               const image::PictureFrame& frame = {}) {
  const std::unique_ptr<const TaskHandler> handler = MakeHandler(params);
  absl::StatusOr<Answer> answer =
      EncodeAll(handler->MakeEncoder(model, result, frame).get());
  if (answer.ok()) return std::get<Proto>(std::move(answer->result));
  ADD_FAILURE() << answer.status();
  return Proto();
}

inline repository::ModelDirectory ModelOf(std::vector<std::string> labels) {
  repository::ModelDirectory model;
  model.labels = std::move(labels);
  return model;
}

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_TESTS_SERVER_PREDICTION_ENCODED_ANSWER_H_
